"""`vicinal-bench peers`: the listing, wrong arguments, libraries that are missing, rows that are compared, what is said
of lines without figures, and the comparison with a stored run. No time is judged."""
# ctest: COST 60

import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys
import time
import types

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
SUITE = SOURCE / "bench/peers/suite"
sys.path[:0] = [str(SUITE), str(SUITE.parent)]
import adapters  # noqa: E402
import catalog  # noqa: E402
import command  # noqa: E402
import density_times  # noqa: E402
import environments  # noqa: E402
import report  # noqa: E402

spec = importlib.util.spec_from_file_location("door", SUITE / "__main__.py")
door = importlib.util.module_from_spec(spec)
spec.loader.exec_module(door)

INTERNAL, USAGE, DATA, DEVICE = 1, 2, 3, 5


@pytest.fixture
def peers(vicinal):
    return lambda *arguments, **options: vicinal("peers", *arguments, **options)


@pytest.fixture
def here(peers):
    """With the Python of the tests, which has scikit-learn and SciPy, and installs nothing."""
    pytest.importorskip("sklearn")
    given = ["--quick", "--no-install", "--python", sys.executable, "--threads", 2]
    return lambda *arguments: peers(*arguments, *given, timeout=880)


def test_help_and_its_examples(run_examples):
    run_examples("peers")


def test_listing(peers):
    done = peers("--list")
    assert done.returncode == 0 and done.stderr == ""
    names = [line.split()[0] for line in done.stdout.splitlines()[1:]]
    assert names == [row.name for row in catalog.ROWS]
    told = json.loads(peers("--list", "density", "lof-kdd", "--json").stdout)["rows"]
    assert {row["group"] for row in told} == {"density", "lof"} and all(row["peers"] for row in told)


CASES = {
    "row": (["knn-nothing", "--list"], ["'knn-nothing'", "density", "knn-uniform3"]),
    "two sizes": (["--quick", "--short"], ["--quick", "--short"]),
    "environment": (["--python", "nothing=/usr/bin/python3", "--list"], ["--python", "'nothing'", "density"]),
    "timeout": (["--timeout", "0", "--list"], ["--timeout", "0"]),
    "no short size": (["knn-uniform8", "--short"], ["--short"]),
    "library": (["--libraries", "scipy,nothing", "--list"], ["--libraries", "'nothing'", "scipy"]),
    "library of other rows": (["lof", "--libraries", "METIS", "--list"], ["--libraries", "METIS"]),
    "threads": (["--threads", "-1", "--list"], ["--threads", "-1"]),
}


@pytest.mark.parametrize("arguments, words", CASES.values(), ids=CASES.keys())
def test_argument_errors(peers, arguments, words):
    done = peers(*arguments)
    assert done.returncode == USAGE and done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert all(word in done.stderr for word in words), done.stderr


def test_scripts_that_are_not_there(peers, tmp_path):
    done = peers("--list", "--peers-dir", tmp_path)
    assert done.returncode == DATA and done.stdout == ""
    assert "--peers-dir" in done.stderr and "suite/__main__.py" in done.stderr


def test_an_output_that_cannot_be_written(peers):
    done = peers("lle-10k", "--quick", "--no-install", "-o", "nowhere/result.json")
    assert done.returncode == DATA and "nowhere/result.json" in done.stderr


def test_json_of_an_error(peers):
    done = peers("nothing", "--json")
    assert done.returncode == USAGE
    assert json.loads(done.stdout)["error"]["code"] == "invalid_argument"


def test_a_row_of_which_no_library_is_there(peers, tmp_path):
    """A Python without packages: a reason for every library, and the exit code of missing files."""
    empty = tmp_path / "empty"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", empty], check=True)
    python = empty / "bin/python"
    done = peers("knn-uniform3", "kmeans-500k", "--quick", "--no-install", "--python", python, "-o", "r.json")
    assert done.returncode == DATA and "no library could be compared" in done.stderr
    told = json.loads((tmp_path / "r.json").read_text())
    lines = [line for row in told["rows"] for line in row["peers"]]
    assert {line["peer"] for line in lines} == {*catalog.TREES, *catalog.KMEANS}
    assert all(line["reason"] and "ratio" not in line for line in lines)
    assert "knn-uniform3, scipy: " in done.stdout and "No module named 'numpy'" in done.stdout
    # The same without any Python.
    done = peers("lle-10k", "--quick", "--no-install", "--python", "/nowhere/python")
    assert done.returncode == DATA and "there is no Python '/nowhere/python'" in done.stdout


@pytest.mark.skipif(pathlib.Path("/usr/bin/nvidia-smi").exists(), reason="there is an NVIDIA driver")
def test_rows_of_a_device_without_one(peers):
    done = peers("gpu", "--quick", "--no-install")
    assert done.returncode == DEVICE and done.stdout.count("there is no CUDA device") > len(catalog.GPU_KNN)


def test_rows_are_compared(here, tmp_path):
    done = here("knn-uniform3", "missing-100k", "-o", "result.json")
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "result.json").read_text())
    assert told["machine"] and told["date"] and told["commit"] and told["size"] == "quick"
    trees, missing = told["rows"]
    assert trees["vicinal"]["exact"] is True and missing["vicinal"]["exact"] is True
    figures = {line["peer"]: line for line in trees["peers"]}
    assert set(figures) == set(catalog.TREES)
    for name in ("sklearn-tree", "scipy"):
        line = figures[name]
        assert line["share"] == 1 and line["version"] and "200 of 200" in line["exactness"]
        assert line["ratio"] == line["seconds"] / line["our_seconds"]
    assert all(("ratio" in line) != ("reason" in line) for line in figures.values())
    assert "Not compared, and why:" in done.stdout or all("ratio" in line for line in figures.values())


def test_verify_wants_every_line(here):
    done = here("knn-uniform3", "--verify", "--json", "--libraries", "scipy,libann")
    (row,) = json.loads(done.stdout)["rows"]
    lacking = [line["peer"] for line in row["peers"] if "reason" in line]
    assert {line["peer"] for line in row["peers"]} == {"scipy", "libann"} and "scipy" not in lacking
    assert done.returncode == (INTERNAL if lacking else 0)
    assert not lacking or "1 of 2 lines have no figures, the first of knn-uniform3, libann" in done.stderr


def test_the_minute_of_continuous_integration(here, tmp_path):
    """Rows whose libraries the tests have: each line complete, each answer of vicinal exact. How long it takes is not
    judged."""
    libraries = "sklearn,sklearn-tree,sklearn_brute,scipy,pandas,pyarrow,geopandas"
    rows = ["knn-gaussian41", "knn-uniform3", "knn-duplicates3", "lof-100k", "lle-10k", "density-250k-2",
            "density-optics", "match-nyc", "read-csv", "missing-100k"]
    done = here(*rows, "--libraries", libraries, "--verify", "-o", "result.json")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "result.json").read_text())
    assert {row["row"] for row in told["rows"]} == set(rows)
    assert all(row["vicinal"]["exact"] is True for row in told["rows"])
    assert all("ratio" in line and line["exactness"] for row in told["rows"] for line in row["peers"])


def test_every_row_is_whole():
    for row in catalog.ROWS:
        assert row.script in adapters.ADAPTERS and row.environment in environments.ENVIRONMENTS
        assert row.peers and row.quick and row.about
    assert len({row.name for row in catalog.ROWS}) == len(catalog.ROWS)
    assert not {row.name for row in catalog.ROWS} & set(catalog.GROUPS)
    for environment in environments.ENVIRONMENTS.values():
        assert (SOURCE / "bench/peers" / environment.requirements).is_file()


LINE = {"peer": "p", "version": "1", "seconds": 2.0, "our_seconds": 1.0, "share": 1.0, "exactness": "all right"}


def test_a_line_without_figures_has_a_reason():
    assert report.finish(LINE)["ratio"] == 2 and report.is_complete(report.finish(LINE))
    for change in ({"seconds": None}, {"our_seconds": 0.0}, {"seconds": float("nan")}, {"exactness": ""},
                   {"share": float("nan")}, {"seconds": -1.0}, {"reason": "it is ill"}):
        line = report.finish({**LINE, **change})
        assert line["reason"] and not report.is_complete(line), change


def run_of(date, **values):
    lines = [{**LINE, "peer": peer, "seconds": ratio, "ratio": ratio} for peer, ratio in values.items()]
    return {"size": "short", "machine_kind": "xeon2", "date": date, "commit": "0123456",
            "rows": [{"row": "a", "version": "0", "peers": lines}]}


def test_the_newest_stored_run_of_this_kind_of_machine(tmp_path):
    def store(name, told):
        (tmp_path / f"bench-{told['machine_kind']}-{told['date'][:10]}-{name}.json").write_text(json.dumps(told))

    store("a", run_of("2026-11-20T00:00:00+00:00", x=1.0))
    store("b", run_of("2026-11-28T00:00:00+00:00", x=2.0, y=3.0))
    store("c", {**run_of("2026-11-29T00:00:00+00:00"), "size": "quick"})
    store("d", {**run_of("2026-11-29T00:00:00+00:00"), "machine_kind": "epyc2"})
    (tmp_path / f"bench-xeon2-{'2026-11-30'}-e.json").write_text("{")
    path, before = report.stored(tmp_path, "xeon2", "short")
    assert path.name.endswith("-b.json") and before["date"].startswith("2026-11-28")
    text, told = report.comparison(before, run_of("2026-11-30T00:00:00+00:00", x=3.0, z=1.0))
    assert [tuple(line.values()) for line in told] == [("a", "x", 2.0, 3.0, 0.5), ("a", "z", None, 1.0, None),
                                                      ("a", "y", 3.0, None, None)]
    assert text.splitlines()[1].split() == ["a", "x", "2.00", "3.00", "+50", "%"]
    assert report.stored(tmp_path, "h200", "short") is None


def test_a_wrong_answer_of_ours_is_said():
    told = {"seconds": {"median": 1.0}, "verified_queries": 64, "wrong_queries": 1, "queries": 10, "peers": []}
    own, _ = adapters.knn(told)
    assert own["exact"] is False
    rows = [{"row": "r", "version": "0", "vicinal": own, "peers": []}]
    assert "63 of 64 sampled queries right WRONG" in report.table(rows)


def test_results_that_are_stored_have_the_shape_of_today():
    """The scripts' stored results of devices, which the tests cannot run."""
    results = SOURCE / "bench/results"
    own, lines = adapters.gpu_knn(json.loads((results / "knn-device-peers-h200-2026-11-22-5f7a399.json").read_text()))
    assert own["exact"] is True and {line["peer"] for line in lines} >= {"torch float32", "torch tf32"}
    lines = [report.finish(line) for line in lines]
    assert all(line["ratio"] > 0 for line in lines if "reason" not in line)
    own, lines = adapters.gpu_kmeans(json.loads((results / "kmeans-device-h200-2026-11-22-819990a.json").read_text()))
    assert own["exact"] is True and all("reason" in line for line in lines)  # labels were not checked then


def match_script():
    """bench/peers/match.py, as a module."""
    pytest.importorskip("geopandas")
    spec = importlib.util.spec_from_file_location("match_script", SOURCE / "bench/peers/match.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_similarities_are_compared_pair_by_pair():
    np = pytest.importorskip("numpy")
    error = match_script().similarity_error
    a, b, areas = np.array([0, 1]), np.array([0, 1]), np.array([0.9, 0.5])
    assert error({(0, 0): 0.9, (1, 1): 0.5}, a, b, areas) == 0
    # The IoU of another pair, and a pair that does not meet.
    assert abs(error({(0, 0): 0.5, (1, 1): 0.5}, a, b, areas) - 0.4) < 1e-12
    assert error({(0, 1): 0.9}, a, b, areas) == 0.9


TOPO_TOOLS = """#!{python}
import pathlib, sys
old, new, out, *options = sys.argv[2:]
assert options == ["--threads", "3", "--code-column-a", "code", "--code-column-b", "code"], options
with open({calls!r}, "a") as calls:
    calls.write("call\\n")
rows = "code_a,code_b,similarity\\n1-1,1-1,0.75\\n0-1,0-1,0.5\\n0-0,,\\n"
pathlib.Path(out).write_text("\\ufeff" + rows, encoding="utf-8")
"""


def test_topo_tools_is_warmed_up_and_names_pairs(tmp_path, monkeypatch):
    """By a program of its name that writes a table like its own."""
    module = match_script()
    command.make_squares(tmp_path, 4)
    program, calls = tmp_path / "topo-tools", tmp_path / "calls"
    program.write_text(TOPO_TOOLS.format(python=sys.executable, calls=str(calls)))
    program.chmod(0o755)
    monkeypatch.setattr(module.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(module.importlib.metadata, "version", lambda name: "0")
    options = types.SimpleNamespace(old=tmp_path / "squares-4-old.geojson", new=tmp_path / "squares-4-new.geojson",
                                    threads=3)
    found = module.topo_tools(options, tmp_path)
    assert calls.read_text().count("call") == 2 and len(found["seconds"]) == 1 and found["warm_up_seconds"] > 0
    # Codes are "column-row" of the square; a new map may lack some of them.
    numbers = module.names_of(options.new)[1]
    assert found["pairs"] == {(3, numbers["1-1"]): 0.75, (1, numbers["0-1"]): 0.5}


def test_threads_reach_every_row(tmp_path):
    """Each script gets --threads; libraries that are not told by a call read variables."""
    (tmp_path / "vicinal").touch()
    builds = types.SimpleNamespace(bench=tmp_path, command=lambda: tmp_path / "vicinal", package=lambda: tmp_path)
    options = types.SimpleNamespace(threads=3, timeout=60.0, commit="0")
    for row in catalog.ROWS:
        for size in catalog.SIZES:
            if catalog.words(row, size) is None:
                continue
            run = command.Run(row, size, options, builds, "python", tmp_path, tmp_path)
            run.carried, run.cudss = lambda: tmp_path, lambda: "libcudss.so"
            words, environment = run.command()
            words = list(map(str, words))
            assert words.count("--threads") == 1, (row.name, size, words)
            threads = words[words.index("--threads") + 1]
            assert threads == ("1,3" if row.script == "ready" and size == "full" else "3"), (row.name, size)
            assert all(environment[name] == "3" for name in command.THREAD_VARIABLES)


def test_a_library_with_one_thread_says_so():
    peers = {peer for row in catalog.ROWS for peer in row.peers}
    assert set(adapters.ONE_THREAD) <= peers
    assert adapters.say_one_thread({**LINE, "peer": "libann"})["exactness"] == "all right; one thread"
    assert adapters.say_one_thread(LINE) == LINE
    told = {"sets": [{"missing": {}, "sides": {"pdx": {"version": "1"}}, "results": []}]}
    assert [line["peer"] for line in adapters.ready(told)[1]] == ["pdx"]
    assert "one thread" in adapters.ready(told)[1][0]["reason"]


def test_a_library_that_was_ended_has_a_bound():
    sample = {"length_error": 0.0, "wrong_edges": 0, "joins_all_rows": True}
    ended = {"error": "did not end in 250 s", "ended_after_seconds": 250}
    found = {"min_samples": 10, "sample": sample, "vicinal": {"seconds": 40.0}, "vicinal_tree": {"seconds": 20.0},
             "quitefastmst": ended, "hdbscan": ended, "sklearn": {"error": "no module"}}
    own, lines = adapters.density({"time": [found], "packages": {}})
    rows = [{"row": "density-fashion", "group": "density", "version": "0.1.0", "vicinal": own,
             "peers": [report.finish(line) for line in lines]}]
    assert [line.get("at_least") for line in lines] == [12.5, 6.25, None]
    assert "> 12.50  not compared" in report.table(rows)
    assert "quitefastmst: did not end in 250 s; ours took 20 s" in report.table(rows)
    assert not any(report.is_complete(line) for line in rows[0]["peers"])
    door.judge(argparse.Namespace(verify=False), {"rows": rows})
    with pytest.raises(door.Failure, match="no library could be compared"):
        door.judge(argparse.Namespace(verify=False), {"rows": [{**rows[0], "peers": rows[0]["peers"][2:]}]})


STARTS_A_PROCESS = """
import json, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(json.dumps({"child": child.pid}), flush=True)
input()
"""


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_a_library_has_started_is_ended_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(density_times, "WORKER", tmp_path / "worker.py")
    density_times.WORKER.write_text(STARTS_A_PROCESS)
    peer = density_times.Peer("any", tmp_path / "table.npy", 25, 10, 1)
    child = peer.answer(60)["child"]
    assert is_running(child)
    peer.close()
    deadline = time.monotonic() + 20
    while is_running(child):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_optics_is_compared_by_wall_seconds():
    told = {"optics": [{"kdtree_seconds": 2.0, "direct_seconds": 9.0, "sklearn_seconds": 8.0, "same_order": True}],
            "packages": {"scikit-learn": "1"}}
    own, (line,) = adapters.optics(told)
    assert own["seconds"] == 2 and report.finish(line)["ratio"] == 4


def test_labels_of_flash_kmeans_are_those_of_its_centers(monkeypatch):
    """By a package of its name that returns what flash-kmeans returns: labels, and centers that are updated after."""
    np = pytest.importorskip("numpy")

    class Tensor(np.ndarray):
        def clone(self):
            return self.copy()

    def nearest(rows, centers):
        return ((rows[:, None] - centers[None]) ** 2).sum(-1).argmin(1)

    def batch_kmeans_Euclid(table, n_clusters, max_iters, tol, init_centroids):
        rows, centers = table[0], init_centroids[0]
        assert tol < 0 and len(centers) == n_clusters
        for _ in range(max_iters):
            labels = nearest(rows, centers)
            centers = np.stack([rows[labels == i].mean(0) for i in range(n_clusters)])
        return labels[None], centers[None].view(Tensor), max_iters

    monkeypatch.syspath_prepend(str(SOURCE / "bench/gpu"))
    torch = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(is_available=lambda: False)
    flash = types.ModuleType("flash_kmeans")
    flash.batch_kmeans_Euclid = batch_kmeans_Euclid
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "flash_kmeans", flash)
    for name in ("library", "measure"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    spec = importlib.util.spec_from_file_location("gpu_kmeans_script", SOURCE / "bench/gpu/kmeans.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows = np.random.default_rng(0).standard_normal((500, 2)).view(Tensor)
    work = module.Flash(rows, rows[:8])
    work.run(2)
    _, centers, _ = batch_kmeans_Euclid(rows[None], 8, 2, -1.0, rows[None, :8])
    assert (work.centres == centers[0]).all() and (work.labels == nearest(rows, work.centres)).all()
    for name in ("library", "measure"):
        sys.modules.pop(name, None)

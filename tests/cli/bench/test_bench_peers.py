"""`vicinal-bench peers`: the listing, wrong arguments, libraries that are missing, rows that are compared, what is said
of lines without figures, and the comparison with a stored run. No time is judged."""
# ctest: COST 60

import json
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
SUITE = SOURCE / "bench/peers/suite"
sys.path.insert(0, str(SUITE))
import adapters  # noqa: E402
import catalog  # noqa: E402
import environments  # noqa: E402
import report  # noqa: E402

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


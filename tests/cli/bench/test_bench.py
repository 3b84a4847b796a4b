"""`vicinal-bench`: its help, the data it makes, peers that are right, wrong, missing, broken or slow, and what it prints."""
# ctest: COST 40

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
USAGE = 2

# What a peer does in these tests is decided by the name it is called by.
FAKE = '''
import json, os, pathlib, sys, time
import numpy as np

name, words = sys.argv[1], sys.argv[2:]
given = {word: words[i + 1] for i, word in enumerate(words[:-1]) if word.startswith("-")}
table, queries = np.load(given["--table"]), np.load(given["--queries"])
k, here, output = int(given["-k"]), pathlib.Path(__file__).parent, pathlib.Path(given["--output"])
np.save(here / "seen_table.npy", table)
np.save(here / "seen_queries.npy", queries)
if name == "sklearn":
    print(json.dumps({"error": "RuntimeError: it has a cold"}), flush=True)
    sys.exit(1)
if name == "sklearnex":
    sys.exit("a cold it has")
if name == "pykdtree":
    time.sleep(60)
if name == "nanoflann":
    print("no JSON", flush=True)
squared = ((queries[:, None].astype(np.float64) - table[None].astype(np.float64)) ** 2).sum(axis=2)
if name == "scipy":  # of equal rows the last one first
    ids = len(table) - 1 - np.argsort(squared[:, ::-1], axis=1, kind="stable")[:, :k]
else:
    ids = np.argsort(squared, axis=1, kind="stable")[:, :k]
distances = np.sqrt(np.take_along_axis(squared, ids, axis=1))
if name == "faiss":  # wrong in three queries: a farther row, one row twice, no row
    ids[0, -1] = squared[0].argmax()
    ids[1, -1] = ids[1, 0]
    ids[2, 0] = -1
np.save(output / "ids.npy", ids[:, : k - 1] if name == "libann" else ids)
np.save(output / "distances.npy", distances)
about = {"name": name, "version": "1.2.3", "dtype": table.dtype.name, "threads": int(given["--threads"]), "note": "fake"}
call = {"build": 0.25, "query": 0.5, "total": float(os.environ.get("FAKE_SECONDS", 0.75)), "cpu": 1.5}
print(json.dumps({**about, "warmup": call}), flush=True)
for line in sys.stdin:
    print(json.dumps(call), flush=True)
'''


@pytest.mark.parametrize("name", ["", "knn", "read", "match", "peak", "papers"])
def test_help_and_its_examples(run_examples, small_files, name):
    run_examples(*name.split())


@pytest.mark.parametrize("arguments", ["knn --rows 500 --queries 50 --dims 8 --repeat 2 --verify", "knn --explain", "peak"])
def test_json(ok_json, arguments):
    assert isinstance(ok_json(*arguments.split()), dict)


@pytest.fixture
def fake(tmp_path, ok_json):
    """Runs `bench knn` with the fake peers; returns its JSON."""
    folder = tmp_path / "peers"
    folder.mkdir()
    (folder / "knn.py").write_text(FAKE)
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def run(names, *arguments, rows=300):
        size = () if "--table-file" in arguments else ("--rows", rows, "--queries", 40, "--dims", 3)
        found = ok_json(
            "knn", *size, "-k", 5, "--repeat", 2, "--peers", names, "--peers-dir", folder,
            "--peers-python", sys.executable, *arguments, env={**os.environ, "TMPDIR": str(scratch)},
        )  # fmt: skip
        assert list(scratch.iterdir()) == []
        return found

    run.folder = folder
    return run


def test_a_right_and_a_wrong_peer(fake):
    found = fake("sklearn-tree,faiss", "--verify", "--threads", 1)
    right, wrong = found["peers"]
    assert right["name"] == "sklearn-tree" and right["version"] == "1.2.3" and right["threads"] == 1
    assert right["correct_rows"] == 40 and right["correct_share"] == 1 and right["distance_error"] < 1e-12
    assert right["total"]["runs"] == [0.75, 0.75] and right["build"]["median"] == 0.25 and right["query"]["min"] == 0.5
    assert right["cpu"]["max"] == 1.5
    assert right["ratio"] == pytest.approx(0.75 / found["seconds"]["median"])
    assert wrong["name"] == "faiss" and wrong["correct_rows"] == 37
    assert found["fastest_peer"] in ("faiss", "sklearn-tree")
    assert found["ratio_to_fastest"] == pytest.approx(0.75 / found["seconds"]["median"])
    assert found["wrong_queries"] == 0


@pytest.mark.parametrize("without, method", [("fusion", "fused"), ("tree-order", "kdtree")])
def test_without_an_idea_the_answers_stay(ok_json, without, method):
    for screen in ["int8", "bfloat16", "float32"] if method == "fused" else ["automatic"]:
        found = ok_json(
            "knn", "--rows", 3000, "--queries", 200, "--dims", 20, "-k", 7, "--repeat", 1, "--verify",
            "--method", method, "--screen", screen, "--without", without,
        )  # fmt: skip
        assert found["without"] == without and found["wrong_queries"] == 0


def test_ties_are_right_in_any_order(fake):
    found = fake("scipy", "--data", "duplicates", "--dtype", "float64")
    assert found["peers"][0]["correct_rows"] == 40
    table = np.load(fake.folder / "seen_table.npy")
    assert table.dtype == np.float64 and len(np.unique(table, axis=0)) == 30


def test_peers_that_fail_are_told_and_the_others_go_on(fake, ok):
    found = fake("all", "--peer-timeout", 10)
    errors = {peer["name"]: peer.get("error") for peer in found["peers"]}
    assert errors["faiss"] is None and errors["scipy"] is None and errors["sklearn-tree"] is None
    assert errors["sklearn"] == "RuntimeError: it has a cold"
    assert errors["sklearnex"] == "it ended: a cold it has"
    assert errors["pykdtree"] == "no answer within 10 s (--peer-timeout)"
    assert "cannot be read" in errors["nanoflann"]
    assert errors["libann"] == "its answer has another shape"
    assert len(errors) == 8


def test_a_slow_peer_is_judged_by_its_warm_up(fake, monkeypatch):
    monkeypatch.setenv("FAKE_SECONDS", "25")  # a call is said to take: too long for a second one
    (peer,) = fake("scipy", "--peer-timeout", 30)["peers"]
    assert peer["total"]["runs"] == [25] and peer["correct_rows"] == 40


def test_the_table_of_peers(fake, ok, tmp_path):
    printed = ok(
        "knn", "--rows", 300, "--queries", 40, "--dims", 3, "-k", 5, "--repeat", 1, "--peers", "faiss,sklearn",
        "--peers-dir", fake.folder, "--peers-python", sys.executable,
    )  # fmt: skip
    heading, ours, faiss, sklearn = printed.split("\n\n")[1].splitlines()
    assert heading.split() == "version build s query s total s least s to ours right rows distance error".split()
    assert ours.split()[0] == "vicinal" and ours.split()[-1] == "1.00"
    assert faiss.split()[:6] == ["faiss", "1.2.3", "0.250", "0.500", "0.750", "0.750"] and " 37 of 40 " in faiss
    assert sklearn == "sklearn: RuntimeError: it has a cold"


def test_files_of_every_layout(fake, tmp_path):
    generator = np.random.default_rng(3)
    table = generator.integers(0, 9, size=(50, 4), dtype=np.uint8)
    np.save(tmp_path / "table.npy", np.asfortranarray(table))
    np.save(tmp_path / "queries.npy", table[:6].astype(np.float32))
    found = fake("scipy", "--table-file", "table.npy", "--queries-file", "queries.npy")
    assert found["peers"][0]["correct_rows"] == 6
    assert np.array_equal(np.load(fake.folder / "seen_table.npy"), table)


def test_real_libraries(ok_json):
    """knn.py itself, with the libraries that the tests have anyway, and one that they lack."""
    pytest.importorskip("sklearn")
    found = ok_json(
        "knn", "--rows", 2000, "--queries", 100, "--dims", 5, "-k", 7, "--repeat", 1, "--data", "duplicates",
        "--peers", "sklearn,sklearn-tree,scipy,faiss", "--peers-dir", SOURCE / "bench/peers",
        "--peers-python", sys.executable, timeout=600,
    )  # fmt: skip
    *there, lacking = found["peers"]
    for peer in there:
        assert peer["correct_rows"] == 100 and peer["distance_error"] < 1e-6, peer
        assert peer["total"]["median"] >= peer["query"]["median"] > 0
    assert lacking["name"] == "faiss" and ("error" in lacking or lacking["correct_rows"] == 100)


def test_made_data(fake):
    def made(kind, *more):
        fake("scipy", "--data", kind, "--dtype", "float64", *more, rows=2000)
        return [np.load(fake.folder / f"seen_{name}.npy") for name in ("table", "queries")]

    for kind in ("gaussian", "uniform", "blobs", "clusters", "duplicates", "embedded"):
        table, queries = made(kind)
        assert table.shape == (2000, 3) and queries.shape == (40, 3)
        assert np.array_equal(table, made(kind)[0]), kind
        assert not np.array_equal(table, made(kind, "--seed", 1)[0]), kind
    # Without spread, clusters are their centers.
    table, queries = made("clusters", "--sigma", 0)
    assert 700 < len(np.unique(table, axis=0)) <= 1000
    known = {tuple(row) for row in made("duplicates")[0]}
    assert sum(tuple(row) in known for row in made("duplicates")[1]) == 36
    assert np.abs(made("embedded")[0]).max() <= 1


def test_peak(ok_json, ok):
    rates = ok_json("peak")
    assert rates["threads"] >= 1
    for name in ("float32_gflops", "bfloat16_gflops", "int8_gops"):
        assert rates[name] is None or rates[name] > 0
    found = ok_json("knn", "--rows", 500, "--queries", 50, "--dims", 8, "--repeat", 1, "--peak")
    assert (found["fraction_of_peak"] is None) == (found["peak"]["float32_gflops"] is None)
    assert "peak GFLOP/s" in ok("peak", "--threads", 1)


CASES = {
    "unknown peer": (["--peers", "faiss,fais"], ["--peers", "'fais'", "faiss", "brute", "libann"]),
    "no peer": (["--peers", "scipy,,faiss"], ["--peers", "''"]),
    "no time": (["--peers", "scipy", "--peer-timeout", 0], ["--peer-timeout", "0"]),
    "another metric": (["--peers", "scipy", "--metric", "manhattan"], ["--peers", "manhattan"]),
    "a filter": (["--peers", "scipy", "--filter", "filter.npy"], ["--peers", "--filter"]),
    "within itself": (["--peers", "scipy", "--queries", 0], ["--peers", "--queries"]),
    "no Python": (["--peers", "scipy", "--peers-python", "nowhere"], ["--peers-python", "nowhere", "vicinal-bench peers knn"]),
    "no script": (["--peers", "scipy", "--peers-dir", "nowhere"], ["--peers-dir", "nowhere", "knn.py"]),
    "sigma": (["--data", "clusters", "--sigma", -1], ["--sigma", "-1"]),
    "unknown data": (["--data", "noise"], ["--data", "noise", "clusters"]),
}


@pytest.mark.parametrize("arguments, words", CASES.values(), ids=CASES.keys())
def test_argument_errors(vicinal, fake, arguments, words):
    size = ["--rows", 100] if "--queries" in arguments else ["--rows", 100, "--queries", 10]
    place = [] if "--peers-dir" in arguments else ["--peers-dir", fake.folder]
    done = vicinal("knn", *size, "--dims", 2, *place, *arguments)
    assert done.returncode == USAGE and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    for word in words:
        assert word in done.stderr


def test_python_from_the_environment(vicinal, fake):
    done = vicinal(
        "knn", "--peers", "scipy", "--peers-dir", fake.folder,
        env={**os.environ, "VICINAL_PEERS_PYTHON": "/nowhere/python"},
    )  # fmt: skip
    assert done.returncode == USAGE and "VICINAL_PEERS_PYTHON" in done.stderr


def test_float16_has_no_peers(vicinal, fake, tmp_path):
    np.save(tmp_path / "half.npy", np.ones((9, 2), np.float16))
    done = vicinal(
        "knn", "--table-file", "half.npy", "--queries-file", "half.npy", "-k", 2, "--peers", "scipy",
        "--peers-dir", fake.folder, "--peers-python", sys.executable,
    )  # fmt: skip
    assert done.returncode == USAGE and "float16" in done.stderr


def test_lists_agree(ok):
    """knn.py and the command know the same peers."""
    script = SOURCE / "bench/peers/knn.py"
    names = subprocess.run([sys.executable, script, "--list"], check=True, capture_output=True, text=True).stdout.split()
    offered = ok("knn", "--help").split("--peers {")[1].split("}")[0].split(",")
    assert sorted(offered) == sorted(["all", "brute", "trees", *names])

"""`mpirun -n 3 vicinal knn TABLE -o DIR/`: the merged parts are the file of one process, byte by byte; one rank speaks,
and if one fails, all end with one sentence.

VICINAL_COMMAND is the command.
"""

# ctest: COST 40
# ctest: TIMEOUT 600

import json
import os
import subprocess

import numpy as np
import pytest

from mpirun import AT_ONCE, MPIRUN, OPTIONS

COMMAND = os.environ.get("VICINAL_COMMAND", "")
LIMIT = 120  # s, of which a run takes one

pytestmark = pytest.mark.skipif(not (COMMAND and MPIRUN and os.environ.get("VICINAL_MPI_RANKS")),
                                reason="the plug-in for MPI is not built here, or no mpirun")


@pytest.fixture
def run(tmp_path):
    """Runs the command by so many ranks, 0: without mpirun."""

    def run_command(ranks, *words):
        starter = [MPIRUN, "-n", str(ranks), *OPTIONS] if ranks else []
        return subprocess.run([*starter, COMMAND, *map(str, words)], cwd=tmp_path, capture_output=True, text=True,
                              timeout=LIMIT, env=AT_ONCE)

    return run_command


@pytest.fixture
def ok(run):
    def run_command(*words):
        ran = run(*words)
        assert ran.returncode == 0, ran
        return ran

    return run_command


@pytest.fixture
def tables(tmp_path):
    """table.npy and table.csv, most of whose rows have copies, two queries, and a filter."""
    generator = np.random.default_rng(8)
    made = generator.integers(0, 5, (157, 3)) / 4
    np.save(tmp_path / "table.npy", made)
    np.savetxt(tmp_path / "table.csv", made, delimiter=",", fmt="%g")
    np.save(tmp_path / "queries.npy", generator.integers(0, 5, (2, 3)) / 4)
    np.save(tmp_path / "few.npy", np.arange(157) % 3 == 1)
    return made


def errors(ran):
    return [line for line in ran.stderr.splitlines() if "error:" in line]


@pytest.mark.parametrize("ranks, search", [
    (1, "knn table.npy -k 7"),
    (2, "knn table.npy -k 7"),
    (3, "knn table.csv -k 60 --metric manhattan"),
    (3, "knn table.npy queries.npy -k 5"),
    (3, "knn table.npy -k 5 --metric minkowski --p 1.5 --filter few.npy"),
    (3, "knn table.npy queries.npy -k 41 --filter few.npy --method kdtree --threads 2"),
    (1, "radius table.npy -r 0.5"),
    (3, "radius table.csv -r 0.25 --metric chebyshev"),
    (3, "radius table.npy queries.npy -r 1 --filter few.npy"),
    (3, "radius table.npy -r 0 --method kdtree"),
    (2, "radius table.npy -r 0.5 --count"),
    (3, "radius table.npy queries.npy -r 0.75 --count --filter few.npy --threads 2"),
])
def test_merged_parts_are_the_file_of_one_process(ok, tmp_path, tables, ranks, search):
    whole, merged = ("whole.npy", "merged.npy") if "--count" in search else ("whole.npz", "merged.npz")
    ok(0, *search.split(), "-o", whole)
    told = ok(ranks, *search.split(), "-o", "out/")
    by = f"found by {ranks} rank" + ("s" if ranks > 1 else "")
    assert told.stdout == "" and told.stderr.count(by) == 1, told
    assert told.stderr.count("written: out/manifest.json") == 1, told
    ok(0, "merge", "out/", "-o", merged)
    assert (tmp_path / merged).read_bytes() == (tmp_path / whole).read_bytes()
    parts = sorted(path.name for path in (tmp_path / "out").glob("*.part"))
    ok(0, "merge", *(f"out/{name}" for name in parts), "-o", merged)
    assert (tmp_path / merged).read_bytes() == (tmp_path / whole).read_bytes()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert sorted(part["file"] for part in manifest["parts"]) == parts
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*parts, "manifest.json"}


def test_one_rank_prints_json(ok, tables):
    told = json.loads(ok(3, "knn", "table.npy", "-k", 3, "-o", "out/", "--json").stdout)
    assert told["ranks"] == 3 and told["parts"] == ["0.part", "52.part", "104.part"]
    assert told["search"]["queries"] == 157 and told["neighbors"] == 471 and told["files"] == ["out/manifest.json"]
    for more in ([], ["--count"]):
        told = json.loads(ok(3, "radius", "table.npy", "-r", 1, *more, "-o", "out/", "--json").stdout)
        whole = json.loads(ok(0, "radius", "table.npy", "-r", 1, *more, "--json").stdout)
        assert told["command"] == "radius" and told["neighbors"] == whole["neighbors"]
        assert told["search"]["kind"] == ("count" if more else "radius") and told["search"]["radius"] == 1


def test_plan_says_what_is_sent(ok, tmp_path, tables):
    plan = json.loads(ok(3, "knn", "table.npy", "-k", 3, "-o", "out/", "--explain", "--json").stdout)["plan"]
    # Shards of 52, 52 and 53 rows of 3 float64, each sent twice.
    assert "each shard is sent from rank to rank, in all 7.5 kB" in plan["reason"]
    assert not (tmp_path / "out").exists()


def test_parts_of_an_earlier_search_are_not_taken(ok, tmp_path, tables):
    ok(0, "knn", "table.npy", "-k", 4, "-o", "whole.npz")
    ok(3, "knn", "table.npy", "-k", 9, "-o", "out/")
    ok(2, "knn", "table.npy", "-k", 4, "-o", "out/")
    assert (tmp_path / "out" / "52.part").exists()
    ok(0, "merge", "out", "-o", "merged.npz")
    assert (tmp_path / "merged.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_all_ranks_end_with_one_sentence(run, ok, tmp_path, tables):
    bad = tables.copy()
    bad[120, 1] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    np.save(tmp_path / "two.npy", tables[:2])
    (tmp_path / "file").write_text("no folder")
    for words, code, sentence in [
        ("bad.npy -k 3 -o out/", 3, "rank 2: bad.npy: row 120, column 1 is not a finite number"),
        ("table.npy -k 157 -o out/", 2, "k: is 157, but at most 156 of the 157 table rows can be neighbors; a row is "
                                        "not its own neighbor"),
        ("none.npy -k 3 -o out/", 3, "rank 0: cannot open 'none.npy': No such file or directory"),
        ("two.npy -k 1 -o out/", 2, "rank 0: mpirun: 3 ranks, but two.npy has 2 rows, and each rank needs one"),
        ("table.npy -k 3 -o file/", 3, "rank 0: -o: the folder 'file/' cannot be made"),
        ("table.npy -k 3 -o no/out/", 3, "rank 0: -o: the folder 'no/out/' cannot be made"),
        ("table.npy -k 3 --rows :9 -o out/", 2, "rank 0: --rows: needs a file for the part, -o FILE.part"),
        ("table.npy -k 3 --max-radius 1 -o out/", 2, "rank 0: --max-radius: parts have lists of k"),
        ("table.npy -k 3 --id x0 -o out/", 2, "rank 0: -o DIR/: a part has row numbers, so --id cannot be combined"),
        ("table.npy -k 3 --memory-limit 10k -o out/", 4, "rank 0: knn needs"),
    ]:
        ran = run(3, "knn", *words.split())
        assert ran.returncode == code, ran
        assert len(errors(ran)) == 1 and sentence in errors(ran)[0], ran
        assert not list(tmp_path.glob("out/*"))


def test_a_radius_that_is_wrong_is_one_sentence(run, tmp_path, tables):
    for words, code, sentence in [
        ("table.npy -r -1 -o out/", 2, "rank 0: radius: is negative"),
        ("table.npy -r -1 --count -o out/", 2, "rank 0: radius: is negative"),
        ("table.npy -r 1 --symmetric union -o out/", 2, "rank 0: -o DIR/: --symmetric changes merged lists only"),
        ("table.npy -r 1 --memory-limit 10k -o out/", 4, "rank 0: radius needs"),
        ("table.npy -r 1 --memory-limit 10k --count -o out/", 4, "rank 0: radius needs"),
    ]:
        ran = run(3, "radius", *words.split())
        assert ran.returncode == code, ran
        assert len(errors(ran)) == 1 and sentence in errors(ran)[0], ran
        assert not list(tmp_path.glob("out/*"))


def test_ranks_share_the_cores(ok, tables):
    cores = len(os.sched_getaffinity(0))
    for more in ([], ["--memory-limit", "1G"], ["--explain"]):
        told = json.loads(ok(2, "knn", "table.npy", "-k", 3, "-o", "out/", "--json", *more).stdout)
        assert told["plan"]["threads"] == max(1, cores // 2)


def test_a_note_is_printed_once(ok, tmp_path, tables):
    (tmp_path / "table.libsvm").write_text("".join(f"{i % 3} 1:{i} 4:{i % 7}\n" for i in range(1, 60)))
    assert ok(3, "knn", "table.libsvm", "-k", 3, "-o", "out/").stderr.count("dense") == 1


def test_all_ranks_see_the_same_files(ok, run, tmp_path, tables):
    np.save(tmp_path / "table0.npy", tables)
    np.save(tmp_path / "table1.npy", tables[:156])
    for words, code, sentence in [
        ("table$OMPI_COMM_WORLD_RANK.npy -k 3 -o out/", 3, "table0.npy: has 157 rows for rank 0, but 156 for rank 1"),
        ("table.npy table$OMPI_COMM_WORLD_RANK.npy -k 3 -o out/", 3, "has 157 rows for rank 0, but 156 for rank 1"),
        ("table.npy -k 3 -o out$OMPI_COMM_WORLD_RANK/", 2, "-o: is not the folder of rank 0"),
        ("table.npy -k 3 -o out$(printf %0$((8 + OMPI_COMM_WORLD_RANK))d 1)/", 2, "-o: is not the folder of rank 0"),
    ]:
        ran = subprocess.run([MPIRUN, "-n", "2", *OPTIONS, "sh", "-c", f"exec {COMMAND} knn {words}"], cwd=tmp_path,
                             capture_output=True, text=True, timeout=LIMIT, env=AT_ONCE)
        assert ran.returncode == code and len(errors(ran)) == 1 and sentence in errors(ran)[0], ran
        assert not list(tmp_path.glob("out*"))
    np.save(tmp_path / "other.npy", tables[::-1])
    ok(2, "knn", "table.npy", "-k", 4, "-o", "a/")
    ok(2, "knn", "other.npy", "-k", 4, "-o", "b/")
    (tmp_path / "b" / "78.part").rename(tmp_path / "a" / "78.part")
    ran = run(0, "merge", "a/", "-o", "merged.npz")
    assert ran.returncode == 3 and "a/78.part: is not the part that a/manifest.json names" in errors(ran)[0], ran


def test_the_memory_that_is_asked_for_is_enough(run, ok, tables):
    few = errors(run(3, "knn", "table.npy", "-k", 3, "--memory-limit", "100k", "-o", "out/"))[0]
    needed = int(few.split("(")[1].split(" bytes")[0])
    limited = ["knn", "table.npy", "-k", 3, "--memory-limit", needed, "-o", "out/"]
    plan = json.loads(ok(3, *limited, "--explain", "--json").stdout)["plan"]
    assert plan["memory_bytes"] <= needed, plan
    ok(3, *limited)


def test_a_part_that_cannot_be_written_leaves_all_as_it_was(run, ok, tmp_path, tables):
    ok(0, "knn", "table.npy", "-k", 4, "-o", "whole.npz")
    ok(2, "knn", "table.npy", "-k", 4, "-o", "out/")
    (tmp_path / "out" / "52.part").mkdir()  # of rank 1 of 3
    ran = run(3, "knn", "table.npy", "-k", 5, "-o", "out/")
    assert ran.returncode == 3 and len(errors(ran)) == 1 and "rank 1: " in errors(ran)[0], ran
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"0.part", "52.part", "78.part", "manifest.json"}
    ok(0, "merge", "out/", "-o", "merged.npz")
    assert (tmp_path / "merged.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()

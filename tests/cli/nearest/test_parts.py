"""Parts of a search in files, and their merge: the same files as those of the whole search (docs/scale.md)."""

import itertools
import json

import numpy as np
import pytest


@pytest.fixture
def tables(tmp_path):
    """table.npy, most of whose rows have copies, and queries.npy."""
    generator = np.random.default_rng(8)
    made = generator.integers(0, 5, (157, 3)) / 4
    np.save(tmp_path / "table.npy", made)
    np.save(tmp_path / "queries.npy", generator.integers(0, 5, (31, 3)) / 4)
    np.save(tmp_path / "few.npy", np.arange(157) % 3 == 1)
    return made


CUTS = [(90, None), (0, 60), (62, 90), (60, 62)]


def write_parts(ok, *arguments):
    names = []
    for begin, end in CUTS:
        names.append(f"{begin}.part")
        ok(*arguments, "--rows", f"{begin or ''}:{end or ''}", "-o", names[-1])
    return names


SEARCHES = [
    "knn table.npy -k 7",
    "knn table.npy queries.npy -k 61 --metric manhattan",
    "knn table.npy -k 5 --metric minkowski --p 1.5 --filter few.npy",
    "knn table.npy queries.npy -k 3 --method kdtree --threads 1",
    "radius table.npy -r 0.5",
    "radius table.npy queries.npy -r 0.25 --metric cosine",
    "radius table.npy -r 0.5 --filter few.npy",
]


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("suffix", ["npz", "csv"])
def test_merged_files_are_those_of_the_whole(ok, tmp_path, tables, search, suffix):
    names = write_parts(ok, *search.split())
    ok(*search.split(), "-o", f"whole.{suffix}")
    for order in (names, names[::-1]):
        ok("merge", *order, "-o", f"merged.{suffix}")
        assert (tmp_path / f"merged.{suffix}").read_bytes() == (tmp_path / f"whole.{suffix}").read_bytes()


@pytest.mark.parametrize("queries", [[], ["queries.npy"]])
def test_counts_add_up(ok, tmp_path, tables, queries):
    search = ["radius", "table.npy", *queries, "-r", 0.5, "--count"]
    names = write_parts(ok, *search)
    for suffix in ("npy", "csv"):
        ok(*search, "-o", f"whole.{suffix}")
        ok("merge", *names, "-o", f"merged.{suffix}")
        assert (tmp_path / f"merged.{suffix}").read_bytes() == (tmp_path / f"whole.{suffix}").read_bytes()


def test_what_is_told(ok, ok_json, tables):
    part = ok_json("knn", "table.npy", "-k", 7, "--rows", "60:62", "-o", "a.part")
    assert part["part"] == {
        "kind": "knn", "first_id": 60, "rows": 2, "total_rows": 157, "first_query": 0, "queries": 157,
        "total_queries": 157, "self": True, "cols": 3, "metric": "euclidean", "k": 7}
    assert part["neighbors"] == 2 * 157 - 2 and part["files"] == ["a.part"]
    assert ok_json("info", "a.part")["part"] == part["part"]
    text = ok("info", "a.part")
    assert text.startswith("a.part: part of knn\nrows              60 to 61 of 157\n")
    names = write_parts(ok, "knn", "table.npy", "-k", 7)
    told = ok_json("merge", *names, "-o", "graph.npz")
    assert (told["kind"], told["parts"], told["rows"], told["table_rows"], told["k"]) == ("knn", 4, 157, 157, 7)
    assert told["neighbors"] == 7 * 157 and told["plan"]["memory_bytes"] >= 16 * 7 * 157
    planned = ok_json("merge", *names, "--explain")
    assert planned["plan"]["memory_bytes"] == told["plan"]["memory_bytes"]
    assert ok_json("knn", "table.npy", "-k", 7, "--rows", "0:60", "-o", "a.part", "--explain")["plan"]["memory_bytes"] > 0
    near = ok_json("radius", "table.npy", "-r", 0.5, "--rows", ":60", "-o", "b.part")
    assert near["part"]["radius"] == 0.5 and near["neighbors"] > 0


def refused(vicinal, *arguments, code=2):
    done = vicinal(*arguments)
    assert done.returncode == code, done
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_parts_that_do_not_fit_are_named(ok, vicinal, tmp_path, tables):
    names = write_parts(ok, "knn", "table.npy", "-k", 7)
    first, *others = names
    assert "rows 90 to 156 are missing" in refused(vicinal, "merge", *others, "-o", "x.npz")
    assert "rows 0 to 59, 62 to 89 are missing" in refused(vicinal, "merge", first, "60.part", "-o", "x.npz")
    assert "both have rows 60 to 61" in refused(vicinal, "merge", *names, "60.part", "-o", "x.npz")
    ok("knn", "table.npy", "-k", 8, "--rows", "0:60", "-o", "k8.part")
    assert "'k8.part' is 8, but" in refused(vicinal, "merge", "k8.part", *names, "-o", "x.npz")
    ok("radius", "table.npy", "-r", 1, "--rows", "0:60", "-o", "r.part")
    assert "the kind of 'r.part' is radius" in refused(vicinal, "merge", "r.part", "62.part", "-o", "x.npz")
    assert "k: is 200, but at most 156 of the 157 table rows" in refused(
        vicinal, "knn", "table.npy", "-k", 200, "--rows", "0:60", "-o", "x.part")
    assert "needs an output file" in refused(vicinal, "merge", *names)
    assert "-o" in refused(vicinal, "merge", *names, "-o", "x.npy")
    assert not list(tmp_path.glob("x.*"))


def test_damaged_parts_are_refused(ok, vicinal, tmp_path, tables):
    names = write_parts(ok, "knn", "table.npy", "-k", 7)
    whole = (tmp_path / "0.part").read_bytes()
    for damaged, why in ((whole[:-1], "follow"), (whole[:100], "header's length is wrong"), (b"", "too short"),
                         (whole[:-200] + bytes([whole[-200] ^ 1]) + whole[-199:], "check sum is wrong"), (b"id,x\n", "too short")):
        (tmp_path / "0.part").write_bytes(damaged)
        told = refused(vicinal, "merge", *names, "-o", "x.npz", code=3)
        assert "part file '0.part'" in told and why in told
        assert not (tmp_path / "x.npz").exists()
    refused(vicinal, "merge", "table.npy", "-o", "x.npz", code=3)
    refused(vicinal, "merge", "nothing.part", "-o", "x.npz", code=3)


@pytest.mark.parametrize("rows, why", [
    ("5", "no range of rows"), ("a:b", "no range of rows"), ("-1:5", "no range of rows"), ("7:7", "has no rows"),
    ("9:3", "has no rows"), ("0:158", "has rows 0 to 156"), ("157:", "has rows 0 to 156"),
    ("0:99999999999999999999", "no range of rows")])
def test_ranges_outside_of_the_table_are_refused(vicinal, tables, rows, why):
    for search in (["knn", "table.npy"], ["radius", "table.npy", "-r", 1]):
        assert why in refused(vicinal, *search, f"--rows={rows}", "-o", "x.part")


@pytest.mark.parametrize("options, why", [
    ([], "-o FILE.part"), (["-o", "x.npz"], "-o FILE.part"), (["-o", "x.part", "--include-self"], "--include-self"),
    (["-o", "x.part", "--report", "x.html"], "--report"), (["-o", "x.part", "--id", "0"], "--id"),
    (["-o", "x.part", "--missing", "drop"], "drop")])
def test_options_that_parts_cannot_follow_are_refused(vicinal, tmp_path, tables, options, why):
    assert why in refused(vicinal, "knn", "table.npy", "--rows", "0:9", *options)
    assert not list(tmp_path.glob("x.*"))


def test_a_merge_of_many_lists_takes_little_memory(ok, ok_json, vicinal, tmp_path):
    """Lists within a radius pass through: the limit is below what they take."""
    np.save(tmp_path / "table.npy", np.random.default_rng(1).random((3000, 2)))
    names = []
    for begin in (0, 1000, 2000):
        names.append(f"{begin}.part")
        ok("radius", "table.npy", "-r", 0.4, "--rows", f"{begin}:{begin + 1000}", "-o", names[-1])
    assert sum((tmp_path / name).stat().st_size for name in names) > 40e6
    ok("radius", "table.npy", "-r", 0.4, "-o", "whole.npz")
    told = ok_json("merge", *names, "-o", "merged.npz", "--memory-limit", "4M")
    assert told["plan"]["memory_bytes"] <= 4 << 20
    assert (tmp_path / "merged.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert "more than" in refused(vicinal, "merge", *names, "-o", "x.npz", "--memory-limit", "10k", code=4)


def test_a_folder_of_parts_without_mpirun(ok, ok_json, vicinal, tmp_path, tables):
    ok("knn", "table.npy", "-k", 4, "-o", "whole.npz")
    told = ok_json("knn", "table.npy", "-k", 4, "-o", "out/")
    assert told["ranks"] == 1 and told["parts"] == ["0.part"]
    for names in (["out"], ["out/"], ["out/manifest.json"], ["out/0.part"]):
        ok("merge", *names, "-o", "merged.npz")
        assert (tmp_path / "merged.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    for words, sentence in [("--rows :50", "--rows: needs a file for the part, -o FILE.part"),
                            ("--max-radius 1", "--max-radius: parts have lists of k; leave it out with -o DIR/"),
                            ("--report page.html", "-o DIR/: --report shows merged lists only")]:
        done = vicinal("knn", "table.npy", "-k", 4, "-o", "out/", *words.split())
        assert done.returncode == 2 and sentence in done.stderr


def test_manifests_that_are_none(ok, vicinal, tmp_path, tables):
    ok("knn", "table.npy", "-k", 4, "-o", "out/")
    path = tmp_path / "out" / "manifest.json"
    right = json.loads(path.read_text())

    def refused(text, sentence):
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        done = vicinal("merge", "out", "-o", "merged.npz")
        assert done.returncode == 3 and sentence in done.stderr, done

    for text in ("", "{", "[]", "1", "[" * 100000, {}, {**right, "format": "x"}, {**right, "parts": {}},
                 {**right, "search": 1}):
        refused(text, "out/manifest.json: is no manifest of parts")
    refused({**right, "version": 2}, "out/manifest.json: is a manifest of another version of vicinal")
    refused({**right, "parts": []}, "out/manifest.json: names no part")
    for part in (1, {}, {"file": 3}, {"file": "../0.part"}, {"file": "/0.part"}, {"file": ""}):
        refused({**right, "parts": [part]}, "out/manifest.json: names a part that is no file in its folder")
    refused({**right, "parts": [{"file": "1.part"}]}, "out/1.part")
    for change in ({"first_query": 1}, {"queries": 3}, {"queries": "x"}):
        refused({**right, "parts": [{**right["parts"][0], **change}]},
                "out/0.part: is not the part that out/manifest.json names")
    refused({**right, "search": {**right["search"], "metric": "cosine"}},
            "out/0.part: is not the part that out/manifest.json names")
    path.unlink()
    done = vicinal("merge", "out", "-o", "merged.npz")
    assert done.returncode == 3 and "out/manifest.json" in done.stderr and "No such file" in done.stderr

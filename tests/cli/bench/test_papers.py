"""`vicinal-bench papers`: the tables of the five papers, at small sizes, and what it tells of data that is none."""

import json
import pathlib
import re
import struct
from xml.etree import ElementTree

import numpy as np
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
USAGE = 2


@pytest.mark.parametrize("table", ["gs", "lof", "lle-search"])
def test_the_tables_of_the_papers(ok, ok_json, tmp_path, table):
    size = ("papers", table, "--most-rows", 120, "--repeat", 1, "--warmup", 0)
    found = ok_json(*size, "-o", "papers.json")
    assert json.loads((tmp_path / "papers.json").read_text()) == found
    assert found["command"] == f"bench papers {table}" and found["different_answers"] == 0
    for one in found["tables"]:
        assert {line["method"] for line in one["lines"]} == set(one["methods"])
        assert all(line["seconds"]["median"] > 0 for line in one["lines"])
    selecting = [line for one in found["tables"] for line in one["lines"] if line["selection_seconds"]]
    assert selecting and all(line["distance_gflops"] > 0 for line in selecting)
    assert "all methods with the same answers" in ok(*size)


def test_the_embeddings_of_the_paper(ok, ok_json, tmp_path):
    size = ("papers", "lle", "--most-rows", 200, "--spmv-rows", 300, "--repeat", 1, "--warmup", 0, "--device", "cpu")
    found = ok_json(*size, "-o", "papers.json")
    assert json.loads((tmp_path / "papers.json").read_text()) == found
    assert found["command"] == "bench papers lle" and found["different_answers"] == 0
    embeddings, products = (one["lines"] for one in found["tables"])
    assert {line["surface"] for line in embeddings} == {"swiss_roll", "s_curve"}
    assert all(line["seconds"]["median"] >= line["krylov_seconds"] > 0 and line["products"] > 0 for line in embeddings)
    assert [line["method"] for line in products if "refused" not in line] == ["rows"]
    assert all(line["bytes_per_second"] > 0 for line in products if "refused" not in line)
    assert "microseconds" in ok(*size)


def test_no_run_starts_after_the_time_limit(ok_json):
    """A line is measured all the same, once at least, also where its runs would take a day."""
    size = ("papers", "lle", "--most-rows", 200, "--spmv-rows", 300, "--warmup", 1000, "--repeat", 1000)
    found = ok_json(*size, "--time-limit", 1, "--no-verify", "--device", "cpu")
    for line in found["tables"][0]["lines"]:
        runs = line["seconds"]["runs"]
        assert len(runs) == 1 or 1 <= len(runs) < 1000 and sum(runs[:-1]) < 1, line


def panels_of(path):
    """The dots of each panel: color to places, in the order drawn."""
    root = ElementTree.parse(path).getroot()
    space = "{http://www.w3.org/2000/svg}"
    groups = root.findall(f"{space}g")
    return [[(one.get("stroke"), np.array(re.findall(r"M(-?\d+) (-?\d+)h0", one.get("d")), float)) for one in group.iter(f"{space}path")]
            for group in groups]  # fmt: skip


def test_the_figures_of_the_embeddings(ok, tmp_path):
    """Those in docs are what --from makes of the result that is kept: lines to the byte, dots to rounding."""
    result = SOURCE / "bench/results/papers-lle-h200-2026-11-22-5955982.json"
    assert ok("papers", "lle", "--from", result, "--svg", "figures", "--most-rows", 4096, "--device", "cpu") == ""
    made, kept = tmp_path / "figures", SOURCE / "docs/figures"
    assert sorted(one.name for one in made.iterdir()) == sorted(one.name for one in kept.glob("lle-*.svg"))
    for name in ("lle-ratio.svg", "lle-krylov.svg"):
        assert (made / name).read_bytes() == (kept / name).read_bytes()
    for name in ("lle-swiss-roll.svg", "lle-s-curve.svg"):
        assert (kept / name).stat().st_size < 60_000
        ours, theirs = panels_of(made / name), panels_of(kept / name)
        assert len(ours) == 3 and len(theirs) == 4
        for mine, one in zip(ours, theirs):
            assert [color for color, _ in mine] == [color for color, _ in one]
            assert sum(len(places) for _, places in mine) == 1000
            for (_, places), (_, others) in zip(mine, one):
                assert np.abs(places - others).max() <= 1


def test_figures_of_a_run(ok_json, tmp_path):
    size = ("--most-rows", 150, "--spmv-rows", 300, "--repeat", 1, "--warmup", 0, "--device", "cpu")
    ok_json("papers", "lle", *size, "--svg", "made/figures")
    # One device alone has no ratio.
    names = sorted(one.name for one in (tmp_path / "made/figures").iterdir())
    assert names == ["lle-krylov.svg", "lle-s-curve.svg", "lle-swiss-roll.svg"]
    assert [len(panel) > 1 for panel in panels_of(tmp_path / "made/figures/lle-s-curve.svg")] == [True, True]


@pytest.mark.parametrize(
    "text, told",
    [
        ("no JSON", "no JSON"),
        ("[1, 2]", "no lines"),
        ('{"tables": [{"lines": []}]}', "no lines"),
        ('{"tables": [{"lines": [7]}]}', "line 0"),
        ('{"tables": [{"lines": [{"surface": "plane", "device": "cpu", "rows": 9}]}]}', "line 0"),
        ('{"tables": [{"lines": [{"surface": "s_curve", "device": "cpu", "rows": 9, "seconds": 4, "krylov_seconds": 2}]}]}', "line 0"),
        ('{"tables": [{"lines": [{"surface": "s_curve", "device": "cpu", "rows": 9, "seconds": {"median": 0}, "krylov_seconds": 2}]}]}', "line 0"),
    ],
)  # fmt: skip
def test_figures_of_what_is_no_result(vicinal, tmp_path, text, told):
    (tmp_path / "result.json").write_text(text)
    done = vicinal("papers", "lle", "--from", "result.json", "--svg", "figures")
    assert done.returncode == 3 and "result.json" in done.stderr and told in done.stderr
    assert not (tmp_path / "figures").exists()


def test_figures_need_a_folder(vicinal, tmp_path):
    (tmp_path / "figures").write_text("a file")
    result = SOURCE / "bench/results/papers-lle-h200-2026-11-22-5955982.json"
    done = vicinal("papers", "lle", "--from", result, "--svg", "figures")
    assert done.returncode == 3 and "--svg" in done.stderr
    done = vicinal("papers", "lle", "--from", result)
    assert done.returncode == USAGE and "--svg" in done.stderr
    done = vicinal("papers", "lle", "--from", "nowhere.json", "--svg", "others")
    assert done.returncode == 3 and "nowhere.json" in done.stderr


def test_the_table_of_the_tutorial(ok, ok_json, vicinal, tmp_path):
    rows = np.random.default_rng(6).normal(size=(90, 9)).astype("<f4")
    (tmp_path / "color100.bin").write_bytes(struct.pack("<ii", *rows.shape) + rows.tobytes())
    size = ("papers", "km", "--most-rows", 120, "--repeat", 1, "--warmup", 0, "--data-dir", tmp_path, "--device", "cpu")
    found = ok_json(*size, "-o", "papers.json")
    assert json.loads((tmp_path / "papers.json").read_text()) == found
    assert found["command"] == "bench papers km" and found["different_answers"] == 0
    table = found["tables"][0]
    assert table["methods"] == ["serial", "cpu"]
    shapes = {(line["data"], line["rows"], line["dims"]) for line in table["lines"]}
    assert ("color100", 90, 9) in shapes and ("synthetic edge17695", 120, 18) in shapes and len(shapes) == 6
    assert {line["clusters"] for line in table["lines"]} == {2, 4, 8, 16, 32, 64}
    assert all(line["seconds_an_iteration"]["median"] > 0 and line["iterations"] > 0 for line in table["lines"])
    assert "other labels" in ok(*size)
    (tmp_path / "color100.bin").write_bytes(b"no table")
    # A file that is there and is none of theirs is an error, not a reason to make rows.
    done = vicinal(*size)
    assert done.returncode == 3 and "color100.bin" in done.stderr


def test_the_closures_of_a_paper(ok, ok_json, tmp_path):
    size = ("papers", "cc", "--most-rows", 90, "--edges", 5000, "--repeat", 1, "--warmup", 0, "--device", "cpu")
    found = ok_json(*size, "-o", "papers.json")
    assert json.loads((tmp_path / "papers.json").read_text()) == found
    assert found["command"] == "bench papers cc" and found["different_answers"] == 0
    graphs = [(line["graph"], line["members"], line["edges"]) for line in found["lines"]]
    assert graphs[5:] == [("numbered along the map", 7142, 5000), ("shuffled", 7142, 5000)]
    assert found["lines"][5]["groups"] == found["lines"][6]["groups"]
    assert {line["members"] for line in found["lines"][:5]} == {90}
    products = {str(line["nonzeros"]) for line in found["lines"][:4]}
    assert len(products) == 1 and found["lines"][4]["nonzeros"] == []
    assert all(line["label_seconds"]["median"] > 0 for line in found["lines"])
    assert "labels ms" in ok(*size)


def test_the_data_of_a_paper_from_files(ok_json, tmp_path):
    generator = np.random.default_rng(6)
    np.save(tmp_path / "poker-table.npy", generator.integers(1, 14, size=(200, 10)).astype(np.float32))
    np.save(tmp_path / "poker-queries.npy", generator.integers(1, 14, size=(30, 10)).astype(np.float32))
    found = ok_json("papers", "lof", "--most-rows", 150, "--repeat", 1, "--data-dir", tmp_path)
    lines = found["tables"][0]["lines"]
    assert {line["data"] for line in lines} == {"synthetic kdd", "poker", "synthetic covertype"}
    assert {(line["rows"], line["queries"]) for line in lines if line["data"] == "poker"} == {(150, 30)}

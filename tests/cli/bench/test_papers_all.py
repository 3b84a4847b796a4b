"""`vicinal-bench papers` without a subcommand: all tables in one JSON and one page, and answers that are spoiled."""
# ctest: COST 20

import html
import json
import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from report_page import FRAMES, check_one_file, measure  # noqa: E402

TINY = ("--quick", "--most-rows", 60, "--edges", 500, "--spmv-rows", 200, "--sample", 5, "--device", "cpu", "--quiet")
STORED = pathlib.Path(__file__).resolve().parents[3] / "bench/results/papers-epyc2-2026-11-29-357f5a46.json"
TITLES = [
    "Time against k",
    "Time against the size of the table, k = 25",
    "Attacks of unseen kinds in KDD Cup 99",
    "Neighbors of 5,000 queries among 20,000 rows",
    "The whole job: densities of the rows, scores of the queries",
    "Neighbors within 2,048 rows, over columns",
    "Neighbors within rows of 16 columns",
    "Embeddings by a Krylov method, k = 9, d = 32",
    "A product with the sparse matrix, by form",
    "An iteration of k-means from the first k rows",
    "The closure of 1,103 members",
    "Components of many edges",
]


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.delenv("VICINAL_DATA", raising=False)


def test_all_tables_in_one_result_and_one_page(no_data, ok_json, tmp_path):
    found = ok_json("papers", *TINY, "--commit", "0123456")
    assert json.loads((tmp_path / "papers.json").read_text()) == found
    assert found["command"] == "bench papers" and found["quick"] and found["commit"] == "0123456"
    assert found["machine"]["cpu"] and found["date"]
    assert found["wrong_answers"] == 0 and found["different_answers"] == 0
    assert [table["title"] for table in found["tables"]] == TITLES
    assert [part["part"] for part in found["parts"]] == ["gs", "gs-attacks", "lof", "lle-search", "lle", "km", "cc"]
    for table in found["tables"]:
        assert table["checked"] > 0 and table["wrong"] == 0 and table["synthetic"]
        assert table["paper"] in {"GS", "LOF", "LLE", "KM", "CC"} and table["device"] == "cpu"
        assert table["paper_says"].endswith(".") and table["differs"].endswith(".")
        assert table["rows"] and all(len(row) == len(table["columns"]) for row in table["rows"])
        assert all(figure["what"] and figure["paper"] and figure["here"] for figure in table["figures"])
    figures = {figure["paper"] for table in found["tables"] for figure in table["figures"]}
    assert {"46", "2.8", "266", "26", "more than 10", "1e-7", "853 s", "13.7 s", "0.99 s"} <= figures
    look_at(tmp_path / "papers.html", tmp_path)
    again = ok_json("papers", "--from", "papers.json", "-o", "again.json", "--html", "again.html", "--device", "cpu")
    assert again == json.loads((tmp_path / "again.json").read_text()) == found
    assert (tmp_path / "again.html").read_text() == (tmp_path / "papers.html").read_text()


def test_the_page_names_the_time_limit_of_the_measurement(no_data, ok, ok_json, tmp_path):
    found = ok_json("papers", *TINY, "--repeat", 2, "--time-limit", 7)
    assert found["time_limit"] == 7
    assert "2 timed runs, fewer where they take 7 s" in (tmp_path / "papers.html").read_text()
    ok("papers", "--from", "papers.json", "-o", "again.json", "--html", "again.html", "--device", "cpu")
    assert (tmp_path / "again.html").read_text() == (tmp_path / "papers.html").read_text()
    assert json.loads((tmp_path / "again.json").read_text()) == found
    del found["time_limit"]
    (tmp_path / "old.json").write_text(json.dumps(found))
    ok("papers", "--from", "old.json", "-o", "again.json", "--html", "again.html", "--time-limit", 5, "--device", "cpu")
    assert "2 timed runs, fewer where they take 60 s" in (tmp_path / "again.html").read_text()
    assert json.loads((tmp_path / "again.json").read_text())["time_limit"] == 60


def look_at(page, folder):
    check_one_file(page)
    text = html.unescape(page.read_text())
    sections = re.findall(r"<section>\n<h2>\w+: (.*?) \(synthetic rows\)</h2>", text)
    assert sections == TITLES
    assert text.count("stroke-linecap") == 1 and text.count('class="dots"') >= 4  # a surface and embeddings, twice
    assert "0123456" in text and "GPU</dt><dd>" in text
    measured = measure({"papers": page}, folder)["papers"]
    assert {key: found["faults"] for key, found in measured.items()} == {key: [] for key in FRAMES}


def test_the_page_of_the_stored_result_in_full_size(ok, tmp_path):
    ok("papers", "--from", STORED, "--device", "cpu")
    assert json.loads((tmp_path / "papers.json").read_text()) == json.loads(STORED.read_text())
    measured = measure({"papers": tmp_path / "papers.html"}, tmp_path)["papers"]
    assert {key: found["faults"] for key, found in measured.items()} == {key: [] for key in FRAMES}
    page = (tmp_path / "papers.html").read_text().replace("\u202f", "")
    assert f'{json.loads(STORED.read_text())["checked_answers"]}' in page


def test_a_wrong_answer_of_any_table_is_found(no_data, vicinal, tmp_path):
    done = vicinal("papers", *TINY, "--spoil", "--json")
    assert done.returncode != 0 and "are wrong" in done.stderr
    found = json.loads((tmp_path / "papers.json").read_text())
    assert [table["title"] for table in found["tables"] if table["wrong"] == 0] == []
    assert "checked answers are wrong" in (tmp_path / "papers.html").read_text()
    again = vicinal("papers", "--from", "papers.json", "-o", "again.json", "--html", "again.html", "--device", "cpu")
    assert again.returncode == done.returncode and again.stderr == done.stderr
    assert (tmp_path / "again.html").read_text() == (tmp_path / "papers.html").read_text()


def test_images_are_found_where_the_data_folder_has_none(monkeypatch, ok_json, tmp_path):
    (tmp_path / "data/image_data").mkdir(parents=True)
    objects = "".join(f"{i} " + " ".join(str((i * j) % 17 + j) for j in range(9)) + "\n" for i in range(1, 41))
    (tmp_path / "data/image_data/color100.txt").write_text(objects)
    (tmp_path / "others").mkdir()
    monkeypatch.setenv("VICINAL_DATA", str(tmp_path / "data"))
    found = ok_json("papers", *TINY, "--data-dir", "others")
    rows = next(table["rows"] for table in found["tables"] if table["paper"] == "KM")
    assert {row[0] for row in rows if row[1] == "40"} == {"color100"}
    assert all(row[0].startswith("synthetic") for row in rows if row[1] != "40")


HEAD = {"date": "", "version": "", "commit": None, "machine": {}, "quick": True, "most_rows": 9, "verify": True}
COUNTS = {"different_answers": 0, "checked_answers": 0, "wrong_answers": 0}


@pytest.mark.parametrize(
    "result, told",
    [
        ("no JSON", "no JSON"),
        ([1, 2], "another command"),
        ({"command": "bench papers lle"}, "another command"),
        ({"command": "bench papers"}, "no parts"),
        ({"command": "bench papers", "parts": []}, "no parts"),
        ({"command": "bench papers", "parts": [{"part": "gs"}]}, "no date"),
        ({"command": "bench papers", "parts": [7], **HEAD}, "another name"),
        ({"command": "bench papers", "parts": [{"part": "speed"}], **HEAD}, "another name"),
        ({"command": "bench papers", "parts": [{"part": "gs", **COUNTS}], **HEAD}, 'part "gs" has no device'),
        ({"command": "bench papers", "parts": [{"part": "cc", "device": "cpu", "lines": [7]}], **HEAD}, "different_answers"),
    ],
)  # fmt: skip
def test_what_is_no_result_is_not_drawn(vicinal, tmp_path, result, told):
    (tmp_path / "result.json").write_text(result if isinstance(result, str) else json.dumps(result))
    done = vicinal("papers", "--from", "result.json")
    assert done.returncode == 3 and "result.json" in done.stderr and told in done.stderr
    assert not (tmp_path / "papers.html").exists()


def test_a_stored_result_is_no_part_that_is_measured(vicinal):
    done = vicinal("papers", "--from", "papers.json", "gs")
    assert done.returncode == 2 and "--from" in done.stderr
    assert vicinal("papers", "--from", "nowhere.json").returncode == 3


def test_without_verify_nothing_is_checked(no_data, ok_json):
    found = ok_json("papers", "gs-attacks", "--no-verify", "--most-rows", 60, "--device", "cpu")
    assert found["checked_answers"] == 0
    lines = found["tables"][0]["lines"]
    assert [line["k"] for line in lines] == [1, 3, 5, 7, 9, 15, 25, 51]
    assert all(line["reference_detection_rate"] is None for line in lines)

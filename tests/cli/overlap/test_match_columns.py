"""vicinal match by columns: which features are read, names, what became of each, values carried; what the command says
of maps that do not suit. Skipped where the plug-in for files of polygons is not built."""

import csv
import json
import os
import sqlite3

import pytest

from conftest import command_path
from maps import layer, polygons, square
from test_match import needs_plugin, refused, run  # noqa: F401, needs_plugin is for all tests


def rows_of(path):
    return list(csv.DictReader(path.open()))


def ids_where(tmp_path, path, old, new):
    """The features of a map for which a condition holds, and those for which another one does."""
    out = tmp_path / "where.csv"
    result = run("match", path, path, "--id", "name", "--where", old, "--where-new", new, "--changes", out)
    assert result.returncode == 0, result.stderr
    return [sorted({row[side] for row in rows_of(out)} - {""}) for side in ("a_id", "b_id")]


@pytest.fixture
def levels(tmp_path):
    """A country, its two states, and its four districts."""
    country = [("Polygon", [[[0, 0], [4, 0], [4, 1], [0, 1], [0, 0]]])]
    states = [("Polygon", [[[x, 0], [x + 2, 0], [x + 2, 1], [x, 1], [x, 0]]]) for x in (0, 2)]
    names = ["country", "west", "east", "1", "2", "3", "it's"]
    return layer(tmp_path / "levels.geojson", country + states + polygons(*((x, 0) for x in range(4))), names,
                 LEVEL=[0, 1, 1, 2, 2, 2, 2], code=["0", "10", "9", "x", "", None, "9"],
                 big=[9007199254740993, 9007199254740992, 1, 2, None, 4, 5])


def test_where_reads_some_features(tmp_path, levels):
    wanted = {
        "LEVEL = 1": ["east", "west"],
        "level==1": ["east", "west"],
        "LEVEL >= 1 and LEVEL < 2": ["east", "west"],
        "LEVEL = 0 or LEVEL = 2 and name = '1'": ["1", "country"],
        "LEVEL in (0, 1)": ["country", "east", "west"],
        "name = 'it''s'": ["it's"],
        '"name" IN (\'west\', \'3\')': ["3", "west"],
        "name <> 'country' and LEVEL != 2": ["east", "west"],
        "big = 9007199254740993": ["country"],
        "big is null": ["2"],
        "big is not null and big < 2.5": ["1", "east"],
        # Of texts: as numbers, as texts, and those that are missing.
        "code < 10": ["country", "east", "it's"],
        "code < '10'": ["2", "country"],
        "code is null": ["3"],
        "code != 9": ["country", "west"],
        "code != '9'": ["1", "2", "country", "west"],
    }
    pairs = list(wanted.items())
    for (old, names), (new, others) in zip(pairs[::2], pairs[1::2], strict=True):
        assert ids_where(tmp_path, levels, old, new) == [names, others], (old, new)


def test_where_of_either_side_and_what_is_written(tmp_path, levels):
    out = tmp_path / "out.gpkg"
    result = run("match", levels, levels, "--id", "name", "--where", "LEVEL = 1", "--where-new", "LEVEL = 2", "-o", out,
                 "--json")
    assert result.returncode == 0, result.stderr
    said = json.loads(result.stdout)
    assert said["groups"]["changes"]["split"] == 2 and said["a"]["features"] == 2 and said["b"]["features"] == 4
    assert said["a"]["on_itself"]["pairs"] == 0 and "overlap each other" not in result.stderr
    with sqlite3.connect(out) as database:
        assert database.execute("select name, LEVEL, change from a").fetchall() == [
            ("west", 1, "split"), ("east", 1, "split")]
        assert [row[0] for row in database.execute("select name from b")] == ["1", "2", "3", "it's"]
    for name, condition in ((out, "LEVEL = 2"), (tmp_path / "flat_b.fgb", "LEVEL = 2 and name != '1'")):
        assert run("match", levels, levels, "-o", tmp_path / "flat.fgb").returncode == 0
        more = ("--layer", "b", "--layer-new", "b") if name == out else ()
        result = run("match", name, name, *more, "--where", condition, "--where-new", condition, "--json")
        assert json.loads(result.stdout)["groups"]["changes"]["unchanged"] == (4 if name == out else 3), result.stderr


def test_the_plane_is_that_of_what_is_read(tmp_path):
    far = layer(tmp_path / "far.geojson", polygons((0, 0), (170, 60)), ["here", "far"])
    here = "name = 'here'"
    said = json.loads(run("match", far, far, "--where", here, "--where-new", here, "--json").stdout)
    assert said["projection"].startswith("+proj=laea +lat_0=0.5 +lon_0=0.5")


def test_conditions_that_are_none(tmp_path, levels):
    out = tmp_path / "out.csv"
    wrong = {
        "LVL = 1": "there is no column 'LVL'; there are: name, LEVEL, code, big",
        "LEVEL = 7": "the filter keeps none of its 7 features",
        "LEVEL = '1'": "a number without quotes must follow: column 'LEVEL' has numbers",
        "LEVEL": "after 'LEVEL' =, !=, <, <=, >, >=, 'in' or 'is' must follow",
        "LEVEL =": "after 'LEVEL =' a number or a text in 'single quotes' must follow",
        "name = country": "after 'name = ' a number or a text in 'single quotes' must follow",
        "name = 'x": "a closing ' must follow",
        "LEVEL = 1 LEVEL": "'and', 'or' or its end must follow",
        "LEVEL in 1": "'(' and a list of values must follow",
        "LEVEL in (1": "',' or ')' must follow",
        "LEVEL is 1": "'null' must follow",
        "load_extension('x') = 1": "there is no column 'load_extension'",
        "(LEVEL = 1)": "a column must follow",
        " ": "a column must follow",
        "LEVEL = nan": "a number or a text in 'single quotes' must follow",
    }
    for i, (condition, part) in enumerate(wrong.items()):
        refused(2, part, levels, levels, "--where" if i % 2 else "--where-new", condition, "-o", out)
    assert not out.exists()


def test_a_layer_on_itself_is_told(tmp_path, levels):
    one = layer(tmp_path / "one.geojson", polygons((0, 0)))
    result = run("match", levels, one, "--id", "name", "--json")
    assert "levels.geojson: features of the layer overlap each other: 100 % of its area" in result.stderr, result.stderr
    assert '--where "COLUMN = VALUE"' in result.stderr and "country and west share most" in result.stderr
    said = json.loads(result.stdout)["a"]["on_itself"]
    assert said["pairs"] == 10 and said["features"] == 7 and said["most"] == ["country", "west"]
    assert abs(said["share"] - 1) < 1e-9
    assert '--where-new "COLUMN = VALUE"' in run("match", one, levels).stderr
    assert "overlap each other" not in run("match", one, levels, "-q").stderr
    # A hundredth of the area is what matters.
    for size, is_told in ((0.005, False), (0.03, True)):
        near = layer(tmp_path / "near.geojson", polygons((0, 0), (1 - size, 0)))
        assert ("overlap each other" in run("match", near, one).stderr) == is_told


def test_names_are_shown(tmp_path):
    old = layer(tmp_path / "old.geojson", polygons((0, 0), (5, 5)), ["1", "2"], label=["Graz", "<Wien>"])
    new = layer(tmp_path / "new.geojson", polygons((0.3, 0)), ["a"], title=["Graz, new"])
    out, changes, page = tmp_path / "pairs.csv", tmp_path / "changes.csv", tmp_path / "page.html"
    result = run("match", old, new, "--id", "name", "--name", "label", "--name-new", "title", "-o", out, "--changes",
                 changes, "--report", page, "--json", "--rule", "share", "--threshold", "0.5")
    assert result.returncode == 0, result.stderr
    row = rows_of(out)[0]
    assert [row[key] for key in ("a_id", "a_name", "b_id", "b_name")] == ["1", "Graz", "a", "Graz, new"]
    assert [(row["a_name"], row["b_name"]) for row in rows_of(changes)] == [("Graz", "Graz, new"), ("<Wien>", "")]
    said = json.loads(result.stdout)
    assert said["changed"]["removed"] == [{"group": 1, "a": ["2"], "a_names": ["<Wien>"], "b": [], "b_names": []}]
    assert said["review"][0]["a_name"] == "Graz" and said["review"][0]["b_name"] == "Graz, new"
    assert "2 (&lt;Wien&gt;)" in page.read_text() and "a (Graz, new)" in page.read_text()
    refused(2, "there is no column 'label'; there are: name, title", old, new, "--name", "label")


def test_names_with_control_characters(tmp_path):
    names = ["a\x1b[31m\"red\",\nline", "\u202edrowssap\x01"]
    old = layer(tmp_path / "old.geojson", polygons((0, 0), (0.5, 0)), names)
    out, changes, page = tmp_path / "pairs.csv", tmp_path / "changes.csv", tmp_path / "page.html"
    result = run("match", old, old, "--id", "name", "--name", "name", "-o", out, "--changes", changes, "--report", page,
                 "--carry", "name", "--carried", tmp_path / "carried.csv", "--json")
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stderr and "\x1b" not in result.stdout and "\x01" not in result.stderr
    assert "overlap each other" in result.stderr and len(result.stderr.splitlines()) == 2
    assert json.loads(result.stdout)["changed"]["complex"][0]["a_names"] == names
    assert {row["a_name"] for row in rows_of(changes)} == set(names)
    assert [row["old_name"] for row in rows_of(tmp_path / "carried.csv")] == names
    assert "\x1b" not in page.read_text()


def test_changes_are_listed(tmp_path):
    # Unchanged, split, merged, removed; created.
    old = layer(tmp_path / "old.geojson", polygons((0, 0), (10, 0), (20, 0), (21, 0), (30, 0)), list("abcde"))
    halves = polygons((10, 0), size=1)[0][1][0]
    west = [[x if x == 10 else 10.5, y] for x, y in halves]
    east = [[x if x == 11 else 10.5, y] for x, y in halves]
    both = [[20, 0], [22, 0], [22, 1], [20, 1], [20, 0]]
    parts = [("Polygon", [ring]) for ring in (west, east, both)]
    new = layer(tmp_path / "new.geojson", polygons((0, 0)) + parts + polygons((40, 0)), list("vwxyz"))
    changes = tmp_path / "changes.csv"
    result = run("match", old, new, "--id", "name", "--changes", changes, "--json")
    assert result.returncode == 0, result.stderr
    lines = [(row["change"], row["status"], row["a_id"], row["b_id"]) for row in rows_of(changes)]
    assert lines == [
        ("unchanged", "retained", "a", "v"), ("split", "replaced", "b", "w"), ("split", "replaced", "b", "x"),
        ("merged", "replaced", "c", "y"), ("merged", "replaced", "d", "y"), ("removed", "retired", "e", ""),
        ("created", "added", "", "z")]
    changed = json.loads(result.stdout)["changed"]
    assert changed["split"] == [{"group": 1, "a": ["b"], "b": ["w", "x"]}]
    assert changed["merged"] == [{"group": 2, "a": ["c", "d"], "b": ["y"]}]
    assert changed["created"] == [{"group": 4, "a": [], "b": ["z"]}] and changed["complex"] == []
    refused(3, "nowhere", old, new, "--changes", tmp_path / "nowhere" / "c.csv")
    refused(2, "--changes", old, new, "--changes", tmp_path / "changes.txt")


def test_values_are_carried(tmp_path):
    plane = "urn:ogc:def:crs:EPSG::3035"
    old = layer(tmp_path / "old.geojson", polygons((4e6, 3e6), (4e6 + 1e3, 3e6), (4.1e6, 3e6), size=1e3), list("abc"),
                crs=plane, people=[100, 60, 7], price=[10.5, None, 3], number=["1", "2", ""], state=["N", "N", "S"])
    two = [[4e6 + 250, 3e6], [4e6 + 2e3, 3e6], [4e6 + 2e3, 3.001e6], [4e6 + 250, 3.001e6], [4e6 + 250, 3e6]]
    one = [[4e6, 3e6], [4e6 + 250, 3e6], [4e6 + 250, 3.001e6], [4e6, 3.001e6], [4e6, 3e6]]
    new = layer(tmp_path / "new.geojson", [("Polygon", [one]), ("Polygon", [two])] + polygons((4.2e6, 3e6), size=1e3),
                list("xyz"), crs=plane)
    out, carried = tmp_path / "out.gpkg", tmp_path / "carried.csv"
    arguments = ("--id", "name", "--planar", "--carry", "state", "--carry-sum", "people", "--carry-sum", "number",
                 "--carry-mean", "price", "--carried", carried, "-o", out)
    result = run("match", old, new, *arguments, "--json")
    assert result.returncode == 0, result.stderr
    rows = rows_of(carried)
    columns = [f"old_{name}{more}" for name in ("state", "people", "number", "price") for more in ("", "_share")]
    assert list(rows[0]) == ["b_id", "change", "status", *columns]
    assert [row["old_state"] for row in rows] == ["N", "N", ""]
    assert [float(row["old_state_share"]) for row in rows] == [1, 1, 0]
    assert [row["old_people"] for row in rows] == ["25", "135", ""]
    assert [row["old_number"] for row in rows] == ["0.25", "2.75", ""]
    assert [row["old_price"] for row in rows] == ["10.5", "10.5", ""]
    assert abs(float(rows[1]["old_price_share"]) - 3 / 7) < 1e-15 and rows[2]["status"] == "added"
    assert json.loads(result.stdout)["carried"] == [{"column": "people", "total": 167, "left": 7},
                                                    {"column": "number", "total": 3, "left": 0}]
    with sqlite3.connect(out) as database:
        assert database.execute("select name, old_state, old_people, old_price from b").fetchall() == [
            ("x", "N", 25, 10.5), ("y", "N", 135, 10.5), ("z", "", None, None)]
    assert "7 of 167 of column people are in places where" in run("match", old, new, *arguments).stderr


def test_values_that_cannot_be_carried(tmp_path):
    old = layer(tmp_path / "old.geojson", polygons((0, 0)), ["x"], word=["many"], endless=["inf"])
    out = tmp_path / "carried.csv"
    for option in ("--carry-sum", "--carry-mean"):
        refused(3, "feature x: 'many' in column 'word' is no number: carry its texts by --carry word", old, old, "--id",
                "name", option, "word", "--carried", out)
        refused(3, "'inf' in column 'endless' is no number", old, old, option, "endless", "--carried", out)
    to_file = ("--carried", out)
    refused(2, "there is no column 'nothing'; there are: name, word, endless", old, old, "--carry", "nothing", *to_file)
    refused(2, "column 'word' is to be carried twice", old, old, "--carry", "word", "--carry-sum", "word", *to_file)
    refused(2, "give both", old, old, "--carry", "word")
    refused(2, "give both", old, old, "--carried", out)
    refused(2, "give both", old, old, "--carry", "word", "-o", tmp_path / "pairs.csv")
    assert not out.exists() and not (tmp_path / "pairs.csv").exists()


def test_slivers(tmp_path):
    """A path that is narrower than the distance by which borders moved."""
    plane = "urn:ogc:def:crs:EPSG::3035"
    field = lambda x, width: ("Polygon", [[[4e6 + x, 3e6], [4e6 + x + width, 3e6], [4e6 + x + width, 3.0001e6],
                                           [4e6 + x, 3.0001e6], [4e6 + x, 3e6]]])
    old = layer(tmp_path / "old.geojson", [field(0, 50), field(50, 3), field(53, 50)], crs=plane)
    new = layer(tmp_path / "new.geojson", [field(2, 50), field(52, 3), field(55, 50)], crs=plane)
    changes = lambda *more: json.loads(run("match", old, new, "--planar", "--json", *more).stdout)
    assert changes()["groups"]["largest"] == 6
    out = tmp_path / "pairs.csv"
    said = changes("--sliver-width", "4", "-o", out)
    assert said["groups"]["changes"]["modified"] == 2 and said["groups"]["largest"] == 2
    assert said["pairs"]["slivers"] == sum(row["sliver"] == "1" for row in rows_of(out)) > 0
    assert "overlaps are slivers" in run("match", old, new, "--planar", "--sliver-width", "4").stderr
    for wrong in ("-1", "inf", "nan"):
        refused(2, "sliver_width", old, new, "--sliver-width", wrong)


def test_limits_are_suggested_for_maps_generalised_differently(tmp_path):
    places = [(x, y) for x in range(5) for y in range(4)]
    old = layer(tmp_path / "old.geojson", polygons(*places))
    new = layer(tmp_path / "new.geojson", polygons(*((x + 0.03, y + 0.02) for x, y in places)))
    result = run("match", old, new, "--json")
    advice = json.loads(result.stdout)["advice"]
    assert advice["unchanged"] == 0.9 and 0 < advice["sliver_width"] < 12000
    assert "20 of 20 one-to-one groups are 'modified'" in result.stderr and "--unchanged 0.9 counts" in result.stderr
    width = str(advice["sliver_width"])
    limits = ("--unchanged", "0.9", "--sliver-width", width)
    said = json.loads(run("match", old, new, *limits, "--rule", "area", "--json").stdout)
    assert said["groups"]["changes"]["unchanged"] == 20 and said["advice"] == {"unchanged": None, "sliver_width": None}
    assert json.loads(run("match", old, old, "--json").stdout)["advice"]["unchanged"] is None


def peak_and_plan(path):
    """Bytes that the command takes at most, and that it says it does."""
    told = json.loads(run("match", path, path, "--planar", "--explain", "--json").stdout)["plan"]["memory_bytes"]
    pid = os.fork()
    if pid == 0:
        os.execv(command_path(), ["vicinal", "match", str(path), str(path), "--planar", "-q"])
    _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return usage.ru_maxrss * 1024, told


def test_topojson_is_in_the_memory_plan(tmp_path):
    """Steps of a digit, in two borders each, take the most for a byte of the file."""
    def grid(path, cells, steps):
        arcs, at = [], {}
        def arc(x, y, across):
            if (x, y, across) not in at:
                at[x, y, across] = len(arcs)
                arcs.append([[x * steps, y * steps]] + [[1, 0] if across else [0, 1]] * steps)
            return at[x, y, across]
        cell = lambda x, y: [[arc(x, y, True), arc(x + 1, y, False), ~arc(x, y + 1, True), ~arc(x, y, False)]]
        shapes = [{"type": "Polygon", "arcs": cell(x, y)} for y in range(cells) for x in range(cells)]
        path.write_text(json.dumps({
            "type": "Topology", "transform": {"scale": [1, 1], "translate": [0, 0]}, "arcs": arcs,
            "objects": {"land": {"type": "GeometryCollection", "geometries": shapes}}}, separators=(",", ":")))
        return path

    least, told_least = peak_and_plan(grid(tmp_path / "small.topojson", 1, 2))
    most, told_most = peak_and_plan(grid(tmp_path / "large.json", 10, 400))
    assert most - least <= told_most - told_least, (most, least, told_most, told_least)


def test_geoparquet_without_the_driver_says_so(tmp_path):
    old = layer(tmp_path / "old.geojson", polygons((0, 0)))
    parquet = tmp_path / "map.parquet"
    parquet.write_bytes(b"PAR1" + bytes(40) + b"PAR1")
    result = run("match", old, parquet)
    assert result.returncode == 3 and "map.parquet" in result.stderr and "Parquet file" in result.stderr, result.stderr
    out = tmp_path / "out.parquet"
    result = run("match", old, old, "-o", out)
    if result.returncode == 0:  # this GDAL has the driver
        assert json.loads(run("match", tmp_path / "out_a.parquet", old, "--json").stdout)["groups"]["count"] == 1
        return
    assert result.returncode == 2 and "no driver Parquet" in result.stderr, result.stderr
    assert list(tmp_path.glob("out*")) == []

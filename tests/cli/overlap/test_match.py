"""vicinal match: files in and out, every kind of bad input. Skipped where the plug-in for files of polygons is not built."""
# ctest: COST 40

import contextlib
import csv
import http.server
import json
import os
import shutil
import sqlite3
import subprocess
import threading

import pytest

from conftest import command_path
from maps import layer, polygons, square


def run(*arguments):
    return subprocess.run([command_path(), *map(str, arguments)], capture_output=True, text=True, timeout=120)


def renamed(path, name):
    """A copy whose column is called `code`."""
    copy = path.parent / name
    copy.write_text(path.read_text().replace('"name"', '"code"'))
    return copy


@pytest.fixture(autouse=True)
def needs_plugin(tmp_path):
    one = layer(tmp_path / "probe.geojson", polygons((0, 0)))
    result = run("match", one, one, "--quiet")
    if result.returncode == 5:
        assert "libvicinal_geo.so" in result.stderr or "GDAL" in result.stderr
        pytest.skip(result.stderr.strip())


def refused(code, part, *arguments):
    result = run("match", *arguments)
    assert result.returncode == code, result.stderr
    assert part in result.stderr, result.stderr
    assert result.stdout == "" or "--json" in arguments


def test_pairs_groups_and_ids_survive(tmp_path):
    old = layer(tmp_path / "old.geojson", polygons((0, 0), (2, 0), (10, 10)), ["007", "9007199254740993", "gone"])
    new = layer(tmp_path / "new.geojson", polygons((0, 0), (2.02, 0), (20, 20)), ["007", "b,\"c\"", "come"])
    out = tmp_path / "pairs.csv"
    result = run("match", old, new, "--id", "name", "-o", out, "--json")
    assert result.returncode == 0, result.stderr
    said = json.loads(result.stdout)
    assert said["groups"]["changes"] == {
        "unchanged": 1, "modified": 1, "split": 0, "merged": 0, "created": 1, "removed": 1, "complex": 0}
    assert said["a"]["crs"] == "EPSG:4326" and said["projection"].startswith("+proj=laea")
    assert "GDAL" in said["versions"]
    rows = list(csv.DictReader(out.open()))
    assert [(row["a_id"], row["b_id"], row["kept"]) for row in rows] == [
        ("007", "007", "1"), ("9007199254740993", 'b,"c"', "1")]
    assert rows[0]["relation"] == "equals" and float(rows[0]["iou"]) == 1
    # A square degree at the equator on the ellipsoid, and of it 98 %.
    assert abs(float(rows[0]["area"]) - 1.2308e10) < 1e7
    assert abs(float(rows[1]["share_a"]) - 0.98) < 1e-3


def test_geopackage_and_report(tmp_path):
    old = layer(tmp_path / "old.geojson", polygons((0, 0), (2, 0)))
    new = layer(tmp_path / "new.geojson", polygons((0, 0), (2, 0), size=0.5) + polygons((2.5, 0), size=0.5), ["<b>", "x", "y"])
    out, page = tmp_path / "matched.gpkg", tmp_path / "page.html"
    result = run("match", old, new, "--id", "name", "-o", out, "--report", page)
    assert result.returncode == 0, result.stderr
    with sqlite3.connect(out) as database:
        assert [row[0] for row in database.execute("select table_name from gpkg_contents order by 1")] == [
            "a", "b", "groups", "pairs"]
        assert database.execute("select name, match_type, change, best from a order by 1").fetchall() == [
            ("0000", "1:1", "modified", "<b>"), ("0001", "1:n", "split", "x")]
        assert database.execute("select count(*), sum(kept) from pairs").fetchall() == [(3, 3)]
        assert database.execute("select count(*) from groups").fetchone() == (2,)
    text = page.read_text()
    assert "&lt;b&gt;" in text and "<b>:" not in text and "http" not in text.split("</style>")[1]
    # What was written can be read again, layer by layer.
    again = run("match", out, out, "--layer", "a", "--layer-new", "b", "--id", "name", "--json")
    assert json.loads(again.stdout)["groups"]["count"] == 2
    refused(2, "4 layers; name the one to read: a, b, pairs, groups", out, old)


def test_all_files_of_a_match_appear_together(tmp_path):
    """A disk that is full at any of them leaves the others as they were."""
    old = layer(tmp_path / "old.geojson", polygons((0, 0), (2, 0)))
    outputs = ["o_a.geojson", "o_b.geojson", "o_pairs.csv", "o_groups.csv", "r.html"]
    for full in outputs:
        for name in outputs:
            (tmp_path / name).unlink(missing_ok=True)
            (tmp_path / name).write_text("precious") if name != full else (tmp_path / name).symlink_to("/dev/full")
        before = sorted(path.name for path in tmp_path.iterdir())
        refused(3, "", old, old, "-o", tmp_path / "o.geojson", "--report", tmp_path / "r.html")
        assert {(tmp_path / name).read_bytes() for name in outputs if name != full} == {b"precious"}
        assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("ending", [".shp", ".geojson", ".fgb"])
def test_files_of_one_layer(tmp_path, ending):
    # Ids of every kind, a multipolygon among polygons, a feature without geometry where the format has such.
    names = ["007", "9007199254740993", "ä,\"x\"", "gone"]
    many = ("MultiPolygon", [square(4, 0), square(6, 0)])
    old = layer(tmp_path / "old.geojson", polygons((0, 0), (2, 0)) + [many, None], names)
    new = layer(tmp_path / "new.geojson", polygons((0, 0), (2, 0)) + [many], names[:3])
    out = tmp_path / f"matched{ending}"
    if ending == ".fgb":
        refused(3, "as feature gone is", old, new, "--id", "name", "-o", out)
        names[3] = "far"
        old = layer(tmp_path / "old.geojson", polygons((0, 0), (2, 0)) + [many] + polygons((9, 9)), names)
    result = run("match", old, new, "--id", "name", "-o", out)
    assert result.returncode == 0, result.stderr
    made = {path.name for path in tmp_path.iterdir() if path.name.startswith("matched")}
    parts = {f"matched_{side}{ending}" for side in "ab"}
    assert parts | {"matched_pairs.csv", "matched_groups.csv"} <= made
    assert all(name.split("_")[1][0] in "abpg" and "~" not in name for name in made)
    if ending != ".shp":
        assert len(made) == 4
    rows = list(csv.DictReader((tmp_path / "matched_pairs.csv").open()))
    assert [(row["a_id"], row["b_id"], row["kept"]) for row in rows] == [(name, name, "1") for name in names[:3]]
    assert len(list(csv.DictReader((tmp_path / "matched_groups.csv").open()))) == 4
    # What was written is read again, by the id that it was given.
    again = run("match", tmp_path / f"matched_a{ending}", tmp_path / f"matched_b{ending}", "--id", "match_id", "--json",
                "-o", tmp_path / "again.csv")
    assert again.returncode == 0, again.stderr
    said = json.loads(again.stdout)
    assert said["a"]["crs"] == "EPSG:4326" and said["a"]["features"] == 4
    assert said["a"]["empty"] == (0 if ending == ".fgb" else 1)
    rows = list(csv.DictReader((tmp_path / "again.csv").open()))
    assert {(row["a_id"], row["b_id"], row["iou"]) for row in rows} == {(name, name, "1") for name in names[:3]}


def test_what_a_shapefile_would_cut_is_refused(tmp_path):
    old = layer(tmp_path / "old.geojson", polygons((0, 0)), ["x" * 300])
    refused(3, "cannot keep everything", old, old, "--id", "name", "-o", tmp_path / "out.shp")
    assert not list(tmp_path.glob("out*"))
    assert run("match", old, old, "--id", "name", "-o", tmp_path / "out.fgb").returncode == 0


def test_outputs_that_cannot_be_written(tmp_path):
    old = layer(tmp_path / "old.geojson", polygons((0, 0)))
    refused(3, "nowhere", old, old, "-o", tmp_path / "nowhere" / "out.shp")
    # A folder where the third of four files should be: nothing is left of the others.
    folder = tmp_path / "taken_pairs.csv"
    folder.mkdir()
    refused(3, "taken_pairs.csv", old, old, "-o", tmp_path / "taken.geojson")
    assert [path.name for path in tmp_path.glob("taken*")] == ["taken_pairs.csv"]
    # A disk that is full, as far as a process can tell.
    many = layer(tmp_path / "many.geojson", polygons(*((x, y) for x in range(30) for y in range(30)), size=0.5))
    for name in ("full.gpkg", "full.fgb", "full.csv", "full.shp"):
        limited = 'ulimit -f 16; trap "" XFSZ; exec "$@"'
        result = subprocess.run(["bash", "-c", limited, "bash", command_path(), "match", many, many, "-o", tmp_path / name],
                                capture_output=True, text=True, timeout=120)
        assert result.returncode == 3 and "full" in result.stderr, result.stderr
    assert not list(tmp_path.glob("full*"))


def test_groups_above_a_limit_are_divided(tmp_path):
    # Four fields and four copies of them, each a tenth off: a chain of eight.
    old = layer(tmp_path / "old.geojson", polygons((0, 0), (1, 0), (2, 0), (3, 0)))
    new = layer(tmp_path / "new.geojson", polygons((0.1, 0), (1.1, 0), (2.1, 0), (3.1, 0)))
    rule = ("--rule", "area", "--id", "name", "--json")
    assert json.loads(run("match", old, new, *rule).stdout)["groups"]["largest"] == 8
    out = tmp_path / "pairs.csv"
    for limit in (("--max-group", "2"), ("--max-diameter", "1")):
        result = run("match", old, new, *rule, *limit, "-o", out)
        said = json.loads(result.stdout)
        assert said["groups"]["count"] == 4 and said["groups"]["changes"]["modified"] == 4
        assert said["split"]["groups"] == 1 and said["pairs"]["kept"] == 4
        assert [(pair["a"], pair["b"]) for pair in said["split"]["cut"]] == [
            ("0001", "0000"), ("0002", "0001"), ("0003", "0002")]
        assert all(abs(pair["share"] - 0.1) < 1e-3 for pair in said["split"]["cut"])
        rows = list(csv.DictReader(out.open()))
        assert [(row["kept"], row["cut"]) for row in rows] == [("1", "0")] + [("0", "1"), ("1", "0")] * 3
    assert "3 pairs cut" in run("match", old, new, "--rule", "area", "--max-group", "2").stderr


def test_z_collections_and_parts(tmp_path):
    nested = {"type": "GeometryCollection", "geometries": [
        {"type": "GeometryCollection", "geometries": [{"type": "MultiPolygon", "coordinates": [square(0, 0), square(3, 0)]}]}]}
    old = layer(tmp_path / "old.geojson", [nested, ("Polygon", square(6, 0, z=100.0)), None])
    new = layer(tmp_path / "new.geojson", [("MultiPolygon", [square(3, 0), square(0, 0)])] + polygons((6, 0)))
    said = json.loads(run("match", old, new, "--json").stdout)
    assert said["groups"]["changes"]["unchanged"] == 2 and said["groups"]["changes"]["removed"] == 1
    assert said["a"]["empty"] == 1


def test_what_covers_itself_is_repaired_and_listed(tmp_path):
    bow_tie = ("Polygon", [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]])
    twice = ("MultiPolygon", [square(5, 0), square(5.5, 0)])
    old = layer(tmp_path / "old.geojson", [bow_tie, twice])
    new = layer(tmp_path / "new.geojson", polygons((0, 0), (5, 0)))
    out = tmp_path / "pairs.csv"
    result = run("match", old, new, "--id", "name", "-o", out)
    assert "2 features covered a place twice and were repaired: 0000 0001" in result.stderr
    rows = list(csv.DictReader(out.open()))
    assert abs(float(rows[0]["share_b"]) - 0.5) < 1e-3
    assert abs(float(rows[1]["share_a"]) - 2 / 3) < 1e-3 and float(rows[1]["share_b"]) > 1 - 1e-12


def test_overlaps_inside_a_layer_are_flagged(tmp_path):
    old = layer(tmp_path / "old.geojson", polygons((0, 0), (0.5, 0)))
    new = layer(tmp_path / "new.geojson", polygons((0, 0), size=2))
    assert json.loads(run("match", old, new, "--json").stdout)["groups"]["overlap_themselves"] == 1


def test_the_antimeridian(tmp_path):
    # On both sides of it, in pieces as files keep them.
    old = layer(tmp_path / "old.geojson", [("MultiPolygon", [square(179, 0), square(-180, 0)])])
    said = json.loads(run("match", old, old, "--json").stdout)
    assert said["projection"].startswith("+proj=eqearth") and said["groups"]["changes"]["unchanged"] == 1
    assert said["a"]["cut"] == 0


def cut_is(tmp_path, crossing, pieces, *arguments):
    """Whether a polygon across 180 degrees is the same region as its pieces, of which the file may say where."""
    old = layer(tmp_path / "crossing.geojson", [("Polygon", crossing)])
    new = layer(tmp_path / "pieces.geojson", [("MultiPolygon", pieces)])
    out = tmp_path / "pairs.csv"
    result = run("match", old, new, "--id", "name", "--json", "-o", out, *arguments)
    assert result.returncode == 0, result.stderr
    said = json.loads(result.stdout)
    assert said["a"]["cut_ids"] == ["0000"] and said["b"]["cut"] == 0
    rows = list(csv.DictReader(out.open()))
    assert len(rows) == 1 and abs(float(rows[0]["iou"]) - 1) < 1e-12, rows


def test_degrees_that_are_nowhere_are_refused(tmp_path):
    far = polygons((-170, -80), (150, 70), size=10)  # a map of the world
    good = layer(tmp_path / "good.geojson", far)
    for ring in ([[2e200, 0], [2e200, 1], [3e200, 1], [2e200, 0]], [[0, 0], [1, 0], [1, -91], [0, 0]], [[2e200, 0]]):
        bad = layer(tmp_path / "bad.geojson", far + [("Polygon", [ring])])
        refused(3, "is nowhere on the globe", good, bad, "--id", "name")


def test_what_crosses_the_antimeridian_is_cut_there(tmp_path):
    east, west = square(179, 0), square(-180, 0)
    cut_is(tmp_path, [[[179, 0], [-179, 0], [-179, 1], [179, 1], [179, 0]]], [east, west])
    # Beyond 180 degrees, on either side.
    cut_is(tmp_path, [[[179, 0], [181, 0], [181, 1], [179, 1], [179, 0]]], [east, west])
    cut_is(tmp_path, [[[-181, 0], [-179, 0], [-179, 1], [-181, 1], [-181, 0]]], [east, west])
    # A hole across it, and one on the far side of it.
    shell = [[170, 0], [-170, 0], [-170, 10], [170, 10], [170, 0]]
    across = [[178, 4], [178, 6], [-178, 6], [-178, 4], [178, 4]]
    beyond = [[-176, 4], [-176, 6], [-174, 6], [-174, 4], [-176, 4]]
    half = lambda x, notch: [[x, 0], [notch * 180, 0], [notch * 180, 4], [notch * 178, 4], [notch * 178, 6],
                             [notch * 180, 6], [notch * 180, 10], [x, 10], [x, 0]]
    cut_is(tmp_path, [shell, across, beyond], [[half(170, 1)], [half(-170, -1), beyond]])
    # A step from 180 to -180 is none.
    cut_is(tmp_path, [[[179, 0], [180, 0], [-180, 0], [-179, 0], [-179, 1], [-180, 1], [180, 1], [179, 1], [179, 0]]],
           [east, west])


def test_around_a_pole(tmp_path):
    around = lambda y: [[-120, y], [0, y], [120, y], [-120, y]]
    closed = lambda y, pole: [[-180, y], [-120, y], [0, y], [120, y], [180, y], [180, pole], [-180, pole], [-180, y]]
    cut_is(tmp_path, [around(-70)], [[closed(-70, -90)]])
    cut_is(tmp_path, [around(70)], [[closed(70, 90)]])
    cut_is(tmp_path, [around(60), around(80)], [[closed(60, 80)]])  # a belt
    cut_is(tmp_path, [around(-80), around(-60)], [[closed(-80, -60)]])
    # An edge along the antimeridian: cut already, and as wide as its numbers say.
    world = [[-180, -90], [180, -90], [180, 90], [-180, 90], [-180, -90]]
    old = layer(tmp_path / "world.geojson", [("Polygon", [world])])
    out = tmp_path / "world.csv"
    assert run("match", old, old, "-o", out).returncode == 0
    area = float(next(csv.DictReader(out.open()))["area"])
    assert area > 2e14  # more than a third of the globe: the plane bends its meridians, not its edges


def test_crs_and_planes(tmp_path):
    old = layer(tmp_path / "old.geojson", polygons((0, 0)))
    metres = layer(tmp_path / "metres.geojson", polygons((0, 0), size=111319.49), crs="urn:ogc:def:crs:EPSG::3857")
    said = json.loads(run("match", old, metres, "--json").stdout)
    assert said["b"]["crs"] == "EPSG:3857" and said["groups"]["changes"]["unchanged"] == 1
    refused(3, "are not in one plane (--planar)", old, metres, "--planar")
    said = json.loads(run("match", old, old, "--planar", "--json").stdout)
    assert said["projection"] == "none"
    topology = {"type": "Topology", "arcs": [[[0, 0], [1, 0], [1, 1], [0, 0]]],
                "objects": {"land": {"type": "GeometryCollection", "geometries": [{"type": "Polygon", "arcs": [[0]]}]}}}
    without = tmp_path / "without.topojson"
    without.write_text(json.dumps(topology))
    refused(3, "without.topojson: it does not say what its coordinates mean", without, old)
    assert run("match", without, old, "--crs", "EPSG:4326").returncode == 0
    refused(2, "'nonsense' is no coordinate reference system", without, old, "--crs", "nonsense")


def test_the_plane_is_projs(tmp_path):
    """WGS 84 by its name is projected by our own formulas, by its definition by PROJ: to the same places within 1e-9 m, so
    that areas of squares of 200 km around differ by less than 5e-4 m2, and by 1e-13 of themselves from adding up."""
    topology = {"type": "Topology", "arcs": [], "objects": {"land": {"type": "GeometryCollection", "geometries": []}}}
    for i, (x, y) in enumerate([(-74, 40.5), (-30, 0), (10, -40), (-33, 21)]):
        topology["arcs"].append([[x, y], [x + 0.5, y], [x + 0.5, y + 0.4], [x, y + 0.4], [x, y]])
        topology["objects"]["land"]["geometries"].append({"type": "Polygon", "arcs": [[i]]})
    old = tmp_path / "old.topojson"
    old.write_text(json.dumps(topology))
    pairs = []
    for crs in ("EPSG:4326", "+proj=longlat +datum=WGS84 +no_defs"):
        out = tmp_path / "pairs.csv"
        assert run("match", old, old, "--crs", crs, "-o", out).returncode == 0
        pairs.append([float(row["area"]) for row in csv.DictReader(out.open())])
    assert len(pairs[0]) == len(pairs[1]) == 4
    for ours, projs in zip(*pairs):
        assert abs(ours - projs) <= 5e-4 + 1e-13 * projs, (ours, projs)


def areas_of(path, tmp_path, *arguments):
    out = tmp_path / "areas.csv"
    result = run("match", path, path, *arguments, "-o", out)
    assert result.returncode == 0, result.stderr
    return [float(row["area"]) for row in csv.DictReader(out.open())]


def test_what_only_calls_itself_wgs84_is_projs(tmp_path):
    """A name of an authority does not make another datum, meridian or unit degrees of WGS 84."""
    topology = {"type": "Topology", "arcs": [[[2, 45], [3, 45], [3, 46], [2, 46], [2, 45]]],
                "objects": {"land": {"type": "GeometryCollection", "geometries": [{"type": "Polygon", "arcs": [[0]]}]}}}
    path = tmp_path / "without.topojson"
    path.write_text(json.dumps(topology))
    wgs84 = 'DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]]'
    ntf = 'DATUM["Nouvelle_Triangulation_Francaise_Paris",SPHEROID["Clarke 1880 (IGN)",6378249.2,293.466021293627]]'
    greenwich, paris = 'PRIMEM["Greenwich",0]', 'PRIMEM["Paris",2.33722917]'
    degree, grad = 'UNIT["degree",0.0174532925199433]', 'UNIT["grad",0.01570796326794897]'
    # PROJ may go another way where there is a code, which moves last bits; the least of the mistakes is 1e-8 of an area.
    for parts in [(ntf, paris, degree), (ntf, paris, grad), (wgs84, paris, degree), (wgs84, greenwich, grad)]:
        wkt = 'GEOGCS["a map",' + ",".join(parts)
        named = areas_of(path, tmp_path, "--crs", wkt + ',AUTHORITY["EPSG","4326"]]')
        projs = areas_of(path, tmp_path, "--crs", wkt + "]")
        assert len(named) == len(projs) == 1
        assert abs(named[0] - projs[0]) <= 1e-12 * projs[0], parts


def test_columns_that_differ_in_case_only(tmp_path):
    old = layer(tmp_path / "old.geojson", polygons((0, 0), (2, 0)), ["x", "y"])
    whole = json.loads(old.read_text())
    for feature in whole["features"]:
        name = feature["properties"]["name"]
        feature["properties"] = {"id": name, "ID": "other " + name}
    old.write_text(json.dumps(whole))
    out, flat = tmp_path / "pairs.csv", tmp_path / "flat.fgb"
    assert run("match", old, old, "--id", "id", "-o", flat).returncode == 0
    for path in (old, tmp_path / "flat_a.fgb"):
        result = run("match", path, path, "--id", "id", "-o", out)
        assert result.returncode == 0, result.stderr
        assert sorted(row["a_id"] for row in csv.DictReader(out.open())) == ["x", "y"]


def test_a_latitude_a_rounding_beyond_a_pole(tmp_path):
    areas = []
    for pole in (90, 90.00000000000001):
        corners = [[0, 80], [60, 80], [60, pole], [0, pole], [0, 80]]
        areas += areas_of(layer(tmp_path / "pole.geojson", [("Polygon", [corners])]), tmp_path)
    assert abs(areas[0] - areas[1]) <= 1e-9 * areas[0]


def test_only_formats_that_hold_their_own_data_are_read(tmp_path):
    usual = layer(tmp_path / "usual.geojson", polygons((0, 0)))
    kml = tmp_path / "other.kml"
    kml.write_text(
        '<kml xmlns="http://www.opengis.net/kml/2.2"><Document><Folder><name>land</name><Placemark><name>one</name>'
        "<Polygon><outerBoundaryIs><LinearRing><coordinates>0,0 1,0 1,1 0,1 0,0</coordinates></LinearRing>"
        "</outerBoundaryIs></Polygon></Placemark></Folder></Document></kml>")
    for old, new in [(usual, kml), (kml, usual)]:
        refused(3, "is no GeoPackage, Shapefile, GeoJSON, TopoJSON, FlatGeobuf or CSV file", old, new)
    refused(3, "': No such file or directory", usual, usual.read_text()[:200])


@contextlib.contextmanager
def watched_server():
    """An address at which nothing is, and a list of what was asked there."""
    asked = []

    class Watcher(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Watcher) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/map.geojson", asked
        server.shutdown()


def test_a_map_reads_nothing_but_itself(tmp_path):
    """OGRVRT, whatever a file of it is called, names other files and addresses."""
    usual = layer(tmp_path / "usual.geojson", polygons((0, 0)))
    with watched_server() as (address, asked):
        for source in (f"/vsicurl/{address}", address, usual):
            for name in ("a.geojson", "a.vrt", "a.gpkg", "a.csv", "a.shp"):
                sly = tmp_path / name
                sly.write_text(f'<OGRVRTDataSource><OGRVRTLayer name="usual"><SrcDataSource>{source}</SrcDataSource>'
                               "</OGRVRTLayer></OGRVRTDataSource>")
                refused(3, name, usual, sly)
        for kind, key in (("link", "href"), ("url", "url")):
            linked = json.loads(usual.read_text())
            linked["crs"] = {"type": kind, "properties": {key: address}}
            (tmp_path / "linked.geojson").write_text(json.dumps(linked))
            run("match", usual, tmp_path / "linked.geojson")
        for name in (address, f"/vsicurl/{address}"):
            refused(3, f"cannot open '{name}': No such file or directory", usual, name)
    assert not asked


def test_a_geopackage_reads_nothing_but_itself(tmp_path):
    """SQLite's views and virtual tables may call functions that open other files and addresses."""
    usual = layer(tmp_path / "usual.geojson", polygons((0, 0)))
    other = layer(tmp_path / "other.geojson", polygons((0, 0), (3, 3)))
    assert run("match", usual, usual, "-o", tmp_path / "plain.gpkg").returncode == 0

    def sly(name, view=None, virtual=None):
        path = tmp_path / name
        shutil.copy(tmp_path / "plain.gpkg", path)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as base:
            for (trigger,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                base.execute(f'DROP TRIGGER "{trigger}"')
            base.execute("ALTER TABLE a RENAME TO data")
            if view is not None:
                base.execute(f"CREATE VIEW a AS SELECT data.*{view} FROM data")
            else:
                base.execute("PRAGMA writable_schema = 1")
                base.execute("INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) VALUES "
                             "('table', 'a', 'a', 0, ?)", (f"CREATE VIRTUAL TABLE a USING {virtual}",))
        return path

    assert run("match", usual, sly("view.gpkg", view=""), "--layer-new", "a").returncode == 0
    with watched_server() as (address, asked):
        for place in (other, f"/vsicurl/{address}"):
            refused(3, "ogr.gpkg", usual, sly("ogr.gpkg", virtual=f"VirtualOGR('{place}')"), "--layer-new", "a")
            refused(3, "shape.gpkg", usual, sly("shape.gpkg", virtual=f"VirtualShape('{place}', 'UTF-8', 4326)"),
                    "--layer-new", "a")
            for function in ("ogr_datasource_load_layers", "ogr_geocode", "load_extension", "readfile"):
                refused(3, "call.gpkg", usual, sly("call.gpkg", view=f", {function}('{place}') AS e"),
                        "--layer-new", "a")
    assert not asked


def test_bad_input(tmp_path):
    old = layer(tmp_path / "old.geojson", polygons((0, 0)))
    new = layer(tmp_path / "new.geojson", polygons((0, 0)))
    out = tmp_path / "out.csv"
    refused(3, f"cannot open '{tmp_path}/missing.gpkg': No such file or directory", tmp_path / "missing.gpkg", new)
    refused(3, "': Not a directory", old / "x.geojson", new)
    refused(3, "is no file that can be opened", tmp_path, new)
    os.mkfifo(tmp_path / "pipe.geojson")
    refused(3, "is no file that can be opened", tmp_path / "pipe.geojson", new)
    refused(2, "there is no column 'code'; there are: name", old, new, "--id", "code", "-o", out)
    refused(2, "there is no layer 'x'", old, new, "--layer", "x")
    refused(3, "feature 1 (name 0001) is a POINT: only polygons", old,
            layer(tmp_path / "mixed.geojson", polygons((0, 0)) + [("Point", [0, 0])]), "--id", "name", "-o", out)
    refused(3, "has no features", old, layer(tmp_path / "empty.geojson", []))
    text = new.read_text()
    cut = tmp_path / "cut.geojson"
    cut.write_text(text[: len(text) // 2])
    refused(3, "cut.geojson", old, cut)
    assert run("match", old, new, "-o", tmp_path / "whole.gpkg").returncode == 0
    broken = tmp_path / "broken.gpkg"
    broken.write_bytes((tmp_path / "whole.gpkg").read_bytes()[:30000])
    refused(3, "broken.gpkg", broken, new, "--layer", "a", "-o", out)
    # NEW alone has no such column.
    refused(2, "named.geojson: there is no column 'name'; there are: code", old, renamed(new, "named.geojson"),
            "--id", "name", "-o", out)
    assert run("match", old, renamed(new, "named.geojson"), "--id", "name", "--id-new", "code").returncode == 0
    for name in ("whole.fgb", "whole.shp"):
        assert run("match", old, new, "-o", tmp_path / name).returncode == 0
    for name, bytes_left in (("whole_a.fgb", 300), ("whole_a.fgb", 700), ("whole_a.shp", 150), ("whole_a.shp", 50)):
        part = tmp_path / name
        kept = part.read_bytes()
        assert len(kept) > bytes_left
        part.write_bytes(kept[:bytes_left])
        refused(3, name, part, new, "-o", out)
        part.write_bytes(kept)
    refused(2, "--agree and --agreement", old, new, "--agree", "name")
    refused(2, "match: threshold = 3", old, new, "--threshold", "3")
    refused(2, "-o", old, new, "-o", tmp_path / "out.kml")
    refused(2, "split.max_members = -1", old, new, "--max-group", "-1")
    refused(2, "split.max_steps = -1", old, new, "--max-diameter", "-1")
    refused(3, "beyond.geojson", old, layer(tmp_path / "beyond.geojson", polygons((0, 400))))
    assert not out.exists()


def test_codes(tmp_path):
    old = layer(tmp_path / "old.geojson", polygons((0, 0), (1, 0)), ["a", "b"])
    new = layer(tmp_path / "new.geojson", polygons((0.05, 0), (1.05, 0)), ["a", "a"])
    kept = lambda *more: json.loads(run("match", old, new, "--json", *more).stdout)["pairs"]["kept"]
    assert kept() == 2
    assert kept("--agree", "name", "--agreement", "required") == 1


def test_the_plugin_may_be_missing(tmp_path, monkeypatch):
    old = layer(tmp_path / "old.geojson", polygons((0, 0)))
    monkeypatch.setenv("VICINAL_GEO_PLUGIN", str(tmp_path / "nowhere.so"))
    result = run("match", old, old)
    assert result.returncode == 5 and "libgdal-dev" in result.stderr

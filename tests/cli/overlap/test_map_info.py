"""vicinal info of maps. Skipped where the plug-in for files of polygons is not built."""

import json
import signal
import sqlite3
import subprocess
import time

import pytest

from maps import layer, polygons


@pytest.fixture(autouse=True)
def needs_plugin(tmp_path, vicinal):
    layer(tmp_path / "probe.geojson", polygons((0, 0)))
    done = vicinal("info", "probe.geojson")
    if done.returncode == 5:
        assert "libvicinal_geo.so" in done.stderr or "GDAL" in done.stderr
        pytest.skip(done.stderr.strip())


def test_layers_columns_and_extent(ok, ok_json, tmp_path):
    layer(tmp_path / "old.geojson", polygons((0, 0), (2, -3)), ["a", "b"], people=[1, 2], area=[0.5, 2.5])
    said = ok("info", "old.geojson")
    assert "layer old: 2 features, Polygon, EPSG:4326, x 0 to 3, y -3 to 1" in said
    assert [line.split() for line in said.splitlines()[-3:]] == [["name", "String"], ["people", "Integer"], ["area", "Real"]]
    told = ok_json("info", "old.geojson")["map"]
    assert told["format"] == "GeoJSON" and told["layers"] == [{
        "name": "old", "features": 2, "geometry": "Polygon", "crs": "EPSG:4326", "extent": [0, -3, 3, 1],
        "columns": [{"name": "name", "type": "String"}, {"name": "people", "type": "Integer"},
                    {"name": "area", "type": "Real"}]}]
    (tmp_path / "same.json").write_text((tmp_path / "old.geojson").read_text())
    assert ok_json("info", "same.json")["map"]["layers"][0]["features"] == 2


def test_every_layer_and_table_of_a_geopackage(ok_json, ok, tmp_path):
    layer(tmp_path / "old.geojson", polygons((0, 0), (2, 0)))
    layer(tmp_path / "new.geojson", polygons((0, 0)))
    ok("match", "old.geojson", "new.geojson", "-o", "found.gpkg", "-q")
    layers = {one["name"]: one for one in ok_json("info", "found.gpkg")["map"]["layers"]}
    assert layers.keys() == {"a", "b", "pairs", "groups"}
    assert layers["a"]["features"] == 2 and layers["b"]["features"] == 1
    assert layers["pairs"]["geometry"] == "None" and layers["pairs"]["extent"] is None
    assert {"name": "match_grp", "type": "Integer64"} in layers["a"]["columns"]


def test_what_is_no_map(vicinal, tmp_path):
    (tmp_path / "cut.geojson").write_text('{"type": "FeatureCollection", "features": [')
    (tmp_path / "hostile.gpkg").write_bytes(b"SQLite format 3\0" + bytes(200))
    with sqlite3.connect(tmp_path / "other.gpkg") as database:
        database.execute("create table t (x)")
    (tmp_path / "empty.shp").write_bytes(b"")
    for name, code in (("cut.geojson", 3), ("hostile.gpkg", 3), ("empty.shp", 3), ("nowhere.fgb", 3)):
        done = vicinal("info", name)
        assert done.returncode == code and name in done.stderr and done.stdout == "", (name, done)
    done = vicinal("info", "probe.geojson", "--report", "page.html")
    assert done.returncode == 2 and "--report: shows tables only, and the file is a map" in done.stderr


def test_an_interrupt_ends_it(command, tmp_path):
    feature = json.dumps({"type": "Feature", "properties": {}, "geometry": {
        "type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}})
    whole = '{"type": "FeatureCollection", "features": [' + ",\n".join([feature] * 800_000) + "]}"
    (tmp_path / "large.geojson").write_text(whole)  # some seconds of GDAL's
    running = subprocess.Popen([command, "info", "large.geojson"], cwd=tmp_path, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    time.sleep(0.7)
    assert running.poll() is None, running.communicate()
    begin = time.monotonic()
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=60)
    assert time.monotonic() - begin < 5  # of 0.1, for a machine that is busy with other tests
    assert running.returncode == 130, stderr
    assert stdout == "" and stderr.count("\n") == 1


def test_the_memory_named_is_enough(vicinal, tmp_path):
    layer(tmp_path / "map.geojson", polygons(*((2 * i, 0) for i in range(500))))
    told = json.loads(vicinal("info", "map.geojson", "--explain", "--json").stdout)["plan"]["memory_bytes"]
    refused = vicinal("info", "map.geojson", "--memory-limit", told - 1)
    assert refused.returncode == 4 and f"({told} bytes)" in refused.stderr
    assert vicinal("info", "map.geojson", "--memory-limit", told).returncode == 0

"""match and overlaps of GeoPandas, shapely, WKB and files: the answers of flat arrays, frames of what became of each
feature, and an error for what is no map."""

import numpy as np
import pytest
from conftest import same

import vicinal as vc

try:
    import geopandas
    import shapely
except ImportError:
    geopandas = None
pytestmark = pytest.mark.skipif(geopandas is None, reason="needs geopandas and shapely")
PLANE = "EPSG:25832"


def square(x, y, size=1.0, hole=False):
    inner = shapely.box(x + size / 4, y + size / 4, x + size / 2, y + size / 2)
    return (
        shapely.difference(shapely.box(x, y, x + size, y + size), inner)
        if hole
        else shapely.box(x, y, x + size, y + size)
    )


def maps():
    """Two maps of squares, some with holes and some of several parts."""
    a = [square(0, 0, 2), square(2, 0, 2, hole=True), square(4, 0), shapely.MultiPolygon([square(6, 0), square(8, 0)])]
    b = [
        square(0, 0, 2),
        square(2, 0),
        square(3, 0),
        square(9, 9),
        shapely.MultiPolygon([square(6, 0), square(8, 0.5)]),
    ]
    return np.array(a), np.array(b)


def flat(geometries):
    """Polygons of shapely, by their own coordinates."""
    return vc.Polygons.of(
        [
            [
                [list(ring.coords) for ring in (polygon.exterior, *polygon.interiors)]
                for polygon in getattr(geometry, "geoms", [geometry])
            ]
            for geometry in geometries
        ]
    )


def frames(index=None):
    a, b = maps()
    return (
        geopandas.GeoDataFrame({"name": list("pqrs")}, geometry=a, crs=PLANE, index=index),
        geopandas.GeoDataFrame(geometry=b, crs=PLANE),
    )


WAYS = {
    "arrays": lambda values: values,
    "lists": list,
    "frames": lambda values: geopandas.GeoDataFrame(geometry=values, crs=PLANE),
    "series": lambda values: geopandas.GeoSeries(values, crs=PLANE),
    "geometry arrays": lambda values: geopandas.GeoSeries(values, crs=PLANE).values,
    "wkb": lambda values: shapely.to_wkb(values),
    "wkb with a height": lambda values: shapely.to_wkb(shapely.force_3d(values, 7.0)),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_answers_of_flat_arrays(way):
    a, b = maps()
    expected = vc.match(flat(a), flat(b))
    found = vc.match(WAYS[way](a), WAYS[way](b))
    for name in ("a", "b", "area", "kept", "group"):
        same(getattr(found.pairs, name), getattr(expected.pairs, name))
    assert found.groups.change == expected.groups.change and found.copied > 0
    same(found.a.area, expected.a.area)
    overlaps = vc.overlaps(WAYS[way](a), WAYS[way](b))
    same(overlaps.area, vc.overlaps(flat(a), flat(b)).area)
    assert overlaps.areas_a.tolist() == shapely.area(a).tolist()


def test_polygons_alone_and_none():
    a, b = maps()
    only = vc.match(a[:3], b[:4])
    same(only.a.area, vc.match(flat(a[:3]), flat(b[:4])).a.area)
    assert vc.overlaps([], b).areas_b.tolist() == shapely.area(b).tolist()


def test_files(tmp_path):
    pytest.importorskip("pyogrio")
    a, b = frames()
    a.to_file(tmp_path / "a.gpkg")
    b.to_file(tmp_path / "b.geojson", engine="pyogrio", layer_options={"RFC7946": "NO"})
    expected = vc.match(a, b)
    found = vc.match(tmp_path / "a.gpkg", tmp_path / "b.geojson")
    same(found.pairs.area, expected.pairs.area)
    same(vc.match(str(tmp_path / "a.gpkg"), b).pairs.area, expected.pairs.area)
    with pytest.raises(vc.FileError, match="a: .*none.gpkg"):
        vc.match(tmp_path / "none.gpkg", b)
    (tmp_path / "bad.gpkg").write_text("no map")
    with pytest.raises(vc.FileError, match="b: "):
        vc.match(a, tmp_path / "bad.gpkg")


@pytest.mark.parametrize("index", [None, ["w", "x", "y", "z"], [40, 30, 20, 10], [7, 7, 8, 8]])
def test_frames(index):
    a, b = frames(index)
    matched = vc.match(a, b)
    told = matched.frames()
    labels = list(a.index)
    assert list(told.a.index) == labels and list(told.b.index) == list(b.index)
    assert list(told.a.columns) == ["group", "type", "change", "partner"] == list(told.b.columns)
    assert told.a["type"].tolist() == ["1:1", "1:n", "1:0", "1:1"]
    assert told.a["change"].tolist() == ["unchanged", "split", "removed", "modified"]
    assert told.b["change"].tolist() == ["unchanged", "split", "split", "created", "modified"]
    assert told.a["partner"].isna().tolist() == [False, False, True, False]
    assert told.a["partner"].dropna().tolist() == [0, 2, 4] or told.a["partner"].dropna().tolist() == [0, 1, 4]
    assert told.b["partner"].dropna().tolist() == [labels[0], labels[1], labels[1], labels[3]]
    if a.index.is_unique:
        assert told.a.join(a)["name"].tolist() == list("pqrs")
    assert set(told.pairs["a"]) <= set(labels) and len(told.pairs) == len(matched.pairs.a)
    assert told.pairs["kept"].dtype == bool and told.pairs["group"].tolist() == matched.pairs.group.tolist()


def test_arrays_give_arrays():
    a, b = maps()
    told = vc.match(a, b).frames()
    assert isinstance(told.a, dict) and told.a["partner"].tolist()[2] == -1
    assert told.b["change"].tolist() == ["unchanged", "split", "split", "created", "modified"]
    assert told.pairs["area"].shape == told.pairs["a"].shape


def bow_tie():
    return shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])


def one(geometry):
    """A map of squares with something else as its row 2."""
    return np.array([square(0, 0), square(2, 0), geometry], object)


CASES = {
    "no CRS": (
        lambda: (geopandas.GeoDataFrame(geometry=maps()[0]), frames()[1]),
        vc.InvalidArgument,
        "a: a GeoDataFrame without a CRS; say which one it has",
    ),
    "two CRSs": (
        lambda: (frames()[0], frames()[1].set_crs("EPSG:25833", allow_override=True)),
        vc.InvalidArgument,
        "b: its CRS is EPSG:25833, but that of a is EPSG:25832; bring one to the other's",
    ),
    "degrees": (
        lambda: (frames()[0].set_crs("EPSG:4326", allow_override=True), frames()[1]),
        vc.InvalidArgument,
        "a: its CRS EPSG:4326 is in degrees; project it",
    ),
    "a CRS and none": (
        lambda: (frames()[0], maps()[1]),
        vc.InvalidArgument,
        "b: has no CRS, but a is in EPSG:25832; pass both as frames or both as arrays",
    ),
    "None": (lambda: (one(None), maps()[1]), vc.BadData, "a: row 2 has no geometry; leave it out"),
    "None in a frame": (
        lambda: (frames()[0], geopandas.GeoSeries(list(one(None)), crs=PLANE)),
        vc.BadData,
        "b: row 2 has no geometry; leave it out",
    ),
    "empty": (lambda: (maps()[0], one(shapely.Polygon())), vc.BadData, "b: row 2 is empty; leave it out"),
    "invalid": (lambda: (one(bow_tie()), maps()[1]), vc.BadData, "a: row 2 is invalid .Self-intersection.*repair=True"),
    "point": (
        lambda: (one(shapely.Point(1, 2)), maps()[1]),
        vc.BadData,
        "a: row 2 is a Point; expected a Polygon or MultiPolygon",
    ),
    "text": (lambda: (maps()[0], ["here"]), vc.InvalidArgument, "b: row 0 is of type str; expected Polygons"),
    "numbers": (lambda: (np.zeros((3, 2)), maps()[1]), vc.InvalidArgument, "a: 2 dimensions; expected 1"),
    "number": (lambda: (5, maps()[1]), vc.InvalidArgument, "a: 0 dimensions; expected 1"),
    "damaged WKB": (
        lambda: (shapely.to_wkb(maps()[0]).tolist() + [b"\x01\x03"], maps()[1]),
        vc.BadData,
        "a: row 4 is no WKB of a geometry",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_error(case):
    make, kind, sentence = CASES[case]
    a, b = make()
    for function in (vc.match, vc.overlaps):
        with pytest.raises(kind, match=sentence) as caught:
            function(a, b)
        assert "\n" not in str(caught.value)


def test_repair():
    collection = shapely.GeometryCollection([square(4, 0), shapely.LineString([(9, 9), (10, 10)])])
    a = np.array(
        [
            bow_tie(),
            square(2, 0),
            collection,
            shapely.Polygon([(5, 5), (6, 5), (6, 6), (5, 6), (5, 5.5), (4, 5.5), (5, 5.5)]),
        ]
    )
    found = vc.overlaps(a, maps()[1], repair=True)
    assert found.areas_a.tolist() == [2, 1, 1, 1]
    same(vc.match(a, a, repair=True).a.area, found.areas_a)
    with pytest.raises(vc.BadData, match="a: row 1 covers no area, not even repaired"):
        vc.match([square(0, 0), shapely.Polygon([(0, 0), (1, 1), (0, 0)])], a, repair=True)
    with pytest.raises(vc.BadData, match="a: row 0 is a LineString; expected a Polygon"):
        vc.match([shapely.LineString([(0, 0), (1, 1)])], a, repair=True)


def test_files_without_pyogrio(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyogrio", None)
    with pytest.raises(vc.InvalidArgument, match=r"a: files need pyogrio and pyproj, and pyogrio is not installed"):
        vc.match("a.gpkg", "b.gpkg")


def test_a_file_without_a_crs_or_in_degrees(tmp_path):
    a, b = frames()
    geopandas.GeoDataFrame(geometry=maps()[0]).to_file(tmp_path / "plain.gpkg")
    with pytest.raises(vc.InvalidArgument, match="a: a file without a CRS; say which one it has"):
        vc.match(tmp_path / "plain.gpkg", b)
    a.set_crs("EPSG:4326", allow_override=True).to_file(tmp_path / "degrees.gpkg")
    with pytest.raises(vc.InvalidArgument, match="b: its CRS EPSG:4326 is in degrees; project it"):
        vc.match(a, tmp_path / "degrees.gpkg")


def test_without_shapely(monkeypatch):
    given = shapely.to_wkb(maps()[0])
    monkeypatch.setitem(__import__("sys").modules, "shapely", None)
    with pytest.raises(vc.InvalidArgument, match=r"a: geometries need shapely 2.*install vicinal\[geo\]"):
        vc.match(given, given)
    assert vc.match(vc.Polygons.of([]), vc.Polygons.of([])).candidates == 0

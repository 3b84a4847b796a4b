"""Maps as users have them, to flat arrays: frames and series of GeoPandas, arrays of shapely, WKB, and files."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vicinal._errors import BadData, FileError, InvalidArgument
from vicinal._tables import sentence

_POLYGON, _MULTIPOLYGON, _COLLECTION = 3, 6, 7  # of shapely.get_type_id


class Layer(NamedTuple):
    """One map."""

    arrays: tuple[Any, ...]  #: points (flat), rings, parts, features
    crs: Any  #: of pyproj; None where the map has none
    index: Any  #: of pandas, where the map came with one
    copied: int  #: bytes


def layer(value: Any, name: str, repair: bool) -> Layer:
    """The polygons of GeoPandas, shapely, WKB or a file, and their CRS.

    Raises InvalidArgument for a frame or file without a CRS or of one in degrees, and for objects that are no
    geometries, BadData naming the row of a geometry that is missing, empty, invalid (unless it is to be repaired), or
    no polygon.
    """
    shapely = _shapely(name)
    crs, index, given = None, None, value
    if isinstance(value, (str, os.PathLike)):
        given, crs = _file(os.fspath(value), name)
        _check_crs(crs, name, "a file")
    elif hasattr(value, "crs"):
        series = getattr(value, "geometry", value)  # of a frame; a series is its own
        given, crs, index = np.asarray(series, object), value.crs, getattr(value, "index", None)
        _check_crs(crs, name, f"a {type(value).__name__}")
    geometries = _geometries(shapely, given, name)
    _check(shapely, geometries, name, repair)
    if repair:
        geometries = _repaired(shapely, geometries, name)
    arrays = _arrays(shapely, geometries)
    return Layer(arrays, crs, index, sum(array.nbytes for array in arrays))


def _shapely(name: str) -> Any:
    try:
        import shapely
    except ImportError:
        raise InvalidArgument(
            f"{name}: geometries need shapely 2, which is not installed; install vicinal[geo], or pass Polygons"
        ) from None
    return shapely


def _check_crs(crs: Any, name: str, what: str) -> None:
    if crs is None:
        raise InvalidArgument(
            f"{name}: {what} without a CRS; say which one it has (set_crs), or pass its geometries as an array of "
            "shapely for plane coordinates"
        )
    if getattr(crs, "is_geographic", False):
        raise InvalidArgument(f"{name}: its CRS {crs.to_string()} is in degrees; project it to a plane first (to_crs)")


def _file(path: str, name: str) -> tuple[NDArray[Any], Any]:
    """The geometries of a file as WKB, and its CRS."""
    try:
        import pyogrio
        import pyproj
    except ImportError as error:
        raise InvalidArgument(
            f"{name}: files need pyogrio and pyproj, and {error.name} is not installed; install vicinal[geo]"
        ) from None
    read: Any = pyogrio.raw.read
    try:
        meta, _, geometries, _ = read(path, columns=[])
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError) as error:
        raise FileError(f"{name}: {sentence(error)}") from error
    return geometries, None if meta["crs"] is None else pyproj.CRS.from_user_input(meta["crs"])


def _geometries(shapely: Any, value: Any, name: str) -> NDArray[Any]:
    """An array [n] of geometries of shapely; WKB is read."""
    try:
        array = np.asarray(value, object)
    except ValueError as error:
        raise InvalidArgument(f"{name}: {sentence(error)}; expected geometries") from error
    if array.ndim != 1:
        raise InvalidArgument(f"{name}: {array.ndim} dimensions; expected 1, a geometry for each feature")
    is_bytes = np.fromiter((isinstance(one, (bytes, bytearray)) for one in array), bool, len(array))
    array = np.array([bytes(one) if isinstance(one, bytearray) else one for one in array] + [None], object)[:-1]
    is_missing = np.fromiter((one is None for one in array), bool, len(array))
    others = ~(is_bytes | is_missing | shapely.is_geometry(array))
    if others.any():
        row = int(others.argmax())
        raise InvalidArgument(
            f"{name}: row {row} is of type {type(array[row]).__name__}; expected Polygons, a GeoDataFrame, geometries "
            "of shapely or WKB"
        )
    if not is_bytes.any():
        return array
    read = array.copy()
    read[is_bytes] = shapely.from_wkb(array[is_bytes], on_invalid="ignore")
    damaged = is_bytes & np.fromiter((one is None for one in read), bool, len(read))
    if damaged.any():
        raise BadData(f"{name}: row {int(damaged.argmax())} is no WKB of a geometry")
    return read


def _check(shapely: Any, geometries: NDArray[Any], name: str, repair: bool) -> None:
    """Every geometry is there, has polygons and, unless it is to be repaired, is valid."""
    kinds = shapely.get_type_id(geometries)
    allowed = (_POLYGON, _MULTIPOLYGON, _COLLECTION) if repair else (_POLYGON, _MULTIPOLYGON)
    _refuse(name, kinds == -1, lambda row: "has no geometry; leave it out")
    _refuse(name, shapely.is_empty(geometries), lambda row: "is empty; leave it out")
    _refuse(
        name,
        ~np.isin(kinds, allowed),
        lambda row: f"is a {geometries.item(row).geom_type}; expected a Polygon or MultiPolygon",
    )
    _refuse(name, ~np.isfinite(shapely.bounds(geometries)).all(axis=1), lambda row: "has a coordinate that is not finite")
    if not repair:
        _refuse(
            name,
            ~shapely.is_valid(geometries),
            lambda row: f"is invalid ({shapely.is_valid_reason(geometries[row])}); repair=True makes it valid",
        )


def _refuse(name: str, bad: NDArray[np.bool_], what: Any) -> None:
    if bad.any():
        row = int(bad.argmax())
        raise BadData(f"{name}: row {row} {what(row)}")


def _repaired(shapely: Any, geometries: NDArray[Any], name: str) -> NDArray[Any]:
    """By shapely.make_valid, of whose results the polygons are kept."""
    made = geometries.copy()
    for row in np.flatnonzero(~shapely.is_valid(geometries) | (shapely.get_type_id(geometries) == _COLLECTION)):
        parts = shapely.get_parts(shapely.make_valid(geometries[row]))
        while (shapely.get_type_id(parts) >= _MULTIPOLYGON).any():  # collections in collections
            parts = shapely.get_parts(parts)
        parts = parts[shapely.get_type_id(parts) == _POLYGON]
        if len(parts) == 0:
            raise BadData(f"{name}: row {row} covers no area, not even repaired; leave it out")
        made[row] = shapely.union_all(parts) if len(parts) > 1 else parts[0]
    return made


def _arrays(shapely: Any, geometries: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Points (flat), rings, parts, features."""
    if len(geometries) == 0:
        start = np.zeros(1, np.int64)
        return np.zeros(0), start, start, start
    kind, points, offsets = shapely.to_ragged_array(shapely.force_2d(geometries))
    rings, parts = (np.asarray(one, np.int64) for one in offsets[:2])
    one_each = int(kind) == _POLYGON
    features = np.arange(len(geometries) + 1) if one_each else np.asarray(offsets[2], np.int64)
    return np.ascontiguousarray(points).reshape(-1), rings, parts, features

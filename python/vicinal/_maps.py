"""Maps: overlaps of polygons, and which features of two maps correspond."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from vicinal import _core, _geometries
from vicinal._errors import InvalidArgument
from vicinal._names import documented
from vicinal._options import MatchOptions, OverlapOptions
from vicinal._results import Float64Array, Int64Array, Result

__all__ = [
    "Match",
    "MatchFeatures",
    "MatchFrames",
    "MatchGroups",
    "MatchPairs",
    "Overlaps",
    "Polygons",
    "match",
    "overlaps",
]


class Polygons(NamedTuple):
    """Features of any number of polygons with holes, as flat arrays (shapely.to_ragged_array has the same for
    multipolygons, features last). Feature i has the parts features[i] .. features[i + 1] - 1; part p the rings parts[p]
    .., the shell first; ring r the points rings[r] .., the first one repeated at the end or not."""

    points: Any  #: [points, 2] or flat: x, y
    rings: Any  #: [rings + 1]
    parts: Any  #: [parts + 1]
    features: Any  #: [n + 1]

    @classmethod
    def of(cls, features: Any) -> Polygons:
        """Of nested lists as GeoJSON has them: a feature is a list of polygons, a polygon a list of rings, a ring a
        list of points (x, y)."""
        points: list[Any] = []
        rings, parts, ends = [0], [0], [0]
        for feature in features:
            for polygon in feature:
                for ring in polygon:
                    points.extend(ring)
                    rings.append(len(points))
                parts.append(len(rings) - 1)
            ends.append(len(parts) - 1)
        return cls(np.array(points, float).reshape(-1, 2), np.array(rings), np.array(parts), np.array(ends))

    def _flat(self) -> tuple[Any, ...]:
        return (np.asarray(self.points).reshape(-1), self.rings, self.parts, self.features)


class Overlaps(Result):
    """Every pair of features that share a point, by (a, b)."""

    a: Int64Array  #: [pairs]
    b: Int64Array  #: [pairs]
    relation: list[str]  #: [pairs] "touches", "overlaps", "covers", "covered_by", "contains", "within", "equals"
    area: Float64Array  #: [pairs] of the intersection, in square units of the coordinates
    width: Float64Array  #: [pairs] mean width of the intersection
    areas_a: Float64Array  #: [features of a]
    areas_b: Float64Array  #: [features of b]
    candidates: int  #: pairs whose boxes meet


class MatchPairs(Result):
    """Pairs that share a point."""

    a: Int64Array
    b: Int64Array
    area: Float64Array
    width: Float64Array
    share_a: Float64Array  #: of a's area
    share_b: Float64Array
    iou: Float64Array
    kept: NDArray[np.bool_]
    doubtful: NDArray[np.bool_]
    group: Int64Array  #: -1 where not kept
    cut: NDArray[np.bool_]
    sliver: NDArray[np.bool_]


class MatchFeatures(Result):
    """Features of one map."""

    area: Float64Array
    group: Int64Array
    best: Int64Array  #: kept partner that shares most area; -1: none
    hub: NDArray[np.bool_]


class MatchGroups(Result):
    """Groups of features that correspond."""

    count_a: Int64Array
    count_b: Int64Array
    type: list[str]  #: "1:1", "1:n", ..
    change: list[str]  #: "unchanged", "modified", "split", "merged", "created", "removed", "complex"
    area_a: Float64Array
    area_b: Float64Array
    shared: Float64Array
    iou: Float64Array
    coherence: Float64Array
    overlaps_itself: NDArray[np.bool_]


class Match(Result):
    """Which features of two maps correspond."""

    pairs: MatchPairs
    a: MatchFeatures
    b: MatchFeatures
    groups: MatchGroups
    candidates: int
    split_groups: int
    threshold: float  #: that was used

    _indexes: tuple[Any, Any]

    def __init__(self, answer: tuple[_core.Native, dict[str, Any]], indexes: tuple[Any, Any] = (None, None)) -> None:
        fields = answer[1]
        fields["_indexes"] = indexes
        fields["pairs"] = MatchPairs(fields["pairs"])
        fields["a"] = MatchFeatures(fields["a"])
        fields["b"] = MatchFeatures(fields["b"])
        fields["groups"] = MatchGroups(fields["groups"])
        super().__init__(answer)

    def frames(self) -> MatchFrames:
        """What became of every feature, by map, and the pairs: frames of pandas with the labels of the maps' own rows
        where both maps came as frames or series of GeoPandas, else dictionaries of arrays, whose partners and pairs are
        rows by number. A feature's `partner` is the kept one that shares most area: missing (-1) where it has none.
        O(features + pairs)."""
        types, changes = (np.array(words, object) for words in (self.groups.type, self.groups.change))
        tables: list[dict[str, Any]] = [
            {"group": side.group, "type": types[side.group], "change": changes[side.group], "partner": side.best}
            for side in (self.a, self.b)
        ]
        names = ("a", "b", "area", "width", "share_a", "share_b", "iou", "kept", "doubtful", "group", "cut", "sliver")
        tables.append({name: np.array(getattr(self.pairs, name)) for name in names})
        if any(index is None for index in self._indexes):
            return MatchFrames(*tables)
        import pandas as pd

        labels_a, labels_b = self._indexes
        for own, other, table in ((labels_a, labels_b, tables[0]), (labels_b, labels_a, tables[1])):
            has_one = table["partner"] >= 0
            partner = pd.Series(pd.NA, index=own, dtype=object)
            partner[has_one] = other.take(table["partner"][has_one]).to_numpy(object)
            table["partner"] = partner.convert_dtypes()
        tables[2].update({name: labels.take(tables[2][name]).to_numpy() for name, labels in zip("ab", self._indexes)})
        indexes = (labels_a, labels_b, None)
        return MatchFrames(*(pd.DataFrame(table, index=index) for table, index in zip(tables, indexes)))


class MatchFrames(NamedTuple):
    """What `Match.frames` gives: frames of pandas, or dictionaries of arrays."""

    a: Any  #: for each feature of a: group, type ("1:1"), change ("split"), partner
    b: Any
    pairs: Any  #: a, b, area, width, share_a, share_b, iou, kept, doubtful, group, cut, sliver


class _Layers(NamedTuple):
    a: tuple[Any, ...]
    b: tuple[Any, ...]
    indexes: tuple[Any, Any]
    copied: int


def _layers(a: Any, b: Any, repair: bool) -> _Layers:
    """Both maps as flat arrays, in one plane."""
    read = [
        (
            _geometries.Layer(value._flat(), None, None, 0)
            if isinstance(value, Polygons)
            else _geometries.layer(value, name, repair)
        )
        for value, name in ((a, "a"), (b, "b"))
    ]
    left, right = read
    if (left.crs is None) != (right.crs is None):
        without, other, crs = ("a", "b", right.crs) if left.crs is None else ("b", "a", left.crs)
        raise InvalidArgument(
            f"{without}: has no CRS, but {other} is in {crs.to_string()}; pass both as frames or both as " "arrays"
        )
    if left.crs is not None and left.crs != right.crs:
        names = [one.crs.to_string() for one in read]
        raise InvalidArgument(
            f"b: its CRS is {names[1]}, but that of a is {names[0]}; bring one to the other's (to_crs)"
        )
    return _Layers(left.arrays, right.arrays, (left.index, right.index), left.copied + right.copied)


def _counted(answer: tuple[_core.Native, dict[str, Any]], copied: int) -> tuple[_core.Native, dict[str, Any]]:
    answer[1]["copied"] += copied
    return answer


@documented("OverlapOptions")
def overlaps(a: Any, b: Any, *, repair: bool = False, **options: Unpack[OverlapOptions]) -> Overlaps:
    """Every pair of a feature of `a` and one of `b` that share a point, with their exact relation and the area of their
    intersection.

    A map is `Polygons`, a GeoDataFrame or GeoSeries, an array of geometries of shapely or of WKB, or the path of a file
    (these need shapely, files pyogrio). Coordinates are planar: frames and files need the same CRS, in no degrees.
    `repair` makes invalid geometries valid. Raises InvalidArgument for offsets that do not fit and other CRSs, BadData
    naming the row of a geometry that is missing, empty, invalid or no polygon, and for coordinates out of range. O((m +
    n) log n) for boxes, and O(e log e) a pair of e edges.
    """
    layers = _layers(a, b, repair)
    return Overlaps(_counted(_core.overlaps(layers.a, layers.b, options), layers.copied))


@documented("MatchOptions")
def match(a: Any, b: Any, *, repair: bool = False, **options: Unpack[MatchOptions]) -> Match:
    """Which features of two maps of the same area correspond, from one to one up to many to many. Maps are those of
    `overlaps`; `match(a, b).frames()` has a line for each feature. Raises as `overlaps`, and InvalidArgument for
    options out of range. Cost of `overlaps`."""
    layers = _layers(a, b, repair)
    return Match(_counted(_core.match(layers.a, layers.b, options), layers.copied), layers.indexes)

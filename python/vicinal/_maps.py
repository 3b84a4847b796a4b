"""Maps: overlaps of polygons, and which features of two maps correspond."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from vicinal import _core
from vicinal._names import documented
from vicinal._options import MatchOptions, OverlapOptions
from vicinal._results import Float64Array, Int64Array, Result

__all__ = ["Match", "MatchFeatures", "MatchGroups", "MatchPairs", "Overlaps", "Polygons", "match", "overlaps"]


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

    def __init__(self, answer: tuple[_core.Native, dict[str, Any]]) -> None:
        fields = answer[1]
        fields["pairs"] = MatchPairs(fields["pairs"])
        fields["a"] = MatchFeatures(fields["a"])
        fields["b"] = MatchFeatures(fields["b"])
        fields["groups"] = MatchGroups(fields["groups"])
        super().__init__(answer)


@documented("OverlapOptions")
def overlaps(a: Polygons, b: Polygons, **options: Unpack[OverlapOptions]) -> Overlaps:
    """Every pair of a feature of `a` and one of `b` that share a point, with their exact relation and the area of their
    intersection. Coordinates are planar. Raises InvalidArgument for offsets that do not fit, BadData for coordinates
    out of range. O((m + n) log n) for boxes, and O(e log e) a pair of e edges."""
    return Overlaps(_core.overlaps(a._flat(), b._flat(), options))


@documented("MatchOptions")
def match(a: Polygons, b: Polygons, **options: Unpack[MatchOptions]) -> Match:
    """Which features of two maps of the same area correspond, from one to one up to many to many. Raises as `overlaps`,
    and InvalidArgument for options out of range. Cost of `overlaps`."""
    return Match(_core.match(a._flat(), b._flat(), options))

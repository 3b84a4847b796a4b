"""Outliers: lof and related scores, and the scores of new rows."""

from __future__ import annotations

import os
from typing import Any, Unpack

from vicinal import _core
from vicinal._neighbors import Index, NeighborGraph
from vicinal._names import documented
from vicinal._options import Common, LofOptions
from vicinal._results import Float64Array, Plan, Result, SearchStats

__all__ = ["Lof", "lof", "novelty"]


class Lof(Result):
    """Outlier scores of a table's rows; larger is more outlying."""

    scores: Float64Array  #: [n] finite, or infinity by some policies for duplicates
    threshold: float  #: rows with a score above it are outliers
    outliers: int  #: rows above it
    duplicates: int  #: rows whose k-th neighbor is at distance 0
    k_distances: Float64Array  #: [n] with novelty=True
    densities: Float64Array  #: [n] with novelty=True
    plan: Plan
    stats: SearchStats
    score_seconds: float

    def save(self, path: str | os.PathLike[str], index: Index, **options: Unpack[Common]) -> None:
        """Writes the result, made with novelty=True of `index`, and the index to one file, which the command and C++
        read, too. Raises FileError."""
        _core.save_lof(self, index, os.fspath(path), dict(options))

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Unpack[Common]) -> tuple[Index, Lof]:
        """Reads a saved index and its result. Raises BadData for another file, InvalidArgument for one of the command
        whose columns were scaled or coded."""
        index, fitted = _core.load_lof(os.fspath(path), dict(options))
        return Index._of(index), cls(fitted)


@documented("LofOptions")
def lof(table: Any, rows: Any = None, **options: Unpack[LofOptions]) -> Lof:
    """The local outlier factor of each row of a table [n, d], of an Index, or of the graph of a table within itself,
    or by `score` another outlier score. Of a graph, "ldof" and "cof" need the table's rows, too.

    Raises InvalidArgument for options outside their domain, BadData for NaN, infinity and graphs that cannot be a
    table's within itself, OverMemory. Cost of `knn`, and O(n k); of "ldof" and "cof" O(n k^2 d).
    """
    return Lof(_core.lof(table, rows, options))


def novelty(index: Index, model: Lof, queries: Any, **options: Unpack[Common]) -> Float64Array:
    """Scores [m] of other rows, by a result that `lof` made of the index with novelty=True.

    Raises InvalidArgument for a model of another table and queries of another width, BadData for NaN and infinity.
    Cost of `knn` with m queries.
    """
    return _core.novelty(index, model, queries, dict(options))

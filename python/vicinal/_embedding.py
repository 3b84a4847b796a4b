"""Locally linear embedding."""

from __future__ import annotations

import os
from typing import Any, Unpack

from vicinal import _core
from vicinal._neighbors import Index, NeighborGraph
from vicinal._names import documented
from vicinal._options import Common, LleOptions
from vicinal._results import Float64Array, Int64Array, Plan, Record, Result, SearchStats

__all__ = ["Lle", "LlePiece", "lle", "transform"]


class LlePiece(Record):
    """One connected piece of the neighbor graph, and what was solved for it."""

    rows: int
    placed: int
    component: int
    closed_classes: int
    solver: str
    singular_values: Float64Array  #: [dim]
    residuals: Float64Array  #: [dim]
    next_singular_value: float
    zeros: int
    counted: int
    count: str
    iterations: int


class Lle(Result):
    """An embedding. Rows of different pieces have no place relative to each other."""

    embedding: Float64Array  #: [n, dim]
    piece: Int64Array  #: [n]
    placed: Int64Array  #: rows that were placed by their neighbors, ascending
    pieces: list[LlePiece]
    warning: str  #: what the memory limit cost; empty: nothing
    eigenvalue_sum: float  #: scikit-learn's reconstruction_error_
    largest_weight: float
    plan: Plan
    stats: SearchStats

    def __init__(self, answer: tuple[_core.Native, dict[str, Any]]) -> None:
        answer[1]["pieces"] = [LlePiece(fields) for fields in answer[1]["pieces"]]
        super().__init__(answer)

    def save(self, path: str | os.PathLike[str], index: Index, **options: Unpack[Common]) -> None:
        """Writes the result, of the table of `index`, and the index to one file, which the command and C++
        read, too. Raises FileError."""
        _core.save_lle(self, index, os.fspath(path), dict(options))

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Unpack[Common]) -> tuple[Index, Lle]:
        """Reads a saved index and its result. Raises BadData for another file, InvalidArgument for one of the command
        whose columns were scaled or coded."""
        index, fitted = _core.load_lle(os.fspath(path), dict(options))
        return Index._of(index), cls(fitted)


@documented("LleOptions")
def lle(table: Any, graph: NeighborGraph | None = None, **options: Unpack[LleOptions]) -> Lle:
    """Embeds the rows of a table [n, d] in `dim` columns, by `k` neighbors each, or those of a known graph.

    Raises InvalidArgument for options outside their domain, BadData for NaN, infinity and weights that are not
    determined, OverMemory with the bytes that it needs, InternalError if the solver does not converge. The search,
    O(n k^3) for weights, and the solver: O(n^1.5) for data of two intrinsic dimensions. The last bits differ by
    instruction set and device.
    """
    return Lle(_core.lle(table, graph, options))


def transform(index: Index, model: Lle, queries: Any, **options: Unpack[Common]) -> Float64Array:
    """Coordinates [m, dim] of other rows [m, d], by an embedding of the index' table. Cost of `knn`, and O(m k^3)."""
    return _core.lle_transform(index, model, queries, dict(options))

"""Locally linear embedding."""

from __future__ import annotations

from typing import Any, Callable, ClassVar, Unpack

from numpy.typing import ArrayLike

from vicinal import _core, _plots
from vicinal._neighbors import Index, NeighborGraph
from vicinal._names import documented
from vicinal._options import Common, LleOptions
from vicinal._results import Float64Array, Int64Array, Plan, Record, Result, Saved, SearchStats

__all__ = ["Lle", "LleModel", "LlePiece", "lle", "transform"]


class LlePiece(Record):
    """One connected piece of the neighbor graph, and what was solved for it."""

    rows: int
    placed: int
    component: int
    closed_classes: int
    solver: str
    singular_values: Float64Array  #: [dim]
    residuals: Float64Array  #: [dim]
    angles: Float64Array  #: [dim] estimated sine of the angle to the true vectors
    localization: Float64Array  #: [dim] participation ratio: 1 spread out, 1 / rows on one row
    next_singular_value: float
    norm: float
    zeros: int
    counted: int
    count: str
    iterations: int
    fill: int  #: entries of the direct factor
    flops: float


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

    def plot(self, color: ArrayLike | None = None, axes: Any = None) -> Any:
        """The first two columns, colored by `color` [n] or by pieces, on `axes` of matplotlib or new ones, which are
        returned. Needs matplotlib."""
        return _plots.embedding(self, color, axes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _lle, (_core.lle_state(self),)


def _lle(state: dict[str, Any]) -> Lle:
    """An embedding from a pickle; its plan and stats are not kept."""
    return Lle(_core.lle_of(state))


class LleModel(Saved):
    """An index and the embedding of its table: what it takes to place other rows.

    One from a file may have been made of scaled or coded columns; its index then has the prepared rows. Raises
    InvalidArgument for an embedding of another table.
    """

    _kind = "LleModel"
    _records: ClassVar[dict[str, Callable[[Any], Record]]] = {"index": Index._of, "fitted": Lle}

    index: Index
    fitted: Lle
    columns: list[str]  #: names of the columns of queries, where the model knows them

    def __init__(self, index: Index, fitted: Lle, **options: Unpack[Common]) -> None:
        super().__init__(_core.lle_model(index, fitted, dict(options)))

    def transform(self, queries: Any, **options: Unpack[Common]) -> Float64Array:
        """Coordinates [m, dim] of other rows [m, d], given as the rows that the model was made of: they are prepared as
        those were. `queries` may be a `Table` of `read`, or a path, of which columns are found by their names. Raises
        as the function `transform`, and BadData for other columns. Cost of `knn`, and O(m k^3)."""
        return _core.model_transform(self, queries, dict(options))


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

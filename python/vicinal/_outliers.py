"""Outliers: lof and related scores, and the scores of new rows."""

from __future__ import annotations

from typing import Any, Callable, ClassVar, Unpack

from vicinal import _core, _plots
from vicinal._neighbors import Index, NeighborGraph
from vicinal._names import documented
from vicinal._options import Common, LofOptions
from vicinal._results import Float64Array, Plan, Record, Result, Saved, SearchStats

__all__ = ["Lof", "LofModel", "lof", "novelty"]


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

    def plot(self, axes: Any = None) -> Any:
        """Scores from the largest to the smallest, and the threshold, on `axes` of matplotlib or new ones, which are
        returned. Needs matplotlib."""
        return _plots.scores(self, axes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _lof, (_core.lof_state(self),)


def _lof(state: dict[str, Any]) -> Lof:
    """Scores from a pickle; their plan and stats are not kept."""
    return Lof(_core.lof_of(state))


class LofModel(Saved):
    """An index and the scores of its rows, made with novelty=True: what it takes to score other rows.

    One from a file may have been made of scaled or coded columns; its index then has the prepared rows. Raises
    InvalidArgument for scores of another table, or made without novelty.
    """

    _kind = "LofModel"
    _records: ClassVar[dict[str, Callable[[Any], Record]]] = {"index": Index._of, "fitted": Lof}

    index: Index
    fitted: Lof
    columns: list[str]  #: names of the columns of queries, where the model knows them

    def __init__(self, index: Index, fitted: Lof, **options: Unpack[Common]) -> None:
        super().__init__(_core.lof_model(index, fitted, dict(options)))

    def novelty(self, queries: Any, **options: Unpack[Common]) -> Float64Array:
        """Scores [m] of other rows [m, d], given as the rows that the model was made of: they are prepared as those
        were. `queries` may be a `Table` of `read`, or a path, of which columns are found by their names. Raises
        InvalidArgument for queries of another width, BadData for NaN, infinity and other columns. Cost of `knn`."""
        return _core.model_novelty(self, queries, dict(options))


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

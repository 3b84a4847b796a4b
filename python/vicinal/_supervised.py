"""Classification and regression by neighbors."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal import _core
from vicinal._errors import InvalidArgument
from vicinal._neighbors import NeighborGraph
from vicinal._names import documented
from vicinal._options import ClassifyOptions, CrossValidateOptions, RegressionOptions, RegressOptions, VoteOptions
from vicinal._results import Float64Array, Int32Array, Int64Array, Plan, Result, SearchStats
from vicinal._tables import _array

__all__ = [
    "Classification",
    "CrossValidation",
    "Regression",
    "Vote",
    "average",
    "classify",
    "cross_validate",
    "regress",
    "vote",
]


class Vote(Result):
    """The class that each query's neighbors vote for."""

    codes: Int32Array  #: [m] positions in `classes`; -1 for a query without neighbors
    classes: NDArray[Any]  #: [c] the classes there are, ascending: numbers, or texts by their bytes
    probabilities: Float64Array | None  #: [m, c] with probabilities=True: the share of the weight of each class

    @property
    def labels(self) -> NDArray[Any]:
        """[m] the classes. Raises InvalidArgument where a query has none."""
        return self.filled(None)

    def filled(self, outlier: Any) -> NDArray[Any]:
        """[m] the classes; `outlier` for queries without neighbors."""
        without = self.codes < 0
        if not without.any():
            return self.classes[self.codes]
        if outlier is None:
            raise InvalidArgument(
                f"outlier: {int(without.sum())} queries have no neighbors, such as query {int(without.argmax())}; call "
                "filled(outlier) with a label for them"
            )
        return np.where(without, np.asarray(outlier), self.classes[self.codes])


class Classification(Vote):
    """A vote, and the search that found who votes."""

    plan: Plan
    stats: SearchStats


class Regression(Result):
    """The means of the neighbors' targets."""

    values: Float64Array  #: [m, outputs]
    outliers: int  #: queries without neighbors
    plan: Plan
    stats: SearchStats


class CrossValidation(Result):
    """Scores of numbers of neighbors, by rows that were left out."""

    k: int  #: the best number of neighbors, of several the smallest
    score: float  #: by it
    first_k: int  #: the number that scores[0] is of
    scores: Float64Array  #: [numbers tried] accuracy, or mean squared error
    fold_scores: Float64Array  #: [numbers tried, folds]
    fold_of: Int32Array  #: [n]
    fold_sizes: Int64Array  #: [folds]
    searched: int
    topped_up: int
    plan: Plan
    stats: SearchStats
    score_seconds: float


@documented("VoteOptions")
def vote(graph: NeighborGraph, labels: ArrayLike, **options: Unpack[VoteOptions]) -> Vote:
    """The label with the largest weight among the neighbors of each query; ties to the smaller one.

    `labels` [n] are whole numbers or texts. `weights` may also be an array like `graph.ids`. Raises InvalidArgument for
    labels that do not number the table's rows, weights by distance with inner_product, and weights that are negative or
    not finite. O(m k) time.
    """
    _check_shape(graph, options.get("weights"))
    return Vote(_core.vote(graph, labels, options))


@documented("KnnOptions", "VoteOptions")
def classify(table: Any, queries: Any, labels: ArrayLike, **options: Unpack[ClassifyOptions]) -> Classification:
    """`knn` (or with `radius`, `radius`) and `vote` in one call, with the same bits: on a device lists do not leave it.

    Raises what `knn` and `vote` raise. Cost of `knn`, and O(m k).
    """
    return Classification(_core.classify(table, queries, labels, options))


@documented("RegressOptions")
def average(graph: NeighborGraph, targets: Any, **options: Unpack[RegressOptions]) -> Float64Array:
    """The weighted means [m, outputs] of the targets [n, outputs] of each query's neighbors; targets [n] are one
    output. `weights` may also be an array like `graph.ids`. Raises InvalidArgument for targets that do not number the
    table's rows, BadData for NaN and infinity. O(m k outputs)."""
    _check_shape(graph, options.get("weights"))
    return _core.average(graph, _outputs(targets), options)


@documented("KnnOptions", "RegressOptions")
def regress(table: Any, queries: Any, targets: Any, **options: Unpack[RegressionOptions]) -> Regression:
    """`knn` (or with `radius`, `radius`) and `average` in one call, with the same bits. Raises what these raise."""
    return Regression(_core.regress(table, queries, _outputs(targets), options))


@documented("CrossValidateOptions")
def cross_validate(
    table: Any, labels: ArrayLike | None = None, *, targets: Any = None, **options: Unpack[CrossValidateOptions]
) -> CrossValidation:
    """Which number of neighbors, from `k` to `k_to`, predicts left-out rows best: of `labels` [n] by accuracy, with
    stratified folds, or of `targets` [n, outputs] by mean squared error. One search serves all. Raises what `knn` and
    `vote` raise. O(n k_to^2) beside the search."""
    return CrossValidation(_core.cross_validate(table, labels, None if targets is None else _outputs(targets), options))


def _check_shape(graph: NeighborGraph, weights: Any) -> None:
    """Of weights that are an array."""
    if weights is None or isinstance(weights, str) or callable(weights) or not isinstance(graph, NeighborGraph):
        return
    shape, expected = _array(weights, "weights").shape, graph.ids.shape
    if shape and shape != expected:
        raise InvalidArgument(f"weights: shape {list(shape)}; expected {list(expected)}, one for each neighbor")


def _outputs(targets: Any) -> Any:
    """One output is a column."""
    if getattr(targets, "ndim", 2) != 1:
        return targets
    return (targets if isinstance(targets, np.ndarray) else np.asarray(targets))[:, None]

"""Classification and regression by neighbors."""

from __future__ import annotations

import math
from typing import Any, Literal, Sequence, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal import _core, _plots
from vicinal._errors import InvalidArgument
from vicinal._neighbors import NeighborGraph
from vicinal._names import documented
from vicinal._options import (
    ClassifyOptions,
    Common,
    CrossValidateOptions,
    FitOptions,
    Metric,
    RegressionOptions,
    RegressOptions,
    VoteOptions,
)
from vicinal._results import Float64Array, Int32Array, Int64Array, Plan, Result, Saved, SearchStats
from vicinal._tables import _array

__all__ = [
    "Classification",
    "CrossValidation",
    "NeighborModel",
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

    def plot(self, truth: ArrayLike, axes: Any = None) -> Any:
        """How many queries of each class (`truth` [m]) were given each class, on `axes` of matplotlib or new ones,
        which are returned. Needs matplotlib. Raises InvalidArgument for another number of classes than queries."""
        return _plots.confusion(self, truth, axes)


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
    criterion: Literal["accuracy", "mean squared error"]
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

    def plot(self, axes: Any = None) -> Any:
        """The score of every number of neighbors, its range over the folds and the best number, on `axes` of matplotlib
        or new ones, which are returned. Needs matplotlib."""
        return _plots.scores_by_k(self, axes)


class NeighborModel(Saved):
    """All that classify and regress need to answer: an index of the rows, their labels or targets, and options.

    One from a file may have been made of scaled or coded columns. Queries are given as the rows that the model was
    made of, and prepared as those were; they may be a `Table` of `read`, or a path, of which columns are found by their
    names.
    """

    _kind = "NeighborModel"

    rows: int  #: n
    outputs: int
    classes: list[NDArray[Any]]  #: of each output the classes, ascending; empty for targets
    k: int | None  #: neighbors, or None: all within `radius`
    radius: float | None
    metric: Metric
    p: float
    weights: Literal["uniform", "distance"]
    scaling: Literal["none", "standard", "minmax"]
    columns: list[str]  #: names of the columns of queries, where the model knows them

    @classmethod
    @documented("ModelOptions")
    def fit(
        cls, table: Any, labels: ArrayLike | None = None, *, targets: Any = None, **options: Unpack[FitOptions]
    ) -> NeighborModel:
        """A model of rows [n, d] with `labels` [n], to classify, or `targets` [n] or [n, outputs], to regress.

        `radius` instead of `k` takes all rows within it. `scaling` brings the columns to one size, and columns of text
        of a `Table` become codes by `texts`. A table that is not scaled or coded is borrowed and must not change.
        Raises InvalidArgument for options outside their domain and labels or targets that do not number the rows,
        BadData naming row and column of NaN and infinity, OverMemory. O(n d).
        """
        given = None if targets is None else _outputs(targets)
        return cls._of(_core.neighbor_model(table, labels, given, options))

    def classify(
        self, queries: Any, *, output: int = 0, probabilities: bool = False, **options: Unpack[Common]
    ) -> Classification:
        """The votes of the neighbors of queries [m, d], of one output. Raises InvalidArgument for a model of targets
        and queries of another width, BadData for NaN, infinity and other columns. Cost of `classify`."""
        keywords = {"output": output, "probabilities": probabilities, **options}
        return Classification(_core.model_classify(self, queries, keywords))

    def regress(self, queries: Any, *, outlier: float = math.nan, **options: Unpack[Common]) -> Regression:
        """The means of the targets of the neighbors of queries [m, d]; `outlier` is the value of a query without
        neighbors. Raises InvalidArgument for a model of labels, else as `classify`. Cost of `regress`."""
        return Regression(_core.model_regress(self, queries, {"outlier": outlier, **options}))

    def predict(self, queries: Any, **options: Unpack[Common]) -> NDArray[Any]:
        """Labels [m], of several outputs [m, outputs], or values [m, outputs] of queries [m, d]. Raises what `classify`
        or `regress` raises, and InvalidArgument where a query has no neighbors to vote."""
        if not self.classes:
            return self.regress(queries, **options).values
        labels = [self.classify(queries, output=output, **options).labels for output in range(self.outputs)]
        return labels[0] if self.outputs == 1 else np.column_stack(labels)


@documented("VoteOptions")
def vote(graph: NeighborGraph, labels: ArrayLike, **options: Unpack[VoteOptions]) -> Vote:
    """The label with the largest weight among the neighbors of each query; ties to the smaller one.

    `labels` [n] are whole numbers or texts. `weights` may also be an array like `graph.ids`. Raises InvalidArgument for
    labels that do not number the table's rows, weights by distance with inner_product, and weights that are negative or
    not finite. O(m k) time.
    """
    _check_shape(graph, options.get("weights"))
    return Vote(_core.vote(graph, labels, options))


@documented("NearestOptions", "VoteOptions")
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


@documented("NearestOptions", "RegressOptions")
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
    if isinstance(targets, Sequence) and not isinstance(targets, str):
        targets = _array(targets, "targets")
    if len(getattr(targets, "shape", (0, 0))) != 1:
        return targets
    return (targets if isinstance(targets, np.ndarray) else np.asarray(targets))[:, None]

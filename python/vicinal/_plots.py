"""Pictures of results, by matplotlib. Each function draws on the axes that it is given, or on new ones, and returns
them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal import _core
from vicinal._errors import InvalidArgument

if TYPE_CHECKING:
    from vicinal._clusters import KMeans
    from vicinal._embedding import Lle
    from vicinal._neighbors import NeighborGraph
    from vicinal._outliers import Lof
    from vicinal._supervised import CrossValidation, Vote

_BINS = 50
_MARKER = 9  # area of a point, in square points


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError:
        raise InvalidArgument("plot: needs matplotlib, which is not installed; install vicinal[plot]") from None
    return pyplot.subplots()[1]


def distances(graph: NeighborGraph, axes: Any = None) -> Any:
    """A histogram of distances: of each query to its nearest and its k-th neighbor, or of lists that differ in length
    to all neighbors."""
    axes = _axes(axes)
    if graph.offsets is None and graph.k > 0:
        drawn = [(graph.distances[:, 0], "nearest neighbor")]
        if graph.k > 1:
            drawn.append((graph.distances[:, -1], f"neighbor {graph.k}"))
        axes.set_ylabel("queries")
    else:
        drawn = [(graph.distances.reshape(-1), "all neighbors")]
        axes.set_ylabel("neighbors")
    edges = np.histogram_bin_edges(np.concatenate([values for values, _ in drawn]), _BINS)
    for values, label in drawn:
        axes.hist(values, edges, alpha=0.6, label=label)
    axes.set_xlabel(f"distance ({graph.metric})")
    axes.legend()
    return axes


def scores(lof: Lof, axes: Any = None) -> Any:
    """Scores from the largest to the smallest, and the threshold above which rows are outliers."""
    axes = _axes(axes)
    ranked = np.sort(lof.scores)[::-1]
    axes.plot(np.arange(1, len(ranked) + 1), ranked, label="scores")
    if np.isfinite(lof.threshold):
        axes.axhline(lof.threshold, linestyle="--", color="tab:red", label=f"threshold: {lof.outliers} rows above")
    axes.set_xlabel("rows, most outlying first")
    axes.set_ylabel("outlier score")
    axes.legend()
    return axes


def clusters(model: KMeans, table: Any, axes: Any = None) -> Any:
    """The rows of a table on its first two principal axes, colored by cluster, and the centers."""
    axes = _axes(axes)
    if hasattr(table, "toarray"):  # of SciPy
        table = table.toarray()
    if model.prepared:
        raise InvalidArgument(
            "plot: the columns of this model were scaled, coded or filled, so its centers are in other units than the "
            "table's; plot a model of numbers that were prepared before"
        )
    if model.metric == "cosine":  # centers have length one, so rows have, too
        rows = np.asarray(table, np.float64)
        table = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    found = _core.pca(table, {})
    labels = model.predict(table)
    points = _plane(found["points"])
    centres = _plane((model.centres - found["mean"]) @ found["axes"].T)
    axes.scatter(points[:, 0], points[:, 1], _MARKER, labels, cmap="tab20")
    ink = axes.xaxis.label.get_color()
    axes.scatter(centres[:, 0], centres[:, 1], 12 * _MARKER, color=ink, marker="x", label="centers")
    for set_label, share, word in zip((axes.set_xlabel, axes.set_ylabel), found["ratio"], ("first", "second")):
        set_label(f"{word} principal axis ({share:.0%} of the variance)")
    axes.legend()
    return axes


def _plane(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points on a line are points of a plane, at height 0."""
    return points if points.shape[1] > 1 else np.column_stack([points, np.zeros(len(points))])


def embedding(lle: Lle, color: ArrayLike | None = None, axes: Any = None) -> Any:
    """The first two columns of an embedding, colored by `color` [n], or by the pieces of the neighbor graph."""
    axes = _axes(axes)
    points = lle.embedding
    across = points[:, 1] if points.shape[1] > 1 else np.arange(len(points))
    axes.scatter(points[:, 0], across, _MARKER, lle.piece if color is None else np.asarray(color))
    axes.set_xlabel("first column of the embedding")
    axes.set_ylabel("second column of the embedding" if points.shape[1] > 1 else "row")
    return axes


def confusion(vote: Vote, truth: ArrayLike, axes: Any = None) -> Any:
    """How many queries of each class were given each class, as a matrix of numbers."""
    axes = _axes(axes)
    true = np.asarray(truth)
    if true.shape != vote.codes.shape:
        raise InvalidArgument(f"truth: shape {true.shape}; expected a class for each of {len(vote.codes)} queries")
    classes = np.unique(np.concatenate([vote.classes, true]))
    columns = [str(one) for one in classes]
    given = np.searchsorted(classes, vote.classes)[vote.codes]
    if (vote.codes < 0).any():
        given = np.where(vote.codes < 0, len(classes), given)
        columns.append("no neighbors")
    counts = np.zeros((len(classes), len(columns)), np.int64)
    np.add.at(counts, (np.searchsorted(classes, true), given), 1)
    axes.imshow(counts, cmap="Blues")
    dark = counts > counts.max() / 2
    for (row, column), number in np.ndenumerate(counts):
        axes.text(column, row, str(number), ha="center", va="center", color="white" if dark[row, column] else "black")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(classes)), [str(one) for one in classes])
    axes.set_xlabel("class by the neighbors")
    axes.set_ylabel("true class")
    return axes


def scores_by_k(result: CrossValidation, axes: Any = None) -> Any:
    """The score of every number of neighbors, the range over the folds, and the number that was chosen."""
    axes = _axes(axes)
    numbers = np.arange(result.first_k, result.first_k + len(result.scores))
    axes.plot(numbers, result.scores, marker=".", label="all folds")
    axes.fill_between(
        numbers, result.fold_scores.min(axis=1), result.fold_scores.max(axis=1), alpha=0.2, label="range over the folds"
    )
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.axvline(result.k, linestyle="--", color="tab:red", label=f"best: {result.k} neighbors")
    axes.set_xlabel("neighbors")
    axes.set_ylabel(result.criterion)
    axes.legend()
    return axes

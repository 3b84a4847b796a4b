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
    from vicinal._density import CondensedTree, Optics, OpticsClusters
    from vicinal._embedding import Lle
    from vicinal._neighbors import NeighborGraph
    from vicinal._outliers import Lof
    from vicinal._supervised import CrossValidation, Vote

_BINS = 50
_MARKER = 9  # area of a point, in square points
_NOISE = "0.6"  # gray
_NAMED = 10  # as many clusters as there are colors have a name in the legend


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
    _name_axes(axes, found["ratio"])
    axes.legend()
    return axes


def _name_axes(axes: Any, shares: NDArray[np.float64]) -> None:
    """Principal axes, and their shares of the variance."""
    for set_label, share, word in zip((axes.set_xlabel, axes.set_ylabel), shares, ("first", "second")):
        set_label(f"{word} principal axis ({share:.0%} of the variance)")


def _color(label: int) -> Any:
    return _NOISE if label < 0 else f"C{label % 10}"


def density(labels: NDArray[np.int64], table: Any, axes: Any = None) -> Any:
    """The rows of a table on its first two principal axes, colored by cluster; noise is small and gray."""
    axes = _axes(axes)
    if hasattr(table, "toarray"):  # of SciPy
        table = table.toarray()
    found = _core.pca(table, {})
    points = _plane(found["points"])
    if len(points) != len(labels):
        raise InvalidArgument(f"table: {len(points)} rows; expected the {len(labels)} that were clustered")
    for label in range(-1, int(labels.max()) + 1):
        drawn = points[labels == label]
        if not len(drawn):
            continue
        name = "noise" if label < 0 else f"cluster {label}" if label < _NAMED else None
        axes.scatter(drawn[:, 0], drawn[:, 1], _MARKER / 3 if label < 0 else _MARKER, _color(label), label=name)
    _name_axes(axes, found["ratio"])
    axes.legend()
    return axes


def condensed_tree(tree: CondensedTree, axes: Any = None) -> Any:
    """The condensed tree as icicles: a cluster is as wide as its rows at its birth, and hangs from its birth to the
    smallest distance at which something leaves it. Chosen clusters have colors."""
    axes = _axes(axes)
    left_at = np.concatenate([tree.row_distances, tree.births[1:]])
    left = np.concatenate([tree.row_clusters, tree.parents[1:]])
    ends = np.full(len(tree.parents), np.inf)
    np.minimum.at(ends, left, left_at)
    seen = left_at[(left_at > 0) & np.isfinite(left_at)]
    shortest, longest = (seen.min(), seen.max()) if len(seen) else (1.0, 1.0)
    lefts = np.zeros(len(tree.parents))
    used = np.zeros(len(tree.parents))  # width that parts of a cluster have taken already
    for cluster, (parent, size) in enumerate(zip(tree.parents.tolist(), tree.sizes.tolist())):
        if cluster > 0:
            lefts[cluster] = lefts[parent] + used[parent]
            used[parent] += size
    tops, bottoms = np.clip(tree.births, shortest, longest), np.clip(ends, shortest, longest)
    colors = [_color(label) for label in tree.labels.tolist()]
    axes.bar(lefts, tops - bottoms, tree.sizes, bottoms, align="edge", color=colors, edgecolor="white", linewidth=0.5)
    if longest > shortest:
        axes.set_yscale("log")
    axes.set_xlabel("rows")
    axes.set_ylabel("distance")
    return axes


def reachability(order: Optics, clusters: OpticsClusters | None = None, axes: Any = None) -> Any:
    """The reachability of each row in the order. Rows that none reaches are as high as the highest."""
    axes = _axes(axes)
    heights = order.reachability[order.ordering]
    finite = heights[np.isfinite(heights)]
    heights = np.minimum(heights, finite.max() if len(finite) else 0.0)
    labels = np.full(len(heights), -1) if clusters is None else clusters.labels[order.ordering]
    starts = np.flatnonzero(np.diff(labels, prepend=-2))  # of rows in a row with the same label
    runs = np.split(heights, starts[1:])
    for label in np.unique(labels).tolist():
        shapes = [_steps(start, run) for start, run in zip(starts.tolist(), runs) if labels[start] == label]
        name = None if clusters is None or label >= _NAMED else "noise" if label < 0 else f"cluster {label}"
        axes.add_collection(_polygons(shapes, facecolor=_color(label), label=name))
    axes.autoscale_view()
    axes.set_xlabel("rows in their order")
    axes.set_ylabel("reachability")
    if clusters is not None:
        axes.legend()
    return axes


def _steps(start: int, heights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The outline of bars of width one, side by side."""
    edges = start + np.arange(len(heights) + 1)
    across = np.concatenate([edges[:1], np.repeat(edges, 2)[1:-1], edges[-1:]])
    return np.column_stack([across, np.concatenate([[0.0], np.repeat(heights, 2), [0.0]])])


def _polygons(shapes: list[NDArray[np.float64]], **words: Any) -> Any:
    from matplotlib.collections import PolyCollection

    return PolyCollection(shapes, **words)


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

"""Keywords of the functions, for type checkers and editors. Names and defaults are those of the C++ structs of the
same name (tests/python/test_keywords.py compares them); what is not given has C++'s default."""

from __future__ import annotations

from typing import Any, Callable, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "ClassifyOptions",
    "CoclusterOptions",
    "Common",
    "CrossValidateOptions",
    "DbscanOptions",
    "FitOptions",
    "GenerateOptions",
    "HdbscanOptions",
    "IndexOptions",
    "KMeansOptions",
    "KnnOptions",
    "LleOptions",
    "LofOptions",
    "MatchOptions",
    "ModelOptions",
    "NearestOptions",
    "OpticsOptions",
    "OpticsXiOptions",
    "OverlapOptions",
    "RadiusOptions",
    "ReadOptions",
    "RegressOptions",
    "RegressionOptions",
    "SpanningTreeOptions",
    "SpectralOptions",
    "ValidityOptions",
    "VoteOptions",
    "WriteOptions",
]

Metric = Literal[
    "euclidean", "sqeuclidean", "inner_product", "cosine", "manhattan", "chebyshev", "minkowski", "hamming"
]
Method = Literal[
    "automatic",
    "fused",
    "direct",
    "kdtree",
    "product_kmin",
    "product_bitonic",
    "product_timed",
    "direct_filter",
    "tiled_insertion",
    "insertion",
    "block_heap",
]
Weights = Literal["uniform", "distance"] | Callable[[NDArray[np.float64]], Any]


class Common(TypedDict, total=False):
    """Keywords of every function that computes."""

    device: str  #: "auto" (default), "cpu", "cuda", "cuda:1"; "cuda:0,1" divides the work among devices
    threads: int | None  #: default: all cores, at most OMP_NUM_THREADS where that is set
    memory_limit: int | None  #: bytes; default: 80 % of what the machine or its control group has free
    device_memory_limit: int | None  #: bytes of each device; default: 80 % of what the device has free
    progress: bool | Callable[[str, float], object] | None  #: True: a bar by tqdm


class _Search(Common, total=False):
    metric: Metric
    p: float  #: exponent of "minkowski", at least 1
    method: Method  #: all give the same result


class _Neighbors(_Search, total=False):
    screen: Literal["automatic", "float32", "bfloat16", "int8"]
    filter: NDArray[np.bool_] | None  #: [n] rows that may be neighbors
    exclude: NDArray[np.int64] | None  #: [m] a row for each query that is not its neighbor, -1 for none


class NearestOptions(_Neighbors, total=False):
    """Of k neighbors that vote."""

    k: int


class KnnOptions(NearestOptions, total=False):
    max_radius: float  #: rows farther away are no neighbors, and lists may be shorter than k; default: no limit


class RadiusOptions(_Neighbors, total=False):
    radius: Any  #: inclusive; a number, or an array [m] with one for each query
    order: Literal["key", "id"]  #: of lists: nearest first, or by ascending row number


class IndexOptions(Common, total=False):
    copy: bool  #: own a copy of the table
    tree: bool  #: build the kd-tree now
    #: whether rows are kept as method "fused" packs them, which makes later searches of few queries much faster
    packed: Literal["automatic", "never", "now"]
    #: whether images of rows in few rotated columns are kept, which bound distances; up to 64 queries become faster
    pruned: Literal["automatic", "never", "now"]


class _Voting(TypedDict, total=False):
    weights: Weights  #: a word, or a function of an array of distances; it is called on several threads
    probabilities: bool


class VoteOptions(Common, total=False):
    weights: Weights | ArrayLike  #: or an array like the graph's ids, finite and not negative
    probabilities: bool


class ClassifyOptions(NearestOptions, RadiusOptions, _Voting, total=False):
    """`radius` instead of `k` takes all rows within it."""


class _Averaging(TypedDict, total=False):
    weights: Weights
    outlier: float  #: the value of a query without neighbors; default: NaN


class RegressOptions(Common, total=False):
    """Of `average`."""

    weights: Weights | ArrayLike  #: or an array like the graph's ids, finite and not negative
    outlier: float  #: the value of a query without neighbors; default: NaN


class RegressionOptions(NearestOptions, RadiusOptions, _Averaging, total=False):
    """Of `regress`; `radius` instead of `k` takes all rows within it."""


class CrossValidateOptions(_Search, total=False):
    k: int
    k_to: int
    folds: int
    seed: int
    weights: Weights
    screen: Literal["automatic", "float32", "bfloat16", "int8"]


class ModelOptions(Common, total=False):
    k: int
    metric: Metric
    p: float
    weights: Literal["uniform", "distance"]
    scaling: Literal["none", "standard", "minmax"]  #: of columns of numbers, to deviations or to 0 .. 1
    texts: Literal["ordinal", "onehot"]  #: what columns of text of a Table become


class FitOptions(ModelOptions, total=False):
    """Of `NeighborModel.fit`; `radius` instead of `k` takes all rows within it."""

    radius: float


class LofOptions(_Search, total=False):
    k: int
    k_to: int
    across: Literal["max", "mean", "min"]
    score: Literal["lof", "simplified_lof", "knn", "knn_weighted", "loop", "ldof", "inflo", "cof", "cof_pyod"]
    duplicates: Literal["sklearn", "inf", "one", "distinct", "cap"]
    ties: Literal["cut", "all"]
    lambda_: float  #: C++'s `lambda`
    contamination: float
    novelty: bool


class KMeansOptions(Common, total=False):
    clusters: int
    init: Literal["k-means++", "k-means||", "random", "first-k"]
    centres: Any  #: [clusters, d] first centers, instead of `clusters` and `init`
    metric: Literal["euclidean", "cosine"]
    weights: Any  #: [n]
    runs: int
    seed: int
    max_iterations: int
    tolerance: float
    changed_share: float
    rule: Literal["settled", "classical"]
    empty: Literal["farthest", "keep"]
    batch_size: int
    history: bool


class SpanningTreeOptions(_Search, total=False):
    min_samples: int  #: the core distance of a row is the distance to its `min_samples`-th nearest row; 1: it is 0
    count_self: bool  #: whether a row itself is the first of its `min_samples` nearest rows
    alpha: float  #: distances, but not core distances, are divided by this number


class HdbscanOptions(SpanningTreeOptions, total=False):
    min_cluster_size: int  #: minimum number of rows of a cluster, at least 2
    selection: Literal["eom", "leaf"]  #: the most stable clusters, or those that contain no other cluster
    epsilon: float  #: clusters that exist only below this distance are replaced by the cluster around them
    max_cluster_size: int  #: maximum number of rows of a cluster that "eom" chooses; 0: no limit
    allow_single_cluster: bool  #: whether all rows may be one cluster


class DbscanOptions(_Search, total=False):
    eps: float  #: rows are neighbors up to this distance, inclusive
    min_samples: int  #: minimum number of neighbors of a core row, itself included
    weights: Any  #: [n] finite; the sum of the neighbors' weights is compared with `min_samples`, not their number


class OpticsOptions(_Search, total=False):
    min_samples: int  #: a row's core distance is that to its `min_samples`-th nearest row, itself included; at least 2
    max_eps: float  #: rows are neighbors up to this distance; infinity: all are


class ValidityOptions(Common, total=False):
    metric: Metric
    p: float  #: exponent of "minkowski", at least 1


class OpticsXiOptions(Common, total=False):
    xi: float  #: steep places fall or rise by at least this share to the next row; at least 0 and below 1
    min_cluster_size: int  #: minimum number of rows of a cluster, at least 2; 0: `min_samples` of the order
    predecessor_correction: bool  #: whether rows at the end of a cluster that are reached from another one are left out


class LleOptions(_Search, total=False):
    k: int
    dim: int
    variant: Literal["standard", "modified", "hessian", "hessian_sklearn", "ltsa"]
    reg: float
    solver: Literal["automatic", "dense", "direct", "cpu", "lanczos", "arnoldi"]
    max_steps: int
    pieces: Literal["apart", "refuse"]
    certify: bool


class CoclusterOptions(Common, total=False):
    method: Literal["components", "closure", "product_serial", "product_global", "product_tiled"]


class SpectralOptions(Common, total=False):
    clusters: int
    seed: int
    runs: int


class OverlapOptions(Common, total=False):
    widths: bool


class MatchOptions(Common, total=False):
    rule: Literal["standard", "touch", "area", "share", "share_a", "share_b", "iou", "width"]
    threshold: float
    min_width: float
    sliver_width: float
    unchanged_iou: float
    widths: bool
    max_partners: int
    max_area: float
    agreement: Literal["ignored", "required", "enough"]
    codes_a: Any  #: [features of a], -1: unknown
    codes_b: Any  #: [features of b]
    max_members: int
    max_steps: int


class GenerateOptions(Common, total=False):
    rows: int
    cols: int
    centers: int
    noise: float
    seed: int


class ReadOptions(Common, total=False):
    format: str  #: found by content
    label: str  #: csv: name or position of the column of labels
    header: bool | None  #: csv: whether line 1 names the columns; found out
    delimiter: str
    decimal: str
    comment: str
    member: str  #: npz, hdf5: the array to read
    drop: list[str]  #: csv: columns to leave out
    text: list[str]  #: csv: columns of text, read as codes
    find_text: bool
    keep_index: bool
    bfloat16: bool
    missing: bool  #: csv: missing values are NaN
    columns: int  #: libsvm: how many


class WriteOptions(Common, total=False):
    format: str  #: by the path's suffix
    lossy: bool
    drop_labels: bool
    delimiter: str

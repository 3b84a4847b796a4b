"""vicinal: exact nearest-neighbor machine learning. Answers equal those of float64 brute force bit for bit."""

from __future__ import annotations

from vicinal import _threads
from vicinal._clusters import KMeans, KMeansSteps, kmeans, predict
from vicinal._coclusters import Cocluster, SpectralCocluster, cocluster, spectral_cocluster
from vicinal._core import __version__
from vicinal._embedding import Lle, LleModel, lle, transform
from vicinal._errors import (
    BadData,
    Cancelled,
    DeviceUnavailable,
    Error,
    FileError,
    InternalError,
    InvalidArgument,
    OverMemory,
)
from vicinal._files import Doctor, Generated, Table, doctor, generate, read, use_plugin, write
from vicinal._maps import Match, Overlaps, Polygons, match, overlaps
from vicinal._neighbors import (
    DeviceGraph,
    Index,
    NeighborCounts,
    NeighborGraph,
    count,
    knn,
    radius,
    symmetrize,
    with_self,
)
from vicinal._outliers import Lof, LofModel, lof, novelty
from vicinal._patch import (
    PatchReport,
    load_ipython_extension,
    patch_report,
    patch_sklearn,
    patched_sklearn,
    unload_ipython_extension,
    unpatch_sklearn,
)
from vicinal._results import Plan, SearchStats
from vicinal._supervised import (
    Classification,
    CrossValidation,
    NeighborModel,
    Regression,
    Vote,
    average,
    classify,
    cross_validate,
    regress,
    vote,
)
from vicinal._tables import BlockSource

_threads.obey()

__all__ = [
    "BadData",
    "BlockSource",
    "Cancelled",
    "Classification",
    "Cocluster",
    "CrossValidation",
    "DeviceGraph",
    "DeviceUnavailable",
    "Doctor",
    "Error",
    "FileError",
    "Generated",
    "Index",
    "InternalError",
    "InvalidArgument",
    "KMeans",
    "KMeansSteps",
    "Lle",
    "LleModel",
    "Lof",
    "LofModel",
    "Match",
    "NeighborCounts",
    "NeighborGraph",
    "NeighborModel",
    "OverMemory",
    "Overlaps",
    "PatchReport",
    "Plan",
    "Polygons",
    "Regression",
    "SearchStats",
    "SpectralCocluster",
    "Table",
    "Vote",
    "__version__",
    "average",
    "classify",
    "cocluster",
    "count",
    "cross_validate",
    "doctor",
    "generate",
    "kmeans",
    "knn",
    "lle",
    "load_ipython_extension",
    "lof",
    "match",
    "novelty",
    "overlaps",
    "patch_report",
    "patch_sklearn",
    "patched_sklearn",
    "predict",
    "radius",
    "read",
    "regress",
    "spectral_cocluster",
    "symmetrize",
    "transform",
    "unload_ipython_extension",
    "unpatch_sklearn",
    "use_plugin",
    "vote",
    "with_self",
    "write",
]

"""scikit-learn's estimators, computed by vicinal.

Each class is scikit-learn's class of the same name with three more keyword parameters: `device` ("auto", "cpu", "cuda",
"cuda:1", "cuda:0,1"), `threads` and `memory_limit` (bytes). Parameters, attributes, dtypes, warnings and errors are
scikit-learn's. scikit-learn computes what vicinal does not: the environment variable VICINAL_FALLBACK=log|warn|error
reports such calls, and `vicinal.patch_report` counts them. OPTICS computes on the CPU only.
"""

from __future__ import annotations

from vicinal._hooks.registry import MADE_FOR

try:
    import sklearn
except ModuleNotFoundError as error:
    if error.name != "sklearn":
        raise
    raise ImportError(
        f"vicinal.sklearn needs scikit-learn {MADE_FOR}, which is not installed: pip install 'scikit-learn=={MADE_FOR}.*'"
    ) from error

if not sklearn.__version__.startswith(f"{MADE_FOR}."):
    raise ImportError(
        f"vicinal.sklearn needs scikit-learn {MADE_FOR}, and {sklearn.__version__} is installed: "
        f"pip install 'scikit-learn=={MADE_FOR}.*'"
    )

from sklearn import cluster, manifold, neighbors

from vicinal.sklearn._clusters import Centres, CentresOfTables, Dense, EdgesOfMatrices
from vicinal.sklearn._engine import engine
from vicinal.sklearn._neighbors import ListsOfTables, Neighbors, NeighborsOfTables, ScoresOfTables

__all__ = [
    "DBSCAN",
    "HDBSCAN",
    "KMeans",
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "KNeighborsTransformer",
    "LocalOutlierFactor",
    "LocallyLinearEmbedding",
    "MiniBatchKMeans",
    "NearestNeighbors",
    "OPTICS",
    "RadiusNeighborsClassifier",
    "RadiusNeighborsRegressor",
    "RadiusNeighborsTransformer",
    "SpectralCoclustering",
]


@engine
class NearestNeighbors(ListsOfTables, neighbors.NearestNeighbors): ...


@engine
class KNeighborsClassifier(NeighborsOfTables, neighbors.KNeighborsClassifier): ...


@engine
class KNeighborsRegressor(NeighborsOfTables, neighbors.KNeighborsRegressor): ...


@engine
class KNeighborsTransformer(Neighbors, neighbors.KNeighborsTransformer): ...


@engine
class RadiusNeighborsClassifier(neighbors.RadiusNeighborsClassifier): ...


@engine
class RadiusNeighborsRegressor(neighbors.RadiusNeighborsRegressor): ...


@engine
class RadiusNeighborsTransformer(neighbors.RadiusNeighborsTransformer): ...


@engine
class LocalOutlierFactor(ScoresOfTables, neighbors.LocalOutlierFactor): ...


@engine
class LocallyLinearEmbedding(manifold.LocallyLinearEmbedding): ...


@engine
class KMeans(CentresOfTables, cluster.KMeans): ...


@engine
class MiniBatchKMeans(Centres, cluster.MiniBatchKMeans): ...


@engine
class DBSCAN(Dense, cluster.DBSCAN): ...


@engine
class HDBSCAN(cluster.HDBSCAN): ...


@engine
class OPTICS(cluster.OPTICS): ...


@engine
class SpectralCoclustering(EdgesOfMatrices, cluster.SpectralCoclustering): ...

"""Searches, votes, outlier scores and k-means by many workers: threads, processes, Dask, Ray, mpi4py, or anything else
with `submit`. Results have the same bits as those of one process (docs/distributed.md).

Tasks depend on their arguments alone, so an engine may run them anywhere, in any order and more than once. A pool of
processes that broke is replaced, and a task may lose its worker three times; Dask and Ray run the tasks of a dead
worker again by themselves.
"""

from __future__ import annotations

from vicinal.distributed._clusters import kmeans
from vicinal.distributed._engines import TaskFailed
from vicinal.distributed._ray import RayExecutor
from vicinal.distributed._search import Division, classify, count, knn, lof, radius, regress

__all__ = [
    "Division",
    "RayExecutor",
    "TaskFailed",
    "classify",
    "count",
    "kmeans",
    "knn",
    "lof",
    "radius",
    "regress",
]

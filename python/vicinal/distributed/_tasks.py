"""What workers run: plain functions of tables and bytes to bytes, which depend on their arguments alone. What a worker
keeps between two tasks (indexes, shards of k-means, opened files) makes it faster and changes no answer."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from typing import Any, Callable, Mapping, NamedTuple, TypeVar

import numpy as np

from vicinal import _core
from vicinal._errors import BadData, Error
from vicinal._files import read
from vicinal._neighbors import Index, NeighborCounts, NeighborGraph
from vicinal._supervised import average, vote

__all__ = [
    "Indexed",
    "Share",
    "Slice",
    "answer",
    "averaged",
    "counts",
    "forget",
    "lists",
    "merged",
    "named",
    "search",
    "voted",
]

_Kept = TypeVar("_Kept")


class Slice(NamedTuple):
    """The rows [begin, end) of a file, which the worker opens."""

    path: str
    begin: int
    end: int


class Share(NamedTuple):
    """What a task may take of its host."""

    tasks: int  #: that run at once on the host, of which each takes an equal share; 0: the task has the host
    threads: int | None
    memory_limit: int | None

    def keywords(self) -> dict[str, Any]:
        tasks = max(self.tasks, 1)
        cores = len(os.sched_getaffinity(0))
        threads = max(cores // tasks, 1) if self.threads is None else self.threads
        memory = _core.memory_limit() // tasks if self.memory_limit is None else self.memory_limit
        return {"threads": threads, "memory_limit": memory}


class _Keeper:
    """Objects by key, the last used ones. One thread makes an object, the others wait for it. The first key of a job
    drops the objects of others, which have ended or make theirs again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, None] = OrderedDict()
        self._kept: OrderedDict[Any, tuple[threading.Lock, list[Any]]] = OrderedDict()

    def get(self, key: Any, most: int, make: Callable[[], _Kept]) -> tuple[threading.Lock, _Kept]:
        with self._lock:
            if key[0] not in self._jobs:
                self._jobs[key[0]] = None
                self._kept.clear()
                while len(self._jobs) > _MOST_JOBS:
                    self._jobs.popitem(last=False)
            lock, box = self._kept.setdefault(key, (threading.Lock(), []))
            self._kept.move_to_end(key)
            while len(self._kept) > max(most, 1):
                self._kept.popitem(last=False)
        with lock:
            if not box:
                box.append(make())
        made: _Kept = box[0]
        return lock, made

    def forget(self, job: str) -> None:
        self.drop(lambda key: bool(key[0] == job))

    def drop(self, is_dropped: Callable[[Any], bool]) -> None:
        with self._lock:
            for key in [key for key in self._kept if is_dropped(key)]:
                del self._kept[key]


_MOST_JOBS = 256
_FILES = _Keeper()
_INDEXES = _Keeper()
_SHARDS = _Keeper()
_MOST_FILES = 8


def forget(job: str) -> None:
    """Drops what this process keeps of a job."""
    _INDEXES.forget(job)
    _SHARDS.forget(job)


def opened(path: str) -> Any:
    """The rows of a file: of an .npy file mapped, of another one read once."""
    state = os.stat(path)
    key = ("", path, state.st_mtime_ns, state.st_size, state.st_ino)
    # A file that is gone, or was written again, takes its memory until it is closed.
    _FILES.drop(lambda kept: kept != key and (kept[1] == path or not os.path.exists(kept[1])))
    return _FILES.get(key, _MOST_FILES, lambda: _open(path))[1]


def _open(path: str) -> Any:
    return np.load(path, mmap_mode="r") if path.endswith(".npy") else np.asarray(read(path))


class Indexed:
    """A block of rows, and its index once a task has made it. Both live as long as the engine holds the block, which
    travels as rows only. A process keeps the `most` indexes that were made last."""

    _lock = threading.Lock()
    _recent: list[weakref.ref[Indexed]] = []

    def __init__(self, rows: Any) -> None:
        self.rows = rows
        self._making = threading.Lock()
        self._index: Index | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Indexed, (self.rows,)

    def __sizeof__(self) -> int:
        return int(getattr(self.rows, "nbytes", 0))

    def index(self, most: int, make: Callable[[], Index]) -> Index:
        with self._making:
            if self._index is not None:
                return self._index
            made = self._index = make()
        with Indexed._lock:
            recent = [block for block in Indexed._recent if block() is not None] + [weakref.ref(self)]
            Indexed._recent = recent[-most:]
            dropped = [block() for block in recent[:-most]]
        for block in dropped:
            if block is not None:
                block._index = None
        return made


def _resolved(rows: Any) -> Any:
    if isinstance(rows, Indexed):
        return rows.rows
    return opened(rows.path)[rows.begin : rows.end] if isinstance(rows, Slice) else rows


def search(
    kind: str,
    key: tuple[str, int],
    rows: Any,
    queries: Any,
    wanted: Any,
    excluded: Any,
    radii: Any,
    place: tuple[int, int, bool, int, int],
    options: Mapping[str, Any],
    share: Share,
    most: int,
) -> bytes:
    """The part of a block of rows and a block of queries. `key` names the rows, of which `most` indexes are kept; rows
    that are Indexed keep their own."""

    def make() -> Index:
        return Index(table, **_of_index(options), **share.keywords())

    table = _resolved(rows)
    keywords = {**options, **share.keywords()}
    for name, value in (("filter", wanted), ("exclude", excluded), ("radius", radii)):
        if value is not None:
            keywords[name] = _resolved(value)
    asked = _resolved(queries)
    part = {"knn": _core.knn_part, "radius": _core.radius_part, "count": _core.count_part}[kind]
    try:
        searched = rows.index(most, make) if isinstance(rows, Indexed) else _INDEXES.get(key, most, make)[1]
    except BadData:
        # The search itself names the row by its number in the whole table.
        return part(table, asked, place, keywords)
    return part(searched, asked, place, keywords)


def _of_index(options: Mapping[str, Any]) -> dict[str, Any]:
    """What an index takes of the options of a search. Tasks compute on the CPU unless a device is named."""
    device = options.get("device")
    given = {"device": "cpu" if device in (None, "auto") else device}
    if options.get("device_memory_limit") is not None:
        given["device_memory_limit"] = options["device_memory_limit"]
    return given


def answer(
    key: tuple[str, int], rows: Any, weights: Any, first_row: int, question: bytes, share: Share, most: int
) -> bytes:
    """What a block of rows answers to a question of k-means; `most` blocks are kept."""

    def make() -> _Answer:
        keywords = {"weights": None if weights is None else _resolved(weights), **share.keywords()}
        return _Answer(_core.kmeans_shard(_resolved(rows), first_row, keywords))

    lock, shard = _SHARDS.get(key, most, make)
    with lock:
        return _core.kmeans_answer(shard, question)


class _Answer:
    """A shard of k-means."""

    def __init__(self, answer: tuple[_core.Native, dict[str, Any]]) -> None:
        self._native = answer[0]


def named(name: str, function: Callable[..., _Kept], *arguments: Any) -> _Kept:
    """Calls a function; of its errors, those of vicinal have the block's name in front."""
    try:
        return function(*arguments)
    except Error as error:
        raise type(error)(f"{name}: {error}") from error


def merged(parts: list[bytes]) -> NeighborGraph:
    """The graph of a block of queries from its parts."""
    return NeighborGraph(_core.merge(parts, {}))


def lists(parts: list[bytes]) -> tuple[Any, Any, Any]:
    """Its arrays: offsets or None, ids, distances."""
    graph = merged(parts)
    return graph.offsets, np.array(graph.ids), np.array(graph.distances)


def counts(parts: list[bytes]) -> Any:
    return np.array(NeighborCounts(_core.merge_counts(parts, {})).counts)


def voted(parts: list[bytes], labels: Any, options: Mapping[str, Any]) -> Any:
    """The labels [m] that the neighbors vote for."""
    return np.array(vote(merged(parts), labels, **options).labels)


def averaged(parts: list[bytes], targets: Any, options: Mapping[str, Any]) -> Any:
    """The means [m, outputs] of the neighbors' targets."""
    return np.array(average(merged(parts), targets, **options))

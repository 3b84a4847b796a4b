"""k-means by questions that workers answer: this process iterates, and each worker labels its rows and adds them up."""

from __future__ import annotations

import math
import queue
import threading
from typing import Any, Unpack

import numpy as np

from vicinal import _core
from vicinal._clusters import KMeans
from vicinal._errors import InvalidArgument
from vicinal._options import KMeansOptions
from vicinal.distributed import _tasks
from vicinal.distributed._engines import Task
from vicinal.distributed._search import BLOCK_BYTES, Division, Job
from vicinal.distributed._tables import cuts_of, held, held_vector, hold_all, refuse_masked, text_of

__all__ = ["ask_in_turns", "kmeans"]


class _KMeansOptions(KMeansOptions, Division, total=False):
    pass


def kmeans(table: Any, *, executor: Any, **options: Unpack[_KMeansOptions]) -> KMeans:
    """`vicinal.kmeans` of a table [n, d] by the workers of an executor, with the same bits. A task labels a block of
    rows and adds them up exactly; this process adds the blocks and moves the centers.

    `table` is a path, which the workers open, or an array. Keywords are those of `vicinal.kmeans` and of
    `vicinal.distributed.Division`; the default of `init` is "k-means||", because "k-means++" takes a round of tasks for
    each center and is refused, as are mini-batches. `rows_per_task` is by default so that each worker has a block.

    An iteration is one round of tasks. To each of them travel 8 k d bytes, back come 8 k (d l + 1) (l is 2 or 3 for
    most data) and 1 to 4 for each row. A worker keeps its blocks between rounds, so that it looks at few rows
    again; another worker can take them over at any time. This process holds 25 bytes for each row.

    Raises what `vicinal.kmeans` raises, with the block in front of a worker's sentence, and what `knn` raises.
    """
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    progress = given.pop("progress", None)
    with Job(executor, given) as job:
        rows = held(job.engine, table, "table")
        weights = given.get("weights")
        if weights is not None:
            refuse_masked(weights, "weights")
            weights = given["weights"] = np.ascontiguousarray(weights, np.float64)
            if weights.shape != (rows.rows,):
                raise InvalidArgument(f"weights: has shape {list(weights.shape)}; expected [{rows.rows}]")
        weights_of = held_vector(job.engine, weights)
        blocks = max(job.engine.workers, math.ceil(rows.rows * rows.row_bytes / BLOCK_BYTES))
        cuts = cuts_of(rows.rows, job.division["rows_per_task"], blocks, "rows_per_task")
        shared = 2 * math.ceil(len(cuts) / job.engine.workers) * job.engine.tasks_per_process
        most = len(cuts) if job.engine.in_process else min(len(cuts), shared)

        hold_all(rows, cuts)
        hold_all(weights_of, cuts)

        def task(block: int, question: bytes) -> Task:
            begin, end = cuts[block]
            key = (job.name, block)
            arguments = (key, rows(begin, end), weights_of(begin, end), begin, question, job.share, most)
            return Task(_tasks.answer, arguments, text_of(cuts, block, "rows"))

        def answers(question: bytes) -> list[bytes]:
            tasks = [lambda block=block: task(block, question) for block in range(len(cuts))]
            found = dict(job.run(tasks, "iterate"))
            return [found[block] for block in range(len(cuts))]

        return ask_in_turns([end - begin for begin, end in cuts], rows.cols, answers, given, progress)


def ask_in_turns(
    shard_rows: list[int], cols: int, answers: Any, options: dict[str, Any], progress: Any = None
) -> KMeans:
    """Iterates in a thread; its questions are answered by this one, so that Ctrl-C ends what waits for tasks."""
    keywords = {name: value for name, value in options.items() if name not in ("threads", "memory_limit")}
    if "init" not in keywords and "centres" not in keywords:
        keywords["init"] = "k-means||"
    if progress is not None:
        keywords["progress"] = progress
    asked: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    answered: queue.SimpleQueue[list[bytes] | None] = queue.SimpleQueue()
    ended: list[Any] = []

    def ask(question: bytes) -> list[bytes]:
        asked.put(question)
        found = answered.get()
        if found is None:
            raise InterruptedError("kmeans was given up")
        return found

    def iterate() -> None:
        try:
            ended.append(_core.kmeans_asked(shard_rows, cols, ask, keywords))
        except BaseException as error:
            ended.append(error)
        finally:
            asked.put(None)

    thread = threading.Thread(target=iterate, name="vicinal kmeans", daemon=True)
    thread.start()
    try:
        while True:
            try:
                question = asked.get(timeout=0.2)
            except queue.Empty:
                continue
            if question is None:
                break
            answered.put(answers(question))
    finally:
        answered.put(None)
        thread.join()
    if isinstance(ended[0], BaseException):
        raise ended[0]
    return KMeans(ended[0])

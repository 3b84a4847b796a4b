"""What runs tasks: any executor with `submit`, and how each of them holds tables and loses workers."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from typing import Any, Callable, Iterator, NamedTuple, Sequence

import numpy as np

from vicinal._errors import Error, InvalidArgument
from vicinal._progress import reporter
from vicinal.distributed._tasks import Slice

__all__ = ["Engine", "Task", "TaskFailed", "engine_of"]

MAX_LOSSES = 3
POLL_SECONDS = 0.2
LOSS_SECONDS = 2.0
IN_FLIGHT = 4  # tasks a worker, so that results do not wait for the driver


class TaskFailed(Error, RuntimeError):
    """A task that ended without an answer: its worker died more than three times, or something raised an error that is
    none of vicinal's (`__cause__`). The sentence names the block."""

    code = "task_failed"


class Task(NamedTuple):
    """A function, its arguments, and what it is called in errors. Arguments that the engine holds are references."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    name: str


class Engine:
    """An executor whose workers reach memory or files of this process."""

    in_process = False  #: whether workers are threads of this process
    tasks_per_host = 1
    tasks_per_process = 1

    def __init__(self, executor: Any, workers: int, folder: str | None) -> None:
        self.executor = executor
        self.workers = max(workers, 1)
        self.tasks_per_host = self.workers
        self._parent = folder
        self._folder: str | None = None
        self._files = 0

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = self.executor.submit(function, *arguments)
        return future

    def hold(self, array: np.ndarray[Any, Any]) -> Callable[[int, int], Any]:
        """Makes an array known to the workers. Returns what gives a reference to a range of its rows: by default a file
        that the workers open."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="vicinal-", dir=self._parent)
        self._files += 1
        path = os.path.join(self._folder, f"{self._files}.npy")
        np.save(path, array, allow_pickle=False)
        return lambda begin, end: Slice(path, begin, end)

    def is_loss(self, error: BaseException) -> bool:
        """Whether a task failed because its worker, or what was held for it, is gone; then it is run again."""
        return isinstance(error, (BrokenExecutor, CancelledError))

    def renew(self) -> None:
        """Makes the engine usable after a loss."""

    def close(self, failed: bool = False) -> None:
        """Gives back what the engine made. After an error (`failed`) it waits for no task."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


class Threads(Engine):
    in_process = True

    def __init__(self, executor: Any, workers: int, folder: str | None) -> None:
        super().__init__(executor, workers, folder)
        self.tasks_per_process = self.workers

    def hold(self, array: np.ndarray[Any, Any]) -> Callable[[int, int], Any]:
        return lambda begin, end: array[begin:end]


class Processes(Engine):
    """A pool of processes, of which one that died fails all: a new pool takes the place of a broken one."""

    def __init__(self, executor: ProcessPoolExecutor, workers: int, folder: str | None) -> None:
        super().__init__(executor, workers, folder)
        self._own: ProcessPoolExecutor | None = None
        self._like: dict[str, Any] = {
            "max_workers": getattr(executor, "_max_workers", workers),
            "mp_context": getattr(executor, "_mp_context", None),
            "initializer": getattr(executor, "_initializer", None),
            "initargs": getattr(executor, "_initargs", ()),
        }

    def renew(self) -> None:
        if self._own is not None:
            self._own.shutdown(wait=False, cancel_futures=True)
        self.executor = self._own = ProcessPoolExecutor(**self._like)

    def close(self, failed: bool = False) -> None:
        super().close(failed)
        if self._own is None:
            return
        # The pool that this engine made has no tasks but those of its job, of which one may hang.
        ended = list((getattr(self._own, "_processes", None) or {}).values()) if failed else []
        self._own.shutdown(wait=not failed, cancel_futures=True)
        for process in ended:
            process.terminate()


class Dask(Engine):
    """Dask's `client.get_executor()`. Blocks are scattered among the workers, from which tasks take them. To scatter to
    a worker that has just died takes Dask's time limit, so all blocks are scattered before tasks begin; those that die
    with a worker cancel their tasks, and are scattered again."""

    def __init__(self, executor: Any, workers: int, folder: str | None) -> None:
        self._client = executor._client
        hosts: dict[str, int] = {}
        found = self._client.scheduler_info(n_workers=-1)["workers"].values()
        self.tasks_per_process = max((int(worker["nthreads"]) for worker in found), default=1)
        for worker in found:
            hosts[worker["host"]] = hosts.get(worker["host"], 0) + int(worker["nthreads"])
        super().__init__(executor, workers or sum(hosts.values()), folder)
        self.tasks_per_host = max(hosts.values(), default=1)
        self._held: list[Callable[[], None]] = []

    def hold(self, array: np.ndarray[Any, Any]) -> Callable[[int, int], Any]:
        scattered: dict[tuple[int, int], Any] = {}

        def reference(begin: int, end: int) -> Any:
            if (begin, end) not in scattered:
                block = array[begin:end]
                scattered[begin, end] = self._client.scatter(block, hash=False)
            return scattered[begin, end]

        self._held.append(scattered.clear)
        return reference

    def is_loss(self, error: BaseException) -> bool:
        names = {kind.__name__ for kind in type(error).__mro__}
        lost = {"FutureCancelledError", "KilledWorker", "FuturesCancelledError", "CommClosedError"}
        return super().is_loss(error) or bool(names & lost)

    def renew(self) -> None:
        for forget in self._held:
            forget()

    def close(self, failed: bool = False) -> None:
        super().close(failed)
        self.renew()


class Stored(Engine):
    """An executor that stores values for its workers: it has `put`, whose references `submit` takes. A value may be
    lost with its worker; after a loss all are stored again."""

    def __init__(self, executor: Any, workers: int, folder: str | None) -> None:
        super().__init__(executor, workers, folder)
        self._held: list[Callable[[], None]] = []

    def hold(self, array: np.ndarray[Any, Any]) -> Callable[[int, int], Any]:
        stored: dict[tuple[int, int], Any] = {}

        def reference(begin: int, end: int) -> Any:
            if (begin, end) not in stored:
                stored[begin, end] = self.executor.put(np.ascontiguousarray(array[begin:end]))
            return stored[begin, end]

        self._held.append(stored.clear)
        return reference

    def renew(self) -> None:
        for forget in self._held:
            forget()

    def close(self, failed: bool = False) -> None:
        super().close(failed)
        self.renew()

    def is_loss(self, error: BaseException) -> bool:
        return super().is_loss(error) or self.executor.is_loss(error)


def engine_of(executor: Any, workers: int | None, folder: str | None) -> Engine:
    if not hasattr(executor, "submit"):
        raise InvalidArgument(
            f"executor: {type(executor).__name__} has no submit; expected an executor of concurrent.futures, Dask's "
            "client.get_executor(), mpi4py's MPIPoolExecutor or a RayExecutor"
        )
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise InvalidArgument(f"workers: is {workers!r}, must be at least 1")
    kinds = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(executor).__mro__}
    if "distributed.cfexecutor.ClientExecutor" in kinds:
        return Dask(executor, workers or 0, folder)
    known = workers or _workers_of(executor)
    if isinstance(executor, ThreadPoolExecutor):
        return Threads(executor, known, folder)
    if isinstance(executor, ProcessPoolExecutor):
        return Processes(executor, known, folder)
    if hasattr(executor, "put"):
        return Stored(executor, known, folder)
    return Engine(executor, known, folder)


def _workers_of(executor: Any) -> int:
    for name in ("_max_workers", "num_workers", "max_workers"):
        found = getattr(executor, name, None)
        if isinstance(found, int) and found > 0:
            return found
    return len(os.sched_getaffinity(0))


def run(
    engine: Engine,
    tasks: Sequence[Callable[[], Task]],
    *,
    stage: str,
    progress: Any = None,
    stall_limit: float | None = None,
) -> Iterator[tuple[int, Any]]:
    """Yields (number, result) of each task as it ends. A task is made when it is submitted, and again where its worker
    is lost, at most three times each. Whatever else fails ends all: what has not begun is cancelled."""
    report = None if progress is None else reporter(progress)
    waiting = list(range(len(tasks)))[::-1]
    pending: dict[Future[Any], tuple[int, str]] = {}
    losses: dict[int, int] = {}
    done = refused = 0
    moved = time.monotonic()
    try:
        while waiting or pending:
            lost: BaseException | None = None
            lost_tasks: list[int] = []
            try:
                while waiting and len(pending) < IN_FLIGHT * engine.workers:
                    task = tasks[waiting[-1]]()
                    pending[_checked(engine.submit(task.function, *task.arguments))] = waiting[-1], task.name
                    waiting.pop()
            except Exception as error:
                if not engine.is_loss(error):
                    raise
                lost = error
                refused = waiting[-1]
            finished = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED).done
            for future in sorted(finished, key=lambda future: pending[future][0]):
                number, name = pending.pop(future)
                try:
                    result = future.result()
                except (Exception, CancelledError) as error:
                    if not engine.is_loss(error):
                        raise _named(name, error) from error
                    lost = error
                    lost_tasks.append(number)
                    continue
                done += 1
                if report is not None:
                    report(stage, done / len(tasks))
                yield number, result
                # The time that the caller took is none in which tasks did not end.
                moved = time.monotonic()
            if lost is not None:
                if isinstance(lost, BrokenExecutor):
                    wait(pending, timeout=LOSS_SECONDS)  # All tasks of a broken pool fail, one shortly after the other.
                # What is still running may need what was lost; it is run again, too.
                for future in list(pending):
                    if _has_failed(engine, future):
                        lost_tasks.append(pending.pop(future)[0])
                    elif not future.done():
                        future.cancel()
                        waiting.append(pending.pop(future)[0])
                waiting.extend(lost_tasks)
                waiting.sort(reverse=True)
                for number in lost_tasks or [refused]:
                    losses[number] = losses.get(number, 0) + 1
                most = max(losses, key=lambda number: (losses[number], -number))
                if losses[most] > MAX_LOSSES:
                    why = f"{type(lost).__name__}: {lost}"
                    name = tasks[most]().name
                    raise TaskFailed(f"{name}: its worker was lost {losses[most]} times ({why})") from lost
                engine.renew()
                moved = time.monotonic()
            if stall_limit is not None and time.monotonic() - moved > stall_limit:
                names = sorted(pending.values())
                where = f", among them {names[0][1]}" if names else ""
                raise TaskFailed(f"no task has ended for {stall_limit:g} seconds; {len(names)} are pending{where}")
    finally:
        for future in pending:
            future.cancel()
        close = getattr(report, "close", None)
        if close is not None:
            close()


def _checked(future: Any) -> Future[Any]:
    """What `submit` gave, where it is a future of concurrent.futures; that of Dask's Client, say, is none."""
    if isinstance(future, Future):
        return future
    cancel = getattr(future, "cancel", None)
    if callable(cancel):
        cancel()
    raise InvalidArgument(
        f"executor: its submit gives a {type(future).__module__}.{type(future).__qualname__}; expected a Future of "
        "concurrent.futures, such as those of Dask's client.get_executor()"
    )


def _has_failed(engine: Engine, future: Future[Any]) -> bool:
    """Whether a future has ended by a loss."""
    if not future.done() or future.cancelled():
        return future.cancelled()
    error = future.exception()
    return error is not None and engine.is_loss(error)


def _named(name: str, error: BaseException) -> BaseException:
    """An error of a task, with the block in front."""
    if isinstance(error, TypeError):
        return error
    if isinstance(error, Error):
        return type(error)(f"{name}: {error}")
    if isinstance(error, Exception):
        return TaskFailed(f"{name}: {type(error).__name__}: {error}")
    return error

"""Ray as an executor."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Callable

__all__ = ["RayExecutor"]


class RayExecutor:
    """Runs tasks on a Ray cluster, which `ray.init` has joined. `num_cpus` are Ray's CPUs of each task; other `options`
    are those of `ray.remote`, such as `max_retries` (3) and `resources`. Ray runs the task of a dead worker again.
    Needs ray."""

    def __init__(self, *, num_cpus: int = 1, **options: Any) -> None:
        import ray

        self._ray = ray
        if not ray.is_initialized():
            ray.init()
        self.num_cpus = num_cpus
        slots = [int(node["Resources"].get("CPU", 0)) // max(num_cpus, 1) for node in ray.nodes() if node["Alive"]]
        self.num_workers = max(sum(slots), 1)
        self.tasks_per_host = max(slots, default=1) or 1
        self._run = ray.remote(num_cpus=num_cpus, **options)(_call)

    def put(self, value: Any) -> Any:
        """Stores a value for the workers; `submit` takes the reference as an argument."""
        return self._ray.put(value)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Runs a function in a worker."""
        reference = self._run.remote(function, *arguments)
        told: Future[Any] = Future()
        inner: Future[Any] = reference.future()

        def tell(ended: Future[Any]) -> None:
            if told.cancelled() or not told.set_running_or_notify_cancel():
                return
            error = ended.exception()
            # The error of a task is the cause of Ray's.
            cause = getattr(error, "cause", None)
            if error is not None:
                told.set_exception(cause if isinstance(cause, BaseException) else error)
            else:
                told.set_result(ended.result())

        def give_up(future: Future[Any]) -> None:
            if future.cancelled():
                self._ray.cancel(reference, force=False)

        inner.add_done_callback(tell)
        told.add_done_callback(give_up)
        return told

    def is_loss(self, error: BaseException) -> bool:
        """Whether a task failed because a worker, a node or an object is gone."""
        lost = self._ray.exceptions
        return isinstance(error, (lost.WorkerCrashedError, lost.ObjectLostError, lost.NodeDiedError))


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)

"""The patch of scikit-learn: its own classes, with vicinal's engine. The first call loads scikit-learn, not this file."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterator

if TYPE_CHECKING:
    from vicinal._hooks.registry import Settings

__all__ = [
    "PatchReport",
    "load_ipython_extension",
    "patch_report",
    "patch_sklearn",
    "patched_sklearn",
    "unload_ipython_extension",
    "unpatch_sklearn",
]


class PatchReport(dict[str, dict[str, Any]]):
    """What patched functions did in this process: by hook {"ours": calls that vicinal answered, "stock": {reason: calls
    that were left to scikit-learn}}. Printed, it is a table."""

    def __str__(self) -> str:
        lines = [f"{'hook':34}{'ours':>10}{'stock':>10}"]
        for name, count in self.items():
            lines.append(f"{name:34}{count['ours']:10}{sum(count['stock'].values()):10}")
            for reason, calls in sorted(count["stock"].items(), key=lambda one: -one[1]):
                lines.append(f"{'':44}{calls:10}  {reason}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def patch_sklearn(device: str = "auto", threads: int | None = None, memory_limit: int | None = None) -> None:
    """Lets vicinal compute inside scikit-learn 1.9 in this process: neighbor searches, votes of neighbors, k-means,
    density clustering and locally linear embeddings. Classes, parameters, attributes and errors stay scikit-learn's.
    Models that exist already are served, too.

    `device` is "auto", "cpu", "cuda", "cuda:1" or "cuda:0,1"; `threads` is at most what threadpoolctl, joblib and
    OMP_NUM_THREADS allow; `memory_limit` is in bytes. scikit-learn computes the calls that vicinal cannot answer
    exactly as scikit-learn would: `patch_report()` counts these, and the environment variable
    VICINAL_FALLBACK=log|warn|error reports them. A second call changes the settings.

    Raises InvalidArgument, DeviceUnavailable and OverMemory for settings that cannot be used, PatchConflict (of
    vicinal.patch) where another package has patched scikit-learn, ModuleNotFoundError without scikit-learn. Warns on
    another version than 1.9, which then stays as it is, and of each hook whose self-test fails. Loads scikit-learn.
    """
    from vicinal._hooks import registry

    registry.set_default(_settings(device, threads, memory_limit))


def unpatch_sklearn() -> None:
    """Undoes `patch_sklearn`: every attribute of scikit-learn is again what it was, also those that the estimators of
    vicinal.sklearn have replaced, which their next call replaces again."""
    from vicinal._hooks import registry

    registry.set_default(None)


@contextmanager
def patched_sklearn(
    device: str = "auto", threads: int | None = None, memory_limit: int | None = None
) -> Iterator[None]:
    """`patch_sklearn` for a `with` block, in this thread and in the workers that scikit-learn starts in it. Raises what
    `patch_sklearn` raises."""
    from vicinal._hooks import registry

    with registry.active(_settings(device, threads, memory_limit)):
        yield


def patch_report() -> PatchReport:
    """Calls by hook, answered by vicinal and left to scikit-learn, since this process began. Those of worker processes
    are not counted."""
    from vicinal._hooks import registry

    return PatchReport(registry.report())


def _settings(device: str, threads: int | None, memory_limit: int | None) -> Settings:
    """The settings, which a small search has used."""
    from vicinal._errors import InvalidArgument
    from vicinal._hooks.registry import Settings
    from vicinal._neighbors import knn

    if threads is not None and threads < 1:
        raise InvalidArgument(f"threads: {threads} is not allowed; expected at least 1, or None for all")
    knn([[0.0], [1.0]], k=1, device=device, threads=threads, memory_limit=memory_limit)
    return Settings(device, threads, memory_limit)


def load_ipython_extension(ipython: object) -> None:
    """`%load_ext vicinal` is `patch_sklearn()`."""
    patch_sklearn()


def unload_ipython_extension(ipython: object) -> None:
    """`%unload_ext vicinal` is `unpatch_sklearn()`."""
    unpatch_sklearn()

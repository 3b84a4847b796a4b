"""Progress: a bar by tqdm, or a function of the caller's."""

from __future__ import annotations

from typing import Any, Callable

from vicinal._errors import InvalidArgument


class Bar:
    """One bar of tqdm a stage, closed when the next stage begins or the call ends."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None
        self._stage = ""

    def __call__(self, stage: str, fraction: float) -> None:
        if self._bar is None or stage != self._stage:
            self.close()
            self._stage = stage
            self._bar = self._tqdm(total=1.0, desc=stage, leave=False, bar_format="{desc}: {percentage:3.0f}%|{bar}|")
        self._bar.n = fraction
        self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def reporter(progress: object) -> Callable[[str, float], None] | None:
    """What the keyword `progress` stands for: None, or what is called with a stage and the share done."""
    if progress is False:
        return None
    if progress is not True:
        if not callable(progress):
            raise InvalidArgument(
                f"progress: {progress!r} is not allowed; expected True, False or a function of (stage, fraction)"
            )
        return progress
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise InvalidArgument(
            "progress: True needs tqdm, which is not installed; install vicinal[progress], or pass a function of "
            "(stage, fraction)"
        ) from None
    return Bar(tqdm)

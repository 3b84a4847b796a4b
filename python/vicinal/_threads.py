"""threadpoolctl's controller of the library's threads. It is registered when threadpoolctl is loaded, before or after
this package, which does not load it."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Sequence

from vicinal import _core

_NAME = "threadpoolctl"


def _register(threadpoolctl: Any) -> None:
    """threadpoolctl looks for controllers by the names of loaded files; the extension's is found by its symbols."""

    class Controller(threadpoolctl.LibController):  # type: ignore[misc]
        user_api = "vicinal"
        internal_api = "vicinal"
        filename_prefixes = ("_core",)
        check_symbols = ("vicinal_get_num_threads", "vicinal_set_num_threads")

        def get_num_threads(self) -> int:
            return int(self.dynlib.vicinal_get_num_threads())

        def set_num_threads(self, num_threads: int) -> None:
            self.dynlib.vicinal_set_num_threads(num_threads)

        def get_version(self) -> str:
            return _core.__version__

    threadpoolctl.register(Controller)


class _Finder:
    """Registers the controller when threadpoolctl is loaded, and then is gone."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _NAME:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            if hasattr(module, "register"):
                _register(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def obey() -> None:
    """Lets threadpoolctl bound the library's threads."""
    loaded = sys.modules.get(_NAME)
    if loaded is None:
        sys.meta_path.insert(0, _Finder())
    elif hasattr(loaded, "register"):
        _register(loaded)

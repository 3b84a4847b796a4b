"""The patch of scikit-learn, and `python -m vicinal.patch script.py args...`, which runs a script with it."""

from __future__ import annotations

import argparse
import os
import runpy
import sys

from vicinal._hooks.registry import FallbackError, FallbackWarning, PatchConflict
from vicinal._patch import PatchReport, patch_report, patch_sklearn, patched_sklearn, unpatch_sklearn

__all__ = [
    "FallbackError",
    "FallbackWarning",
    "PatchConflict",
    "PatchReport",
    "patch_report",
    "patch_sklearn",
    "patched_sklearn",
    "unpatch_sklearn",
]


def main(arguments: list[str]) -> None:
    """Runs a script or a module as Python would, scikit-learn patched."""
    parser = argparse.ArgumentParser(
        prog="python -m vicinal.patch", description="Run a Python program with scikit-learn patched by vicinal."
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 or cuda:0,1 [auto]")
    parser.add_argument("--threads", type=int, help="Maximum number of threads [all]")
    parser.add_argument("--memory-limit", type=int, metavar="BYTES", help="Maximum memory [80 %% of what is free]")
    parser.add_argument("--report", action="store_true", help="Print which calls vicinal answered, to standard error")
    parser.add_argument("-m", dest="module", action="store_true", help="The program is the name of a module")
    parser.add_argument("program", help="Path of a script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="Arguments of the program")
    given = parser.parse_args(arguments)
    patch_sklearn(given.device, given.threads, given.memory_limit)
    sys.argv = [given.program, *given.arguments]
    try:
        if given.module:
            sys.path[0] = os.getcwd()
            runpy.run_module(given.program, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(given.program))
            runpy.run_path(given.program, run_name="__main__")
    finally:
        if given.report:
            print(patch_report(), file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])

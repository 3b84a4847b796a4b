"""The command `vicinal`, in this process. It replaces Python's handlers of signals, so it is the last thing to run."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from vicinal import _core


def main() -> NoReturn:
    """Runs the command with this process's arguments and ends the process with the command's exit code."""
    sys.exit(_core.command([b"vicinal", *map(os.fsencode, sys.argv[1:])]))

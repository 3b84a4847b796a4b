"""What the tests of the Python package share. The package is on PYTHONPATH (ctest sets it: the build's python/ folder),
VICINAL_COMMAND is the command that its answers are compared with."""

import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest


def pytest_ignore_collect(collection_path, config):
    """Folders of another Python's tests run when they are named: their conftest.py takes this one's place."""
    others = [name for name in ("sklearn_", "engines") if collection_path.name.startswith(name)]
    return any(not any(name in path for path in config.args) for name in others) or None


@pytest.fixture(scope="session")
def command():
    path = os.environ.get("VICINAL_COMMAND") or shutil.which("vicinal")
    if not path:
        raise pytest.UsageError("VICINAL_COMMAND must name the vicinal command")
    return str(pathlib.Path(path).resolve())


@pytest.fixture
def run(tmp_path, command):
    """Runs the command in the test's own folder, which it must like; returns stdout."""

    def run(*arguments):
        done = subprocess.run(
            [command, *map(str, arguments)], cwd=tmp_path, text=True, capture_output=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def rows():
    """300 rows of 5 columns in three groups, with a few equal rows."""
    draw = np.random.default_rng(3)
    made = draw.normal(size=(300, 5)) + 4 * (np.arange(300) % 3)[:, None]
    made[10] = made[13] = made[100]
    made.flags.writeable = False
    return made


@pytest.fixture(scope="session")
def queries():
    made = np.random.default_rng(4).normal(size=(40, 5)) + 3
    made.flags.writeable = False
    return made


def same(left, right):
    """Equal arrays, bit for bit."""
    left, right = np.asarray(left), np.asarray(right)
    assert left.dtype == right.dtype and left.shape == right.shape, (left.dtype, right.dtype, left.shape, right.shape)
    assert left.tobytes() == right.tobytes()


def resident():
    """Bytes of memory that this process has."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

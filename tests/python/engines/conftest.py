"""What the tests of engines share: the package is on PYTHONPATH, and the engines are in an environment of their own
(.venv-engines, which `./dev` makes). Nothing is skipped: an engine that is missing is a failure that says so."""

import importlib
import os
import pathlib
import signal

import numpy as np
import pytest

# Workers that are started find the modules of this folder, too.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [os.environ.get("PYTHONPATH"), str(pathlib.Path(__file__).parent)])
)

SECONDS = 120  # of a test, so that one that hangs ends; of a fault 30
FAULTS = ("killed", "dies", "stall", "ctrl_c")


@pytest.fixture(scope="session")
def engine_module():
    """Imports an engine's package, or fails with a sentence."""

    def load(name):
        try:
            return importlib.import_module(name)
        except ImportError as error:
            pytest.fail(
                f"{name} is missing in this Python ({error}); `./dev test` makes .venv-engines from "
                "tests/python/engines/requirements.txt, and VICINAL_ENGINES_PYTHON names its Python",
                pytrace=False,
            )

    return load


@pytest.fixture(autouse=True)
def time_limit(request, cluster_has_started):
    """A test that hangs fails, and its process goes on to the next one."""

    seconds = 30 if any(fault in request.node.name for fault in FAULTS) else SECONDS

    def late(*_):
        raise TimeoutError(f"{request.node.name} has taken more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def cluster_has_started():
    """Tests of a module override it with a fixture that starts their cluster, which takes longer than a test may."""


def make_rows():
    """401 rows of 4 columns: the same two-decimal values in other orders, whose distances tie after rounding, and equal
    rows on both sides of cuts."""
    draw = np.random.default_rng(11)
    base = np.round(draw.normal(size=(60, 4)), 2)
    made = np.concatenate([draw.permuted(base, axis=1) for _ in range(7)])[:401]
    made[100:104] = made[199:203] = made[300]
    made.flags.writeable = False
    return made


def make_queries():
    made = np.round(np.random.default_rng(12).normal(size=(53, 4)), 2)
    made.flags.writeable = False
    return made


@pytest.fixture(scope="session")
def rows():
    return make_rows()


@pytest.fixture(scope="session")
def queries():
    return make_queries()


@pytest.fixture(scope="session")
def mark_folder(tmp_path_factory):
    """Where a task that kills its worker notes that it did."""
    return tmp_path_factory.mktemp("marks")

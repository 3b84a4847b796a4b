"""threadpoolctl lists the library and bounds its threads, whichever of the two is loaded first."""

import subprocess
import sys

import pytest

pytest.importorskip("threadpoolctl")

SCRIPT = """
import os
{imports}
assert "threadpoolctl" in __import__("sys").modules
import numpy as np
table = np.random.default_rng(0).normal(size=(500, 4))
used = lambda **given: vicinal.knn(table, k=2, **given).plan.threads
listed = [one for one in threadpoolctl.threadpool_info() if one["user_api"] == "vicinal"]
assert len(listed) == 1, threadpoolctl.threadpool_info()
all_cores = used()
assert listed[0]["num_threads"] == all_cores and listed[0]["version"] == vicinal.__version__
with threadpoolctl.threadpool_limits(limits=1):
    assert used() == 1
    assert used(threads=2) == 2  # what is asked for is no default
    with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
        assert used() == 1
assert used() == all_cores
with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
    assert used() == all_cores
with threadpoolctl.threadpool_limits(limits={{"vicinal": 1}}):
    assert used() == 1
assert used() == all_cores
os.environ["OMP_NUM_THREADS"] = "1"
with threadpoolctl.threadpool_limits(limits=64, user_api="vicinal"):
    assert used() == 1
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import threadpoolctl, vicinal",
        "import vicinal, threadpoolctl",
        "import vicinal; from sklearn import neighbors; import threadpoolctl",
    ],
)
def test_limits(imports):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(imports=imports)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_the_finder_leaves_no_trace():
    script = (
        "import sys; before = list(sys.meta_path); import vicinal\n"
        "assert 'threadpoolctl' not in sys.modules\n"
        "import threadpoolctl, json, decimal\n"
        "assert sys.meta_path == before, sys.meta_path"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr

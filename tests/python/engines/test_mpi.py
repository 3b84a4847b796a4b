"""vicinal.distributed by mpi4py.futures: three ranks, of which one drives the two others."""

# ctest: COST 15
import os
import shutil
import subprocess
import sys

import checks
import numpy as np
import pytest

import vicinal as vc

PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import checks, conftest
import numpy as np
from mpi4py.futures import MPIPoolExecutor
from vicinal import distributed

if __name__ == "__main__":
    rows = conftest.make_rows()
    queries = conftest.make_queries()
    with MPIPoolExecutor() as executor:
        checks.check_all(executor, rows, queries)
        assert executor.num_workers == 2, executor.num_workers
    print("the same bits")
"""


@pytest.fixture
def mpirun(engine_module, tmp_path):
    """Runs a program by mpi4py.futures on three ranks."""
    engine_module("mpi4py")
    command = shutil.which("mpirun")
    assert command, "mpirun is missing; `./dev test` installs openmpi-bin"
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def run(program):
        (tmp_path / "program.py").write_text(program)
        done = subprocess.run(
            [command, "--oversubscribe", "-n", "3", sys.executable, "-m", "mpi4py.futures", "program.py"],
            cwd=tmp_path,
            env={**os.environ, **as_root},
            text=True,
            capture_output=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_same_bits(mpirun):
    assert mpirun(PROGRAM.format(folder=os.path.dirname(__file__))) == "the same bits\n"


def test_the_page(mpirun, rows, tmp_path):
    """What docs/distributed.md shows."""
    np.save(tmp_path / "rows.npy", rows)
    code = checks.block_of_docs("mpi4py").replace("/shared", str(tmp_path))
    mpirun(code + "    import numpy\n    numpy.savez('graph.npz', ids=graph.ids, distances=graph.distances)\n")
    found = np.load(tmp_path / "graph.npz")
    wanted = vc.knn(rows, k=10)
    checks.same(found["ids"], wanted.ids)
    checks.same(found["distances"], wanted.distances)

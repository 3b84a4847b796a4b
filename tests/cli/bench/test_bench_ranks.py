"""`vicinal-bench ranks` and bench/ranks.py at small sizes: both ways give the same bits, and what the result says."""
# ctest: COST 20
# ctest: PROCESSORS 2

import json
import pathlib
import shutil
import subprocess
import sys

import pytest

from conftest import command_path

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "bench" / "ranks.py"


@pytest.mark.parametrize("job", ["knn-queries", "knn-within", "kmeans", "lof", "parts"])
def test_a_job_of_one_process(job):
    command = [command_path(), "ranks", "--job", job, "--scale", "0.001", "--repeat", "2", "--json"]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout)
    assert told["job"] == job and told["ranks"] == 1 and len(told["seconds"]) == 2
    if job == "parts":
        assert told["bits_by_parts"] == told["bits"] and len(told["seconds_by_parts"]) == 2


def test_the_script_compares_ranks_with_a_process(tmp_path):
    bench = command_path()
    told = json.loads(subprocess.run([bench, "ranks", "--scale", "0.001", "--json"], capture_output=True, text=True,
                                     timeout=120, check=True).stdout)
    status = subprocess.run([sys.executable, str(SCRIPT), "--bench", bench, "--scale", "0.001", "--turns", "1", "-o",
                             str(tmp_path / "ranks.json"), "--commit", "abc", "knn-queries", "parts"],
                            capture_output=True, text=True, timeout=120)
    if shutil.which("mpirun") is None:
        assert status.returncode == 2 and "mpirun is not installed" in status.stderr
        return
    if status.returncode != 0 and "libvicinal_mpi.so" in status.stderr:
        pytest.skip("the plug-in for MPI is not built here")
    assert status.returncode == 0, status.stderr
    found = json.loads((tmp_path / "ranks.json").read_text())
    assert found["commit"] == "abc" and [line["job"] for line in found["lines"]] == ["knn-queries", "parts"]
    assert found["lines"][0]["shape"] == told["shape"] and found["lines"][0]["speed"] > 0
    assert len(found["lines"][0]["ranks_seconds"]) == 1 and len(found["lines"][1]["parts_seconds"]) == 1

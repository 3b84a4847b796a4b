"""vicinal.distributed by Ray, on two CPUs."""

# ctest: COST 60
# ctest: PROCESSORS 2
import checks
import numpy as np
import pytest

import vicinal as vc
from vicinal import distributed


@pytest.fixture(scope="session")
def cluster_has_started(engine_module):
    ray = engine_module("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000)
    yield ray
    ray.shutdown()


@pytest.fixture
def executor(cluster_has_started):
    made = distributed.RayExecutor()
    assert (made.num_workers, made.tasks_per_host) == (2, 2)
    return made


@pytest.mark.parametrize("what", checks.CHECKS)
def test_same_bits(executor, rows, queries, what):
    checks.CHECKS[what](executor, rows, queries)


def test_sentences_name_the_block(executor, rows):
    bad = rows.copy()
    bad[210, 2] = np.nan
    with pytest.raises(vc.BadData, match=r"^rows 150 to 299, queries \d+ to \d+: table: row 210, column 2"):
        distributed.knn(bad, rows, executor=executor, k=3, **checks.DIVISION)


@pytest.mark.parametrize("at", [1, 6])
def test_a_killed_worker(executor, rows, mark_folder, at):
    """Ray starts another one, and runs its tasks again."""
    mark = mark_folder / f"ray{at}"
    killing = checks.KillOnce(executor, mark, at)
    checks.same_graph(distributed.knn(rows, executor=killing, k=5, **checks.DIVISION), vc.knn(rows, k=5))
    assert mark.exists()


def test_a_killed_worker_in_kmeans(executor, rows, mark_folder):
    mark = mark_folder / "ray-kmeans"
    options = {"clusters": 6, "init": "random", "seed": 3}
    got = distributed.kmeans(rows, executor=checks.KillOnce(executor, mark, 8), rows_per_task=150, **options)
    assert mark.exists()
    wanted = vc.kmeans(rows, **options)
    checks.same(got.labels, wanted.labels)
    checks.same(got.centres, wanted.centres)


def test_a_worker_that_dies_each_time(executor, rows):
    """One sentence, and no hang. One task, because which of several dies first is not known."""
    dying = distributed.RayExecutor(max_retries=0)
    with pytest.raises(distributed.TaskFailed, match="^rows 0 to 400, queries 0 to 400: its worker was lost 4 times"):
        killing = checks.KillOnce(dying, "", 0, always=True)
        distributed.knn(rows, executor=killing, k=3, rows_per_task=401, queries_per_task=401)


def test_the_page(executor, rows, tmp_path):
    """What docs/distributed.md shows, on this cluster."""
    np.save(tmp_path / "rows.npy", rows)
    code = checks.block_of_docs("Ray").replace("/shared", str(tmp_path))
    assert 'ray.init(address="auto")\n' in code
    shown = {}
    exec(code.replace('ray.init(address="auto")\n', ""), shown)
    checks.same_graph(shown["graph"], vc.knn(rows, k=10))

"""vicinal.distributed by Dask's executor, on a cluster of two processes."""

# ctest: COST 30
import gc

import checks
import numpy as np
import pytest

import vicinal as vc
from vicinal import distributed
from vicinal.distributed import _tasks

WORKERS = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}


@pytest.fixture(scope="session")
def cluster_has_started(engine_module):
    module = engine_module("distributed")
    with module.LocalCluster(**WORKERS) as cluster, module.Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture
def client(cluster_has_started):
    return cluster_has_started


@pytest.mark.parametrize("what", checks.CHECKS)
def test_same_bits(client, rows, queries, what):
    checks.CHECKS[what](client.get_executor(), rows, queries)


def test_paths(client, rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    got = distributed.knn(tmp_path / "rows.npy", executor=client.get_executor(), k=5, **checks.DIVISION)
    checks.same_graph(got, vc.knn(rows, k=5))


def test_sentences_name_the_block(client, rows):
    bad = rows.copy()
    bad[210, 2] = np.nan
    with pytest.raises(vc.BadData, match=r"^rows 150 to 299, queries \d+ to \d+: table: row 210, column 2"):
        distributed.knn(bad, rows, executor=client.get_executor(), k=3, **checks.DIVISION)


@pytest.mark.parametrize("at", [1, 5])
def test_a_killed_worker(client, rows, mark_folder, at):
    """Dask starts another one, and runs its tasks again; what only the dead one held is scattered anew."""
    mark = mark_folder / f"dask{at}"
    killing = Killing(client, mark, at)
    checks.same_graph(distributed.knn(rows, executor=killing.executor, k=5, **checks.DIVISION), vc.knn(rows, k=5))
    assert mark.exists()


def test_a_killed_worker_in_kmeans(client, rows, mark_folder):
    mark = mark_folder / "dask-kmeans"
    killing = Killing(client, mark, 8)
    options = {"clusters": 6, "init": "k-means||", "seed": 3}
    got = distributed.kmeans(rows, executor=killing.executor, rows_per_task=150, **options)
    assert mark.exists()
    wanted = vc.kmeans(rows, **options)
    checks.same(got.labels, wanted.labels)
    checks.same(got.centres, wanted.centres)


class Killing:
    """An executor of Dask whose `at`-th task kills its worker, once."""

    def __init__(self, client, mark, at):
        self.executor = client.get_executor()
        submit, count = self.executor.submit, [0]

        def replaced(function, *arguments):
            count[0] += 1
            if count[0] == at:
                return submit(checks.die_once, str(mark), False, function, *arguments)
            return submit(function, *arguments)

        self.executor.submit = replaced


# ---- vicinal.dask ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def arrays(engine_module):
    return engine_module("dask.array")


@pytest.fixture(params=["cluster", "threads"])
def scheduler(request, client, engine_module):
    """vicinal.dask computes by whatever scheduler there is."""
    dask = engine_module("dask")
    with dask.config.set(scheduler=client if request.param == "cluster" else "threads"):
        yield request.param


def chunked(arrays, rows):
    """Chunks of unequal sizes, cut in columns, too."""
    return arrays.from_array(rows, chunks=((150, 3, 248), (1, 3)))


def test_arrays_of_neighbors(scheduler, arrays, rows, queries):
    import vicinal.dask as vd

    table, asked = chunked(arrays, rows), arrays.from_array(queries, chunks=(20, 4))
    for given, options in ((None, {"k": 6}), (asked, {"k": 5, "metric": "manhattan"})):
        ids, distances = vd.knn(table, given, **options)
        wanted = vc.knn(rows, None if given is None else queries, **options)
        assert ids.chunks[0] == ((150, 3, 248) if given is None else (20, 20, 13))
        checks.same(ids.compute(), wanted.ids)
        checks.same(distances.compute(), wanted.distances)
    options = {"filter": arrays.from_array(checks.filter_of(rows), chunks=100), "exclude": checks.exclude_of(queries)}
    ids, _ = vd.knn(table, asked, k=5, **options)
    checks.same(
        ids.compute(), vc.knn(rows, queries, k=5, filter=checks.filter_of(rows), exclude=options["exclude"]).ids
    )
    each = np.linspace(0, 2, len(queries))
    for radius in (0.9, each):
        counts, ids, distances = vd.radius(table, asked, radius=radius)
        wanted = vc.radius(rows, queries, radius=radius)
        checks.same(counts.compute(), np.diff(wanted.offsets))
        checks.same(ids.compute(), wanted.ids)
        checks.same(distances.compute(), wanted.distances)
    checks.same(vd.count(table, radius=0.9).compute(), vc.count(rows, radius=0.9).counts)


def test_arrays_of_votes(scheduler, arrays, rows, queries):
    import vicinal.dask as vd

    table, asked = chunked(arrays, rows), arrays.from_array(queries, chunks=(20, 4))
    for labels in (np.arange(len(rows)) % 4, np.array(["ape", "bee"])[np.arange(len(rows)) % 2]):
        wanted = vc.classify(rows, queries, labels, k=7, weights="distance").labels
        for given in (labels, arrays.from_array(labels, chunks=90)):
            checks.same(vd.classify(table, asked, given, k=7, weights="distance").compute(), wanted)
    targets = rows[:, :2] * 3
    checks.same(vd.regress(table, asked, targets, k=4).compute(), vc.regress(rows, queries, targets, k=4).values)
    got = vd.regress(table, asked, arrays.from_array(targets[:, 0], chunks=50), radius=2.0)
    checks.same(got.compute(), vc.regress(rows, queries, targets[:, 0], radius=2.0).values)


def test_arrays_of_scores_and_clusters(scheduler, arrays, rows):
    import vicinal.dask as vd

    table = chunked(arrays, rows)
    for options in ({"k": 8}, {"score": "loop", "k": 8}, {"k": 4, "k_to": 6, "metric": "manhattan"}):
        scores = vd.lof(table, **options)
        assert scores.chunks == ((150, 3, 248),)
        checks.same(scores.compute(), vc.lof(rows, **options).scores)
    weights = np.where(np.arange(len(rows)) % 5 == 0, 0.0, 1.5)
    for given in (None, arrays.from_array(weights, chunks=100)):
        model, labels = vd.kmeans(table, clusters=6, seed=2, weights=given, max_iterations=5)
        wanted = vc.kmeans(
            rows, clusters=6, seed=2, init="k-means||", max_iterations=5, weights=None if given is None else weights
        )
        checks.same(model.centres, wanted.centres)
        checks.same(labels.compute(), wanted.labels)
        assert labels.chunks == ((150, 3, 248),)


def test_a_source_that_changes(scheduler, arrays, engine_module, rows, queries, tmp_path):
    """A graph that is computed again searches what its chunks hold now, and no worker keeps them."""
    import vicinal.dask as vd

    dask, path = engine_module("dask"), str(tmp_path / "rows.npy")
    table = arrays.from_delayed(dask.delayed(np.load, pure=False)(path), rows.shape, rows.dtype)
    ids, _ = vd.knn(table, queries, k=5)
    within, _ = vd.knn(table, k=5)
    for held in (rows, rows[::-1].copy()):
        np.save(path, held)
        checks.same(ids.compute(), vc.knn(held, queries, k=5).ids)
        checks.same(within.compute(), vc.knn(held, k=5).ids)
    del held
    if scheduler == "threads":
        gc.collect()
        assert not _tasks._INDEXES._kept and not [block for block in _tasks.Indexed._recent if block() is not None]


def test_labels_are_computed_by_tasks(scheduler, arrays, rows, queries):
    import vicinal.dask as vd

    def refuse(block):
        raise AssertionError("computed")

    labels = arrays.from_array(np.zeros(len(rows), np.int64)).map_blocks(refuse, dtype=np.int64, meta=np.zeros(0, int))
    assert vd.classify(chunked(arrays, rows), queries, labels, k=3).dtype == np.int64


def test_array_refusals(scheduler, arrays, rows):
    import vicinal.dask as vd

    table = chunked(arrays, rows)
    with pytest.raises(vc.InvalidArgument, match="chunks of unknown sizes; call its compute_chunk_sizes"):
        vd.knn(table[table[:, 0] > 0])
    masked = np.ma.masked_equal(rows, rows[0, 0])
    for given in (masked, arrays.from_array(masked)):
        for call in (vd.knn, vd.kmeans, vd.lof):
            with pytest.raises(vc.InvalidArgument, match="^table: a masked array"):
                call(given)
        with pytest.raises(vc.InvalidArgument, match="^targets: a masked array"):
            vd.regress(table, rows, given, k=3)
        with pytest.raises(vc.InvalidArgument, match="^labels: a masked array"):
            vd.classify(table, rows, given[:, 0], k=3)
    with pytest.raises(vc.InvalidArgument, match="table: 1 dimensions"):
        vd.knn(table[:, 0])
    with pytest.raises(vc.InvalidArgument, match=r"filter: has shape \[3\]; expected \[401\]"):
        vd.knn(table, filter=[True, False, True])
    with pytest.raises(vc.InvalidArgument, match="score: 'ldof' needs"):
        vd.lof(table, score="ldof")
    with pytest.raises(vc.InvalidArgument, match=r"use k-means\|\|"):
        vd.kmeans(table, init="k-means++")
    bad = rows.copy()
    bad[152, 2] = np.nan
    with pytest.raises(vc.BadData, match=r"^rows 150 to 152, queries \d+ to \d+: (table|queries): row 152, column 2"):
        vd.knn(chunked(arrays, bad), rows, k=3)[0].compute()

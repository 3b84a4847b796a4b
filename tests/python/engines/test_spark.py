"""vicinal.spark on a local cluster of two executors."""

# ctest: COST 120
# ctest: PROCESSORS 2
import os
import shutil
import sys

import checks
import numpy as np
import pytest

import vicinal as vc

DIVISION = {"rows_per_task": 150, "queries_per_task": 170}


@pytest.fixture(scope="session")
def cluster_has_started(engine_module):
    sql = engine_module("pyspark.sql")
    engine_module("pyarrow")
    assert shutil.which("java"), "java is missing; `./dev test` installs openjdk-17-jre-headless"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        sql.SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    session.range(4).repartition(2).mapInArrow(lambda batches: batches, "id long").count()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def spark(cluster_has_started):
    return cluster_has_started


def frame(spark, rows, **more):
    """Rows in another order, as columns."""
    import pyarrow as pa

    order = np.random.default_rng(5).permutation(len(rows))
    columns = {"id": np.arange(len(rows)), **{f"x{j}": rows[:, j] for j in range(rows.shape[1])}, **more}
    return spark.createDataFrame(pa.table({name: np.asarray(values)[order] for name, values in columns.items()}))


def lists_of(found):
    """ids and distances of a result, in the order of the queries."""
    rows = sorted(found.collect(), key=lambda row: row["id"])
    assert [row["id"] for row in rows] == list(range(len(rows)))
    return [row["ids"] for row in rows], [row["distances"] for row in rows]


def same_lists(found, wanted):
    ids, distances = lists_of(found)
    assert len(ids) == wanted.rows
    for row in range(wanted.rows):
        checks.same(np.array(ids[row], np.int64), wanted[row][0])
        checks.same(np.array(distances[row], np.float64), wanted[row][1])


def test_neighbors_within(spark, rows):
    import vicinal.spark as vs

    same_lists(vs.knn(frame(spark, rows), k=6, **DIVISION), vc.knn(rows, k=6))


def test_neighbors_of_queries(spark, rows, queries):
    import vicinal.spark as vs

    table = frame(spark, rows, wanted=checks.filter_of(rows))
    asked = frame(spark, queries, out=checks.exclude_of(queries))
    found = vs.knn(table, asked, k=5, metric="manhattan", filter="wanted", exclude="out", **DIVISION)
    options = {"filter": checks.filter_of(rows), "exclude": checks.exclude_of(queries)}
    same_lists(found, vc.knn(rows, queries, k=5, metric="manhattan", **options))


def test_arrays_of_float32(spark, rows, queries):
    """One column of arrays, of float32: the type decides the rounding of a copy."""
    import pyarrow as pa

    import vicinal.spark as vs

    table = pa.table(
        {"id": np.arange(len(rows)), "x": pa.array(rows.astype(np.float32).tolist(), pa.list_(pa.float32()))}
    )
    asked = frame(spark, queries.astype(np.float32))
    found = vs.knn(spark.createDataFrame(table), asked, k=4, rows_per_task=250)
    same_lists(found, vc.knn(rows.astype(np.float32), queries.astype(np.float32), k=4))


def test_within_a_radius(spark, rows, queries):
    import vicinal.spark as vs

    table, asked = frame(spark, rows), frame(spark, queries)
    same_lists(vs.radius(table, asked, radius=0.7, **DIVISION), vc.radius(rows, queries, radius=0.7))
    counted = {row["id"]: row["count"] for row in vs.count(table, radius=0.9, **DIVISION).collect()}
    assert [counted[i] for i in range(len(rows))] == vc.count(rows, radius=0.9).counts.tolist()


def test_votes(spark, rows, queries):
    import vicinal.spark as vs

    labels = np.array(["ape", "bee", "cat"])[np.arange(len(rows)) % 3]
    found = vs.classify(frame(spark, rows, label=labels), frame(spark, queries), k=7, weights="distance", **DIVISION)
    got = {row["id"]: row["label"] for row in found.collect()}
    wanted = vc.classify(rows, queries, labels, k=7, weights="distance").labels
    assert [got[i] for i in range(len(queries))] == wanted.tolist()


def test_scores(spark, rows):
    import vicinal.spark as vs

    scores = {row["id"]: row["score"] for row in vs.lof(frame(spark, rows), k=8, **DIVISION).collect()}
    checks.same(np.array([scores[i] for i in range(len(rows))]), vc.lof(rows, k=8).scores)


def test_clusters(spark, rows):
    import vicinal.spark as vs

    weights = np.where(np.arange(len(rows)) % 5 == 0, 0.0, 1.5)
    options = {"clusters": 5, "seed": 3, "max_iterations": 2, "tolerance": 0, "init": "random"}
    model, labels = vs.kmeans(frame(spark, rows, w=weights), weights="w", rows_per_task=250, **options)
    wanted = vc.kmeans(rows, weights=weights, **options)
    checks.same(model.centres, wanted.centres)
    checks.same(model.labels, wanted.labels)
    assert model.inertia == wanted.inertia
    assert {row["id"]: row["label"] for row in labels.collect()} == dict(enumerate(wanted.labels.tolist()))


def test_refusals(spark, rows):
    import vicinal.spark as vs

    table = frame(spark, rows)
    with pytest.raises(vc.InvalidArgument, match="table: ndarray is no DataFrame"):
        vs.knn(rows)
    with pytest.raises(vc.InvalidArgument, match="there is no column 'key'"):
        vs.knn(table, id="key")
    with pytest.raises(
        vc.InvalidArgument, match="column 'id' has numbers from 1 to 400; expected the row numbers 0 to 399"
    ):
        vs.knn(table.where("id > 0"))
    with pytest.raises(vc.InvalidArgument, match="columns: table has no 'y'"):
        vs.knn(table, columns=["y"])
    with pytest.raises(vc.InvalidArgument, match="rows_per_task: is 0"):
        vs.knn(table, rows_per_task=0)
    with pytest.raises(vc.InvalidArgument, match="score: 'ldof' needs"):
        vs.lof(table, score="ldof")
    bad = rows.copy()
    bad[210, 2] = np.nan
    with pytest.raises(Exception, match=r"BadData: rows 150 to 299, queries \d+ to \d+: table: row 210, column 2"):
        vs.knn(frame(spark, bad), frame(spark, rows), k=3, **DIVISION).collect()


@pytest.mark.parametrize("who", ["worker", "executor"])
def test_a_killed_process(spark, rows, queries, mark_folder, monkeypatch, who):
    """A task kills its Python worker, or the executor's JVM; Spark runs the task again."""
    import vicinal.spark as vs

    mark = mark_folder / f"spark-{who}"
    monkeypatch.setattr(vs, "_search", checks.KillingSearch(str(mark), who))
    found = vs.knn(frame(spark, rows), frame(spark, queries), k=5, **DIVISION)
    same_lists(found, vc.knn(rows, queries, k=5))
    assert mark.exists()


def test_the_page(spark, rows, queries, tmp_path):
    """What docs/distributed.md shows."""
    rows = rows[:60]
    classes = np.array(["ape", "bee"])[np.arange(len(rows)) % 2]
    frame(spark, rows, **{"class": classes}).write.parquet(str(tmp_path / "rows"))
    frame(spark, queries).write.parquet(str(tmp_path / "queries"))
    shown = {"spark": spark}
    exec(checks.block_of_docs("Spark").replace('parquet("', f'parquet("{tmp_path}/'), shown)
    same_lists(shown["near"], vc.knn(rows, queries, k=10))
    assert shown["labels"].columns == ["id", "label"]
    checks.same(shown["model"].labels, vc.kmeans(rows, clusters=3, init="random").labels)
    assert shown["scores"].count() == len(rows)

"""vicinal.spark on a local cluster of two executors."""

# ctest: COST 120
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


def pack(columns, marked=None):
    """A block of what a task is given."""
    import pyarrow as pa

    from vicinal import spark as vs

    table = pa.table({"id": np.arange(len(columns["x"])), **columns})
    packing = vs._Packing("id", ("x",), marked, "<f8", len(table), len(table), "table")
    return vs._pack(packing, (pa.scalar(0),), table).to_pylist()[0]


def test_values_that_a_block_refuses(engine_module):
    pa = engine_module("pyarrow")
    for values, sentence in (
        (pa.array([0, 2**53 + 1]), r"^table: row 1, column 'x' is 9007199254740993, beyond 2\^53"),
        (pa.array([[0, 1], [-(2**53) - 1, 0]]), r"^table: row 1, column 'x' is -9007199254740993, beyond"),
        (pa.array([1, 2, None]), "^table: row 2 has a null in column 'x'"),
        (pa.array([[1.0, 2.0], [None, 3.0]]), "^table: row 1 has a null in column 'x'"),
    ):
        with pytest.raises(vc.BadData, match=sentence):
            pack({"x": values})
    with pytest.raises(vc.InvalidArgument, match="^columns: an array of 'x' is null"):
        pack({"x": pa.array([None, [1.0]])})
    assert pack({"x": pa.array([2**53, -(2**53)])})["content"] == np.array([2.0**53, -(2.0**53)]).tobytes()


def test_nulls_of_marked_rows(engine_module):
    pa = engine_module("pyarrow")
    values = pa.array([1.0, 2.0])
    assert pack({"x": values, "out": pa.array([None, 0])}, "out")["marked"] == np.array([-1, 0]).tobytes()
    for marked in (pa.array([True, None]), pa.array([1.5, None])):
        with pytest.raises(vc.BadData, match="^table: row 1 has a null in column 'w'"):
            pack({"x": values, "w": marked}, "w")


def test_columns_of_frames(spark, rows, queries):
    import vicinal.spark as vs

    table = frame(spark, rows)
    more = frame(spark, queries, a=np.full(len(queries), 7.0)).select("a", "x3", "x1", "id", "x2", "x0")
    same_lists(vs.knn(table, more, k=5, **DIVISION), vc.knn(rows, queries, k=5))
    with pytest.raises(vc.InvalidArgument, match="columns: queries has no 'x3'"):
        vs.knn(table, frame(spark, queries[:, :3]))
    with pytest.raises(vc.InvalidArgument, match=r"table: column 'x1' is of type decimal\(10,2\); cast it to double"):
        vs.knn(table.withColumn("x1", table["x1"].cast("decimal(10,2)")))
    arrays = "case when id < 9 then array(x0, x1) else array(x0) end x"
    with pytest.raises(vc.InvalidArgument, match="arrays of 'x' of table are of 1 to 2 numbers; expected one size"):
        vs.knn(table.selectExpr("id", arrays))
    with pytest.raises(vc.InvalidArgument, match="1 arrays of 'x' of table are null"):
        vs.knn(table.selectExpr("id", "case when id > 0 then array(x0, x1) end x"))


def test_a_source_that_changes(spark, rows, queries, tmp_path):
    """A plan that is computed again searches what its source holds now."""
    import vicinal.spark as vs

    path = str(tmp_path / "rows.npy")

    def load(batches):
        import pyarrow as pa

        values = np.load(path)
        for _ in batches:
            columns = {"id": np.arange(len(values)), **{f"x{j}": values[:, j] for j in range(values.shape[1])}}
            yield pa.RecordBatch.from_pydict(columns)

    np.save(path, rows)
    table = spark.range(1, numPartitions=1).mapInArrow(load, "id long, x0 double, x1 double, x2 double, x3 double")
    found = vs.knn(table, frame(spark, queries), k=5)
    for number in range(3):
        changed = np.roll(rows, number, axis=0)
        np.save(path, changed)
        same_lists(found.select("*"), vc.knn(changed, queries, k=5))


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

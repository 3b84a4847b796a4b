"""Searches, votes, outlier scores and k-means of Spark's DataFrames, with the bits of one process
(docs/distributed.md).

A table is a DataFrame with a column of row numbers (`id`): 0 to n - 1, each once, in any order and any partition. Other
columns are the values: columns of numbers, or one column of arrays of numbers. Rows are grouped into blocks by their
number; each task searches a block of queries in a block of rows (by `mapInArrow`), and the parts of a block of queries
are merged where Spark puts them. No table is collected on the driver, which learns the number of rows, the type of the
values, and what is said below. Results are DataFrames, computed when Spark computes them.

Spark runs failed tasks again. `threads` of a task is 1 by default, because Spark runs a task on each of its cores.
Blocks travel as single values, so they must be smaller than 2 GB; `rows_per_task` and `queries_per_task` are 65,536 by
default. Needs pyspark 4 and pyarrow (`vicinal[spark]`).
"""

from __future__ import annotations

import os
import uuid
from functools import partial
from typing import Any, Callable, Iterator, Mapping, NamedTuple, TypedDict, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import DataFrame, functions

from vicinal import _core
from vicinal._clusters import KMeans
from vicinal._errors import BadData, InvalidArgument
from vicinal._neighbors import NeighborGraph
from vicinal._options import ClassifyOptions, KMeansOptions, LofOptions, NearestOptions, RadiusOptions
from vicinal._outliers import lof as lof_of_graph
from vicinal._tables import MAX_EXACT
from vicinal.distributed import _tasks
from vicinal.distributed._clusters import ask_in_turns
from vicinal.distributed._search import split_scores, split_votes
from vicinal.distributed._tasks import Share

__all__ = ["Columns", "classify", "count", "kmeans", "knn", "lof", "radius"]

ROWS_PER_TASK = 65536
MAX_BLOCK_BYTES = (1 << 31) - (1 << 20)
LISTS = "id long, ids array<long>, distances array<double>"
_DECIMALS = ("decimal", "array<decimal")
PACKED = "first_row long, rows long, content binary, marked binary"


class Columns(TypedDict, total=False):
    """Which columns are what, and how work is divided."""

    id: str  #: the column of row numbers, of the table and of queries; default "id"
    columns: list[str]  #: the values; default: all columns of numbers, or arrays of them, but those named otherwise;
    #: of queries those of the table, unless only one of both has arrays
    rows_per_task: int  #: rows of the table in a block; default 65,536
    queries_per_task: int  #: queries in a block; default: as `rows_per_task`


class _KnnOptions(NearestOptions, Columns, total=False):
    pass


class _RadiusOptions(RadiusOptions, Columns, total=False):
    pass


class _ClassifyOptions(ClassifyOptions, Columns, total=False):
    pass


class _LofOptions(LofOptions, Columns, total=False):
    pass


class _KMeansOptions(KMeansOptions, Columns, total=False):
    pass


class _Packing(NamedTuple):
    """How rows become a block."""

    id: str
    columns: tuple[str, ...]
    marked: str | None  #: a column of its own: of bools for rows, of row numbers for queries, of weights for k-means
    dtype: str
    per_block: int
    rows: int  #: of the whole table
    name: str


class _Blocks(NamedTuple):
    frame: DataFrame  #: PACKED
    rows: int
    cols: int
    blocks: int
    dtype: str
    columns: tuple[str, ...]
    has_arrays: bool


# ---- what tasks do ---------------------------------------------------------------------------------------------------


def _pack(packing: _Packing, key: tuple[Any, ...], table: pa.Table) -> pa.Table:
    """The rows of a block in the order of their numbers."""
    first = int(key[0].as_py() if hasattr(key[0], "as_py") else key[0]) * packing.per_block
    ids = table.column(packing.id).combine_chunks().to_numpy(zero_copy_only=False)
    order = np.argsort(ids, kind="stable")
    size = min(packing.per_block, packing.rows - first)
    if len(ids) != size or not np.array_equal(ids[order], np.arange(first, first + size)):
        raise InvalidArgument(
            f"{packing.name}: column {packing.id!r} must have each of the row numbers 0 to {packing.rows - 1} once, "
            f"but not all of {first} to {first + size - 1} are there once"
        )
    parts = [_values(table, name, packing.name, ids) for name in packing.columns]
    values = np.ascontiguousarray(np.concatenate(parts, axis=1)[order])
    content = values.astype(packing.dtype, copy=False).tobytes()
    if len(content) > MAX_BLOCK_BYTES:
        raise InvalidArgument(f"rows_per_task: a block of {size} rows takes {len(content)} bytes; the most are 2 GB")
    marked = None
    if packing.marked is not None:
        marked = _marked(table, packing, ids)[order].tobytes()
    columns = {"first_row": [first], "rows": [size], "content": [content], "marked": [marked]}
    return pa.table(columns, _schema_of(PACKED))


def _marked(table: pa.Table, packing: _Packing, ids: NDArray[Any]) -> NDArray[Any]:
    """The values of the column of its own. A row number that is null excludes nothing; other nulls are refused."""
    column = table.column(packing.marked).combine_chunks()
    if pa.types.is_int64(column.type):
        column = column.fill_null(-1)
    if column.null_count:
        at = int(ids[np.asarray(column.is_null().to_numpy(zero_copy_only=False))].min())
        raise BadData(f"{packing.name}: row {at} has a null in column {packing.marked!r}")
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _values(table: pa.Table, name: str, whose: str, ids: NDArray[Any]) -> NDArray[Any]:
    column = table.column(name).combine_chunks()
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        if column.null_count:
            raise InvalidArgument(f"columns: an array of {name!r} is null")
        width = len(column[0]) if len(column) else 0
        if any(len(row) != width for row in column):
            raise InvalidArgument(f"columns: the arrays of {name!r} are not all of one size")
        flat = column.flatten()
    else:
        width, flat = 1, column
    if flat.null_count:
        at = int(ids[np.flatnonzero(flat.is_null().to_numpy(zero_copy_only=False)) // width].min())
        raise BadData(f"{whose}: row {at} has a null in column {name!r}")
    values = np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(column), width)
    if values.dtype == np.int64:
        beyond = (values > MAX_EXACT) | (values < -MAX_EXACT)
        if beyond.any():
            row, at = np.argwhere(beyond)[0]
            raise BadData(
                f"{whose}: row {ids[row]}, column {name!r} is {values[row, at]}, beyond 2^53, where float64 has not "
                "every whole number"
            )
    return values


_TYPES = {"long": pa.int64(), "binary": pa.binary(), "double": pa.float64(), "int": pa.int32(), "string": pa.string(),
          "array<long>": pa.list_(pa.int64()), "array<double>": pa.list_(pa.float64())}  # fmt: skip


def _schema_of(schema: str) -> pa.Schema:
    return pa.schema([(field.split()[0], _TYPES[field.split()[1]]) for field in schema.split(", ")])


def _block(row: Mapping[str, Any], prefix: str, shape: tuple[str, int], kind: str) -> tuple[Any, Any]:
    """The values of a block, and what is marked in it."""
    values = np.frombuffer(row[f"{prefix}content"], shape[0]).reshape(-1, shape[1])
    marked = row[f"{prefix}marked"]
    return values, None if marked is None else np.frombuffer(marked, kind)


class _Question(NamedTuple):
    """What all tasks of a search have in common."""

    kind: str
    job: str
    is_self: bool
    rows: int
    row_shape: tuple[str, int]
    query_shape: tuple[str, int]
    has_filter: bool
    has_exclude: bool
    options: dict[str, Any]
    share: Share


def _search(asked: _Question, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pairs of blocks to parts. A plan may be computed again when its source has changed, by another stage."""
    context = TaskContext.get()
    job = asked.job if context is None else f"{asked.job}.{context.stageId()}"
    for batch in batches:
        for row in batch.to_pylist():
            table, wanted = _block(row, "r_", asked.row_shape, "?")
            queries, excluded = _block(row, "q_", asked.query_shape, "<i8")
            first, begin = row["r_first_row"], row["q_first_row"]
            place = (first, begin, asked.is_self, asked.rows, 0)
            name = f"rows {first} to {first + len(table) - 1}, queries {begin} to {begin + len(queries) - 1}"
            part = _tasks.named(
                name, _tasks.search, asked.kind, (job, first), table, queries,
                wanted if asked.has_filter else None, excluded if asked.has_exclude else None, None,
                place, asked.options, asked.share, 2,
            )  # fmt: skip
            yield pa.RecordBatch.from_pydict({"query": [begin], "part": [part]}, _schema_of("query long, part binary"))


def _merge(make: Callable[[list[bytes]], dict[str, Any]], schema: str, key: Any, parts: pa.Table) -> pa.Table:
    """The parts of a block of queries to a row for each of them."""
    first = parts.column("query")[0].as_py()
    found = make([part.as_py() for part in parts.column("part")])
    size = len(next(iter(found.values())))
    columns = {"id": np.arange(first, first + size), **found}
    return pa.table(list(map(pa.array, columns.values())), _schema_of(schema))


def _lists(parts: list[bytes]) -> dict[str, Any]:
    offsets, ids, distances = _tasks.lists(parts)
    if offsets is None:
        offsets = np.arange(0, ids.size + 1, ids.shape[1])
    starts = pa.array(offsets.astype(np.int32))
    return {
        "ids": pa.ListArray.from_arrays(starts, pa.array(ids.reshape(-1))),
        "distances": pa.ListArray.from_arrays(starts, pa.array(distances.reshape(-1))),
    }


def _counts(parts: list[bytes]) -> dict[str, Any]:
    return {"count": _tasks.counts(parts)}


def _votes(labels: Any, options: dict[str, Any], parts: list[bytes]) -> dict[str, Any]:
    return {"label": _tasks.voted(parts, labels.value, options)}


def _answer(
    job: str, shape: tuple[str, int], weighted: bool, question: Any, share: Share, most: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """Blocks to answers of k-means."""
    for batch in batches:
        for row in batch.to_pylist():
            table, weights = _block(row, "", shape, "<f8")
            first = row["first_row"]
            name = f"rows {first} to {first + len(table) - 1}"
            answer = _tasks.named(
                name, _tasks.answer, (job, first), table, weights if weighted else None, first, question.value, share,
                most,
            )  # fmt: skip
            columns = {"first_row": [first], "answer": [answer]}
            yield pa.RecordBatch.from_pydict(columns, _schema_of("first_row long, answer binary"))


# ---- what the driver does --------------------------------------------------------------------------------------------


def _of_arrow(function: Callable[..., pa.Table]) -> Callable[[Any, Any], pa.Table]:
    """Spark looks at the names and the number of a function's parameters."""

    def grouped(key: Any, table: Any) -> Any:
        return function(key, table)

    return grouped


def _blocks(
    frame: Any, name: str, given: Mapping[str, Any], per_block: int, marked: str | None, cast: str,
    like: _Blocks | None = None,
) -> _Blocks:  # fmt: skip
    """The blocks of a DataFrame. Unless columns are named, queries have those of the table (`like`)."""
    if not hasattr(frame, "mapInArrow"):
        raise InvalidArgument(f"{name}: {type(frame).__name__} is no DataFrame of Spark")
    id_column = given.get("id") or "id"
    kinds = dict(frame.dtypes)
    if id_column not in kinds:
        raise InvalidArgument(f"{name}: there is no column {id_column!r}; name that of the row numbers (id=)")
    if marked is not None and marked not in kinds:
        raise InvalidArgument(f"{name}: there is no column {marked!r}; there are {', '.join(sorted(kinds))}")
    numbers = {"tinyint": "float64", "smallint": "float64", "int": "float64", "bigint": "float64", "float": "float32",
               "double": "float64"}  # fmt: skip
    numbers |= {f"array<{kind}>": dtype for kind, dtype in numbers.items()}
    left_out = {id_column, marked, *(given.get("_left_out") or ())}
    columns = given.get("columns") or [
        column for column in kinds if column not in left_out and kinds[column] in numbers
    ]
    decimals: list[str] = []
    if given.get("columns"):
        pass
    elif like is not None and like.has_arrays == any(kinds[column].startswith("array") for column in columns):
        columns = list(like.columns)
    else:
        decimals = [column for column in kinds if column not in left_out and kinds[column].startswith(_DECIMALS)]
    if decimals:
        raise InvalidArgument(
            f"{name}: column {decimals[0]!r} is of type {kinds[decimals[0]]}; cast it to double, or name the columns "
            "of values (columns=)"
        )
    for column in columns:
        if column not in kinds:
            raise InvalidArgument(f"columns: {name} has no {column!r}; there are {', '.join(sorted(kinds))}")
        if kinds[column] not in numbers:
            raise InvalidArgument(f"columns: {column!r} is of type {kinds[column]}; expected numbers or arrays of them")
    if not columns:
        raise InvalidArgument(f"{name}: has no columns of numbers beside {id_column!r}")
    dtype = "<f4" if all(numbers[kinds[column]] == "float32" for column in columns) else "<f8"
    arrays = [column for column in columns if kinds[column].startswith("array")]
    sizes = [
        of(column)
        for of in (
            lambda column: functions.min(functions.size(column)),
            lambda column: functions.max(functions.size(column)),
            functions.count,
        )
        for column in arrays
    ]
    least, largest, rows, *told = frame.agg(
        functions.min(id_column), functions.max(id_column), functions.count(functions.lit(1)), *sizes
    ).first()
    if rows == 0:
        raise InvalidArgument(f"{name}: has no rows")
    if least != 0 or largest != rows - 1:
        raise InvalidArgument(
            f"{name}: column {id_column!r} has numbers from {least} to {largest}; expected the row numbers 0 to "
            f"{rows - 1}"
        )
    narrowest, widths, present = (told[i * len(arrays) : (i + 1) * len(arrays)] for i in range(3))
    for column, narrow, wide, known in zip(arrays, narrowest, widths, present, strict=True):
        if known != rows:
            raise InvalidArgument(f"columns: {rows - known} arrays of {column!r} of {name} are null")
        if narrow != wide:
            raise InvalidArgument(
                f"columns: the arrays of {column!r} of {name} are of {narrow} to {wide} numbers; expected one size"
            )
    packing = _Packing(id_column, tuple(columns), marked, dtype, per_block, rows, name)
    wanted = [functions.col(id_column).cast("long").alias(id_column), *columns]
    if marked is not None:
        wanted.append(functions.col(marked).cast(cast).alias(marked))
    count = -(-rows // per_block)
    packed = (
        frame.select(*wanted)
        .groupBy(functions.floor(functions.col(id_column) / per_block).cast("long").alias("block"))
        .applyInArrow(_of_arrow(partial(_pack, packing)), PACKED)
        .repartition(count)
    )
    cols = len(columns) - len(arrays) + sum(widths)
    return _Blocks(packed, rows, cols, count, dtype, tuple(columns), bool(arrays))


def _per_task(given: dict[str, Any], name: str, default: int) -> int:
    value = given.pop(name, None)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidArgument(f"{name}: is {value!r}, must be at least 1")
    return value


def _share(given: dict[str, Any]) -> Share:
    threads, memory = given.pop("threads", None), given.pop("memory_limit", None)
    return Share(len(os.sched_getaffinity(0)), 1 if threads is None else threads, memory)


def _parts(kind: str, table: Any, queries: Any, options: Mapping[str, Any]) -> DataFrame:
    """The parts of a search."""
    given = {name: value for name, value in options.items() if value is not None}
    if "progress" in given:
        raise InvalidArgument("progress: Spark shows progress in its own way")
    wanted, excluded = given.pop("filter", None), given.pop("exclude", None)
    for name, value in (("filter", wanted), ("exclude", excluded)):
        if value is not None and not isinstance(value, str):
            raise InvalidArgument(f"{name}: expected the name of a column")
    if np.ndim(given.get("radius", 0)):
        raise InvalidArgument("radius: expected one number")
    rows_per_task = _per_task(given, "rows_per_task", ROWS_PER_TASK)
    queries_per_task = _per_task(given, "queries_per_task", rows_per_task)
    named = {name: given.pop(name, None) for name in ("id", "columns", "_left_out")}
    others = {column for column in (wanted, excluded) if column is not None}
    named["_left_out"] = {*(named["_left_out"] or ()), *others}
    rows = _blocks(table, "table", named, rows_per_task, wanted, "boolean")
    asked = rows
    if queries is not None or queries_per_task != rows_per_task or wanted is not None or excluded is not None:
        of_queries = table if queries is None else queries
        asked = _blocks(of_queries, "queries", named, queries_per_task, excluded, "long", rows)
    share = _share(given)
    question = _Question(
        kind, uuid.uuid4().hex, queries is None, rows.rows, (rows.dtype, rows.cols), (asked.dtype, asked.cols),
        wanted is not None, excluded is not None, given, share,
    )  # fmt: skip
    left = asked.frame.select(*(functions.col(name).alias(f"q_{name}") for name in asked.frame.columns))
    right = rows.frame.select(*(functions.col(name).alias(f"r_{name}") for name in rows.frame.columns))
    # Not by broadcast, which would collect one of them on the driver.
    pairs = left.join(right.hint("shuffle_replicate_nl"), how="cross")
    return pairs.mapInArrow(partial(_search, question), "query long, part binary")


def _merged(parts: DataFrame, make: Callable[[list[bytes]], dict[str, Any]], schema: str) -> DataFrame:
    return parts.groupBy("query").applyInArrow(_of_arrow(partial(_merge, make, schema)), schema)


def knn(table: DataFrame, queries: DataFrame | None = None, **options: Unpack[_KnnOptions]) -> DataFrame:
    """The k nearest rows of `table` for each row of `queries`, or for each row of the table but itself: a DataFrame of
    `id` (of the query), `ids` and `distances` (arrays of k), with the bits of `vicinal.knn`.

    Keywords are those of `vicinal.knn` but `max_radius` and `progress`, and those of `Columns`; `filter` is the name of
    a column of bools of the table, `exclude` of row numbers of the queries (null or -1: none). Raises InvalidArgument
    for DataFrames without such columns or with other row numbers, after counting the rows (one job for each DataFrame).
    What `vicinal.knn` raises, tasks raise, with the block in front, in Spark's own exception. Each pair of blocks
    travels to the task that searches it: 4 or 8 bytes a value; its part has 16 bytes for each neighbor."""
    return _merged(_parts("knn", table, queries, options), _lists, LISTS)


def radius(table: DataFrame, queries: DataFrame | None = None, **options: Unpack[_RadiusOptions]) -> DataFrame:
    """All rows of `table` within `radius` of each row of `queries`, or of each row of the table but itself: a DataFrame
    of `id`, `ids` and `distances`, with the bits of `vicinal.radius`. As `knn`; `radius` is one number."""
    return _merged(_parts("radius", table, queries, options), _lists, LISTS)


def count(table: DataFrame, queries: DataFrame | None = None, **options: Unpack[_RadiusOptions]) -> DataFrame:
    """How many rows of `table` are within `radius` of each row of `queries`, or of each row of the table but itself: a
    DataFrame of `id` and `count`, with the bits of `vicinal.count`. As `radius`."""
    return _merged(_parts("count", table, queries, options), _counts, "id long, count long")


def classify(
    table: DataFrame, queries: DataFrame, label: str = "label", **options: Unpack[_ClassifyOptions]
) -> DataFrame:
    """The label that the k nearest rows of `table` (or all within `radius`) vote for: a DataFrame of `id` and `label`,
    with the bits of `vicinal.classify(...).labels`. `label` is the table's column of whole numbers or texts, which the
    driver collects, 8 bytes or a text for each row, and sends to all executors. As `knn`; a query without neighbors is
    an error."""
    searched, votes, kind = split_votes(options)
    if votes.pop("probabilities", None):
        raise InvalidArgument("probabilities: vicinal.spark gives labels only")
    if label not in table.columns:
        raise InvalidArgument(f"label: table has no column {label!r}; there are {', '.join(sorted(table.columns))}")
    parts = _parts(kind, table, queries, {**searched, "_left_out": {label}})
    id_column = searched.get("id") or "id"
    told = table.select(functions.col(id_column).cast("long").alias("id"), label).toArrow()
    order = np.argsort(told.column("id").to_numpy())
    labels = np.asarray(told.column(label).to_pylist() if pa.types.is_string(told.schema.field(label).type) else
                        told.column(label).to_numpy())[order]  # fmt: skip
    kind_of_label = "string" if labels.dtype.kind == "U" else "long"
    sent = table.sparkSession.sparkContext.broadcast(labels)
    return _merged(parts, partial(_votes, sent, votes), f"id long, label {kind_of_label}")


def lof(table: DataFrame, **options: Unpack[_LofOptions]) -> DataFrame:
    """The outlier score of each row of `table`: a DataFrame of `id` and `score`, with the bits of
    `vicinal.lof(...).scores`. Tasks find the k neighbors; the driver collects their lists, 16 n k bytes, which it holds
    twice while it sorts them, but no values of the table, and computes the scores at once. Not for "ldof" and "cof",
    `duplicates="distinct"` and `ties="all"`, which need the whole table.
    """
    searched, scored = split_scores(options, Columns.__annotations__, has_rows=False)
    found = knn(table, **searched).toArrow()
    order = np.argsort(found.column("id").to_numpy())
    ids, distances = (
        found.column(name).combine_chunks().flatten().to_numpy().reshape(len(order), -1)[order]
        for name in ("ids", "distances")
    )
    described = {name: scored[name] for name in ("metric", "p") if name in scored}
    graph = NeighborGraph.of(ids, distances, table_rows=len(order), **described)
    scores = np.array(lof_of_graph(graph, **scored).scores)
    return _frame(table, {"id": np.arange(len(scores)), "score": scores})


def kmeans(table: DataFrame, **options: Unpack[_KMeansOptions]) -> tuple[KMeans, DataFrame]:
    """k-means of the rows of `table`, at once, with the bits of `vicinal.kmeans`: the model, and a DataFrame of `id`
    and `label`. `weights` is the name of a column.

    An iteration is one job, with a task for each block (see `vicinal.distributed.kmeans`); the blocks are cached
    meanwhile. The driver collects sums, labels and weights, but no values of the table except those of first centers.
    The default of `init` is "k-means||"; "k-means++" and mini-batches are refused."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    progress = given.pop("progress", None)
    share = _share(given)
    weights = given.pop("weights", None)
    if weights is not None and not isinstance(weights, str):
        raise InvalidArgument("weights: expected the name of a column")
    per_block = _per_task(given, "rows_per_task", ROWS_PER_TASK)
    given.pop("queries_per_task", None)
    named = {name: given.pop(name, None) for name in ("id", "columns")}
    blocks = _blocks(table, "table", named, per_block, weights, "double")
    kept = blocks.frame.persist()
    job = uuid.uuid4().hex
    context = table.sparkSession.sparkContext
    most = min(blocks.blocks, 2 * -(-blocks.blocks // max(context.defaultParallelism, 1)))
    shape = (blocks.dtype, blocks.cols)
    try:
        if weights is not None:
            collected = kept.select("first_row", "marked").toArrow().to_pylist()
            collected.sort(key=lambda row: int(row["first_row"]))
            given["weights"] = np.concatenate([np.frombuffer(row["marked"], "<f8") for row in collected])

        def answers(question: bytes) -> list[bytes]:
            sent = context.broadcast(question)
            try:
                asked = partial(_answer, job, shape, weights is not None, sent, share, most)
                found = kept.mapInArrow(asked, "first_row long, answer binary").toArrow().to_pylist()
            finally:
                sent.destroy()
            return [bytes(row["answer"]) for row in sorted(found, key=lambda row: int(row["first_row"]))]

        sizes = [min(per_block, blocks.rows - first) for first in range(0, blocks.rows, per_block)]
        model = ask_in_turns(sizes, blocks.cols, answers, given, progress)
    finally:
        kept.unpersist()
    labels = np.array(model.labels)
    return model, _frame(table, {"id": np.arange(len(labels)), "label": labels})


def _frame(like: DataFrame, columns: Mapping[str, NDArray[Any]]) -> DataFrame:
    return like.sparkSession.createDataFrame(pa.table(dict(columns)))

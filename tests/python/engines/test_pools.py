"""vicinal.distributed by the pools of the standard library: threads and processes."""

# ctest: COST 40
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import checks
import numpy as np
import pytest

import vicinal as vc
from vicinal import distributed
from vicinal.distributed import _engines, _tasks

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(scope="module")
def threads():
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        list(pool.map(abs, range(4)))
        yield pool


def test_threads(threads, rows, queries):
    checks.check_all(threads, rows, queries)


def test_processes(processes, rows, queries):
    checks.check_all(processes, rows, queries)


def test_default_division(threads, processes, rows):
    for executor in (threads, processes):
        checks.same_graph(distributed.knn(rows, executor=executor, k=3), vc.knn(rows, k=3))
        got = distributed.kmeans(rows, executor=executor, clusters=4, seed=2)
        checks.same(got.labels, vc.kmeans(rows, clusters=4, seed=2, init="k-means||").labels)


@pytest.mark.parametrize("init", ["k-means||", "random", "first-k"])
def test_kmeans_to_the_end(processes, rows, init):
    options = {"clusters": 8, "init": init, "runs": 2, "seed": 4, "history": True}
    got, wanted = distributed.kmeans(rows, executor=processes, **options), vc.kmeans(rows, **options)
    for name in ("centres", "labels", "sizes", "history"):
        checks.same(getattr(got, name), getattr(wanted, name))
    assert (got.inertia, got.iterations, got.stopped) == (wanted.inertia, wanted.iterations, wanted.stopped)


@pytest.mark.parametrize("cut", [1, 7, 400, 401, 1000])
def test_any_cut(threads, rows, queries, cut):
    wanted = vc.knn(rows[:30] if cut == 1 else rows, queries, k=8)
    table = rows[:30] if cut == 1 else rows
    division = {"rows_per_task": cut, "queries_per_task": cut + 3}
    checks.same_graph(distributed.knn(table, queries, executor=threads, k=8, **division), wanted)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int32", "bool"])
def test_types(processes, dtype, queries):
    table = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 200, size=(90, 4)).astype(dtype)
    got = distributed.knn(table, queries, executor=processes, k=4, rows_per_task=40)
    checks.same_graph(got, vc.knn(table, queries, k=4))


@pytest.mark.parametrize("metric", ["inner_product", "cosine", "chebyshev", "minkowski", "hamming"])
def test_metrics(threads, metric, rows, queries):
    options = {"k": 6, "metric": metric, "p": 1.5}
    got = distributed.knn(rows, queries, executor=threads, **options, **checks.DIVISION)
    checks.same_graph(got, vc.knn(rows, queries, **options))


def test_paths(processes, rows, queries, tmp_path):
    """Workers open the file: no array travels, of .npy files or others."""
    np.save(tmp_path / "rows.npy", rows)
    vc.write(tmp_path / "rows.csv", rows)
    for path in (tmp_path / "rows.npy", str(tmp_path / "rows.csv")):
        checks.same_graph(
            distributed.knn(path, executor=processes, k=5, **checks.DIVISION, folder="/nowhere"), vc.knn(rows, k=5)
        )
        checks.same(distributed.lof(path, executor=processes, score="ldof").scores, vc.lof(rows, score="ldof").scores)
    got = distributed.kmeans(str(tmp_path / "rows.npy"), executor=processes, clusters=4, init="first-k")
    checks.same(got.centres, vc.kmeans(rows, clusters=4, init="first-k").centres)


def test_a_changed_file_is_read_again(processes, rows, tmp_path):
    path = tmp_path / "rows.npy"
    for table in (rows, rows[::-1].copy()):
        np.save(path, table)
        checks.same_graph(distributed.knn(path, executor=processes, k=3, workers=2), vc.knn(table, k=3))


class Counting:
    """An executor that counts the bytes of answers."""

    def __init__(self, executor):
        self._executor, self.answers, self.arguments = executor, [], []

    def __getattr__(self, name):
        return getattr(self._executor, name)

    def submit(self, function, *arguments):
        import pickle

        self.arguments.append(len(pickle.dumps((function, arguments))))
        future = self._executor.submit(function, *arguments)
        self.answers.append(future)
        return future

    def sizes(self):
        """Of all answers; a callback of a future may run after the call that waited for it."""
        return [len(future.result()) for future in self.answers]


def test_bytes_of_tasks(tmp_path):
    """docs/distributed.md: 16 bytes for each neighbor and about 1 kB a task; of k-means as its docstring says."""
    draw = np.random.default_rng(2).normal(size=(4000, 8))
    np.save(tmp_path / "rows.npy", draw)
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        counting = Counting(pool)
        distributed.knn(tmp_path / "rows.npy", executor=counting, k=10, rows_per_task=2000, queries_per_task=1000)
        assert len(counting.answers) == 8
        assert all(0 <= size - 16 * 1000 * 10 <= 2048 for size in counting.sizes())
        assert max(counting.arguments) < 2048
        counting = Counting(pool)
        distributed.count(tmp_path / "rows.npy", executor=counting, radius=1.0, queries_per_task=1000)
        assert all(0 <= size - 8 * 1000 <= 2048 for size in counting.sizes())
        counting = Counting(pool)
        found = distributed.kmeans(
            tmp_path / "rows.npy", executor=counting, clusters=10, init="first-k", rows_per_task=2000
        )
        # One round an iteration; and ranges, the variance (two), the rows of the first centers, the labels by the last
        # centers, and the inertia.
        assert found.stopped == "shift" and len(counting.answers) == 2 * (found.iterations + 6)
        # Three counters, integers of the clusters in as many limbs as the values need, and labels of a byte.
        assert max(counting.sizes()) in {24 + 8 + 8 * 10 * (1 + 8 * limbs) + 8 + 2000 for limbs in (3, 4, 5)}
        assert max(counting.arguments) <= 2 * 8 * 10 * 8 + 24 * 8 + 4096


def test_a_task_has_its_share():
    cores = len(os.sched_getaffinity(0))
    assert _tasks.Share(2, None, None).keywords()["threads"] == max(cores // 2, 1)
    limit = _tasks.Share(1, None, None).keywords()["memory_limit"]
    assert _tasks.Share(4, None, None).keywords()["memory_limit"] < limit / 2
    assert _tasks.Share(4, 3, 1000).keywords() == {"threads": 3, "memory_limit": 1000}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {"device": "cpu"}),
        ({"device": "auto"}, {"device": "cpu"}),
        ({"device": "cpu", "device_memory_limit": 1 << 20}, {"device": "cpu", "device_memory_limit": 1 << 20}),
    ],
)
def test_a_block_is_indexed_where_it_is_searched(threads, rows, monkeypatch, given, wanted):
    """On the CPU unless a device is named, also on a host with a GPU."""
    told = []

    def index(table, **options):
        told.append(options)
        return vc.Index(table, **options)

    monkeypatch.setattr(_tasks, "Index", index)
    distributed.knn(rows, executor=threads, k=3, **given)
    assert told
    for options in told:
        assert {name: value for name, value in options.items() if name not in ("threads", "memory_limit")} == wanted


def test_progress(threads, rows):
    told = []
    distributed.knn(rows, executor=threads, k=3, queries_per_task=100, progress=lambda *what: told.append(what))
    assert told == [("search", number / 5) for number in range(1, 6)]
    told.clear()
    distributed.kmeans(rows, executor=threads, clusters=3, progress=lambda *what: told.append(what))
    assert told and {stage for stage, _ in told} <= {"seed", "iterate"}


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_sentences_name_the_block(threads, processes, rows):
    bad = rows.copy()
    bad[210, 2] = np.nan
    for executor in (threads, processes):
        with pytest.raises(vc.BadData, match=r"^rows 150 to 299, queries \d+ to \d+: table: row 210, column 2"):
            distributed.knn(bad, rows, executor=executor, k=3, **checks.DIVISION)
        with pytest.raises(vc.BadData, match=r"^rows 150 to 299: table: row 210, column 2"):
            distributed.kmeans(bad, executor=executor, clusters=3, rows_per_task=150)
    with pytest.raises(vc.OverMemory, match=r"^rows \d+ to \d+, queries \d+ to \d+: "):
        distributed.knn(rows, executor=threads, k=3, memory_limit=100, **checks.DIVISION)


def masked(values):
    return np.ma.masked_equal(values, values.flat[0])


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (
            lambda rows, pool: distributed.knn(rows, executor=None),
            vc.InvalidArgument,
            "executor: NoneType has no submit",
        ),
        (lambda rows, pool: distributed.knn(rows, executor=pool, k=500), vc.InvalidArgument, "k: is 500"),
        (lambda rows, pool: distributed.knn(rows, executor=pool, kk=5), TypeError, "did you mean 'k'"),
        (
            lambda rows, pool: distributed.knn(rows, executor=pool, max_radius=1.0),
            vc.InvalidArgument,
            "max_radius: leaves",
        ),
        (
            lambda rows, pool: distributed.knn(rows, executor=pool, rows_per_task=0),
            vc.InvalidArgument,
            "rows_per_task: is 0",
        ),
        (lambda rows, pool: distributed.knn(rows, executor=pool, workers=0), vc.InvalidArgument, "workers: is 0"),
        (lambda rows, pool: distributed.knn(masked(rows), executor=pool), vc.InvalidArgument, "^table: a masked array"),
        (
            lambda rows, pool: distributed.knn(rows, masked(rows), executor=pool),
            vc.InvalidArgument,
            "^queries: a masked",
        ),
        (
            lambda rows, pool: distributed.knn(rows, executor=pool, exclude=masked(np.arange(401))),
            vc.InvalidArgument,
            "exclude: a masked",
        ),
        (
            lambda rows, pool: distributed.kmeans(rows, executor=pool, weights=masked(np.ones(401))),
            vc.InvalidArgument,
            "weights: a masked",
        ),
        (lambda rows, pool: distributed.knn(rows[0], executor=pool), vc.InvalidArgument, "table: 1 dimensions"),
        (lambda rows, pool: distributed.knn(rows[:0], executor=pool), vc.InvalidArgument, "table: has no rows"),
        (lambda rows, pool: distributed.knn("/nowhere.npy", executor=pool), OSError, "nowhere"),
        (
            lambda rows, pool: distributed.knn(rows, rows[:, :2], executor=pool),
            vc.InvalidArgument,
            "queries: 2 columns, but the table has 4",
        ),
        (
            lambda rows, pool: distributed.knn(rows, executor=pool, filter=[True]),
            vc.InvalidArgument,
            r"filter: has shape \[1\]",
        ),
        (lambda rows, pool: distributed.knn(rows, executor=pool, filter=np.ones(401)), vc.InvalidArgument, "of bools"),
        (
            lambda rows, pool: distributed.radius(rows, executor=pool, radius=[1.0]),
            vc.InvalidArgument,
            "radius: has shape",
        ),
        (lambda rows, pool: distributed.lof(rows, executor=pool, ties="all"), vc.InvalidArgument, "ties: 'all' needs"),
        (
            lambda rows, pool: distributed.lof(rows, executor=pool, duplicates="distinct"),
            vc.InvalidArgument,
            "duplicates",
        ),
        (
            lambda rows, pool: distributed.kmeans(rows, executor=pool, init="k-means++"),
            vc.InvalidArgument,
            r"use k-means\|\|",
        ),
        (lambda rows, pool: distributed.kmeans(rows, executor=pool, batch_size=9), vc.InvalidArgument, "mini-batches"),
        (
            lambda rows, pool: distributed.kmeans(rows, executor=pool, weights=[1.0]),
            vc.InvalidArgument,
            "weights: has shape",
        ),
        (lambda rows, pool: distributed.kmeans(rows, executor=pool, clusters=402), vc.InvalidArgument, "only 401 rows"),
        (lambda rows, pool: distributed.classify(rows, rows, [1], executor=pool), vc.InvalidArgument, "labels"),
    ],
)
def test_refusals(threads, rows, call, error, sentence):
    with pytest.raises(error, match=sentence):
        call(rows, threads)


class Failing:
    """An executor whose tasks raise what is no error of vicinal's, or never end."""

    def __init__(self, error=None):
        self._error = error
        self.futures = []

    def submit(self, function, *arguments):
        future = Future()
        self.futures.append(future)
        if self._error is not None:
            future.set_exception(self._error)
        return future


def test_other_errors_of_tasks(rows):
    with pytest.raises(
        distributed.TaskFailed, match="^rows 0 to 149, queries 0 to 169: ZeroDivisionError: no"
    ) as caught:
        distributed.knn(rows, executor=Failing(ZeroDivisionError("no")), k=3, **checks.DIVISION)
    assert isinstance(caught.value.__cause__, ZeroDivisionError) and isinstance(caught.value, vc.Error)


def test_a_stall_ends_and_cancels(rows):
    engine = Failing()
    with pytest.raises(
        distributed.TaskFailed, match=r"no task has ended for 0.5 seconds; 9 are pending, among them rows 0"
    ):
        distributed.knn(rows, executor=engine, k=3, workers=9, stall_limit=0.5, **checks.DIVISION)
    assert len(engine.futures) == 9 and all(future.cancelled() for future in engine.futures)


def test_an_error_cancels_what_has_not_begun(rows):
    class One(Failing):
        def submit(self, function, *arguments):
            future = super().submit(function, *arguments)
            if len(self.futures) == 3:
                future.set_exception(vc.BadData("bad"))
            return future

    engine = One()
    with pytest.raises(vc.BadData, match="bad"):
        distributed.knn(rows, executor=engine, k=3, workers=9, **checks.DIVISION)
    assert sum(future.cancelled() for future in engine.futures) == 8


# ---- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [1, 4, 9])
def test_a_killed_process(rows, mark_folder, at):
    wanted = vc.knn(rows, k=5)
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        killing = Killing(pool, mark_folder / f"knn{at}", at)
        checks.same_graph(distributed.knn(rows, executor=killing.pool, k=5, **checks.DIVISION), wanted)
        assert killing.mark.exists()


def test_a_killed_process_in_kmeans(rows, mark_folder):
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        killing = Killing(pool, mark_folder / "kmeans", 8)
        got = distributed.kmeans(rows, executor=killing.pool, clusters=6, init="random", rows_per_task=150)
        assert killing.mark.exists()
    wanted = vc.kmeans(rows, clusters=6, init="random")
    checks.same(got.labels, wanted.labels)
    checks.same(got.centres, wanted.centres)


class Killing:
    """Replaces a pool's `submit`: its `at`-th task kills its process, once."""

    def __init__(self, pool, mark, at):
        self.pool, self.mark = pool, mark
        submit, count = pool.submit, [0]

        def replaced(function, *arguments):
            count[0] += 1
            if count[0] == at:
                return submit(checks.die_once, str(mark), False, function, *arguments)
            return submit(function, *arguments)

        pool.submit = replaced


def test_a_process_that_dies_each_time(rows, monkeypatch, mark_folder):
    """Three new pools, and then one sentence."""
    real = ProcessPoolExecutor.submit

    def deadly(self, function, *arguments):
        return real(self, checks.die_once, "", True, function, *arguments)

    monkeypatch.setattr(ProcessPoolExecutor, "submit", deadly)
    made = []
    renew = _engines.Processes.renew
    monkeypatch.setattr(_engines.Processes, "renew", lambda self: (made.append(1), renew(self)))
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        with pytest.raises(
            distributed.TaskFailed, match=r"^rows 0 to 149, queries 0 to 169: its worker was lost 4 times"
        ):
            distributed.knn(rows, executor=pool, k=3, **checks.DIVISION)
    assert len(made) == 3


def test_a_worker_keeps_one_job():
    """What it keeps of a job is dropped when it hears of another one, but not by turns."""
    keeper = _tasks._Keeper()
    for job, kept in (("a", ["a"]), ("b", ["b"]), ("a", ["b", "a"])):
        keeper.get((job, 0), 9, list)
        assert list(keeper._kept) == [(name, 0) for name in kept]


def test_a_removed_file_is_closed(rows, tmp_path):
    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / name, rows)
    _tasks.opened(str(tmp_path / "a.npy"))
    (tmp_path / "a.npy").unlink()
    _tasks.opened(str(tmp_path / "b.npy"))
    np.save(tmp_path / "b.npy", rows[:9])
    assert len(_tasks.opened(str(tmp_path / "b.npy"))) == 9
    kept = [key[1] for key in _tasks._FILES._kept if key[1].startswith(str(tmp_path))]
    assert kept == [str(tmp_path / "b.npy")]


class Losing:
    """An executor that runs tasks at once, but loses those for which `is_lost` is true of (number of the submission,
    arguments)."""

    def __init__(self, is_lost):
        self._is_lost, self._submitted = is_lost, 0

    def submit(self, function, *arguments):
        self._submitted += 1
        future = Future()
        if self._is_lost(self._submitted, arguments):
            future.set_exception(BrokenExecutor("gone"))
        else:
            future.set_result(function(*arguments))
        return future


def some_tasks(count):
    return [lambda number=number: _engines.Task(abs, (-number,), f"task {number}") for number in range(count)]


def test_losses_count_for_each_task():
    """More tasks are lost than one of them may be."""
    lost = set()

    def is_lost(_, arguments):
        first = arguments not in lost
        lost.add(arguments)
        return first

    engine = _engines.Engine(Losing(is_lost), 1, None)
    assert dict(_engines.run(engine, some_tasks(30), stage="")) == {number: number for number in range(30)}


def test_the_lost_task_is_named():
    engine = _engines.Engine(Losing(lambda _, arguments: arguments == (-5,)), 1, None)
    with pytest.raises(distributed.TaskFailed, match="^task 5: its worker was lost 4 times"):
        list(_engines.run(engine, some_tasks(9), stage=""))


class Storing(Losing):
    """One that also stores values, of which the first ones are lost."""

    num_workers = 2

    def __init__(self):
        super().__init__(lambda _, arguments: any(value == ("lost",) for value in arguments if type(value) is tuple))
        self._stored = 0

    def put(self, value):
        self._stored += 1
        return ("lost",) if self._stored <= 3 else value

    def is_loss(self, error):
        return False


def test_lost_values_are_stored_again(rows):
    checks.same_graph(distributed.knn(rows, executor=Storing(), k=5, **checks.DIVISION), vc.knn(rows, k=5))


def test_time_of_the_caller_is_no_stall():
    class Manual:
        def __init__(self):
            self.futures = []

        def submit(self, function, *arguments):
            self.futures.append(Future())
            return self.futures[-1]

    manual = Manual()
    results = _engines.run(_engines.Engine(manual, 2, None), some_tasks(2), stage="", stall_limit=0.5)
    timer = threading.Timer(0.1, lambda: manual.futures[0].set_result("first"))
    timer.start()
    assert next(results) == (0, "first")
    time.sleep(0.7)
    threading.Timer(0.1, lambda: manual.futures[1].set_result("second")).start()
    assert list(results) == [(1, "second")]


def test_a_stall_does_not_wait_for_the_pool():
    """The processes of the pool that took the place of a broken one are ended."""
    with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        engine = _engines.Processes(pool, 1, None)
        engine.renew()
        assert engine.submit(abs, -1).result() == 1
        (process,) = engine.executor._processes.values()
        engine.submit(time.sleep, 600)
        engine.close(failed=True)
        # The pool's own thread may wait for the process, too; then its code is known a moment after `join` returns.
        ends = time.monotonic() + 20
        while process.exitcode is None and time.monotonic() < ends:
            process.join(0.1)
            time.sleep(0.01)
        assert process.exitcode is not None


def test_a_submit_without_futures(rows):
    """Dask's Client gives futures of its own kind."""

    class Client:
        def submit(self, function, *arguments):
            return object()

    with pytest.raises(vc.InvalidArgument, match=r"submit gives a builtins.object; .* client.get_executor\(\)"):
        distributed.knn(rows, executor=Client(), k=3)


PROGRAM = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np
import slow
from vicinal import distributed

if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(abs, range(4)))
        submit = pool.submit
        def replaced(function, *arguments):
            print("begun", flush=True)
            return submit(slow.slow, function, *arguments)
        pool.submit = replaced
        try:
            distributed.knn(np.zeros((1000, 3)), executor=pool, k=3, queries_per_task=1)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
"""


def test_ctrl_c_cancels(tmp_path):
    """1,000 tasks of a second: those that have not begun never do."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "slow.py").write_text(
        "import time\ndef slow(function, *arguments):\n    time.sleep(1)\n    return function(*arguments)\n"
    )
    program = subprocess.Popen([sys.executable, "program.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "begun\n"
    time.sleep(0.5)
    program.send_signal(signal.SIGINT)
    started = time.monotonic()
    rest, _ = program.communicate(timeout=20)
    assert rest.endswith("interrupted\n") and program.returncode == 0
    assert time.monotonic() - started < 15


def test_nothing_is_left(rows, processes, threads, tmp_path):
    """Neither files, nor threads, nor what workers of this process kept."""
    before = threading.active_count()
    folder = tmp_path / "held"
    folder.mkdir()
    distributed.knn(rows, executor=processes, k=3, folder=str(folder))
    distributed.kmeans(rows, executor=processes, clusters=3, folder=str(folder))
    with pytest.raises(vc.InvalidArgument):
        distributed.knn(rows, executor=processes, k=500, folder=str(folder))
    assert not list(pathlib.Path(folder).iterdir())
    distributed.kmeans(rows, executor=threads, clusters=3)
    distributed.knn(rows, executor=threads, k=3)
    assert not _tasks._INDEXES._kept and not _tasks._SHARDS._kept
    assert threading.active_count() <= before + 2  # the pool's own

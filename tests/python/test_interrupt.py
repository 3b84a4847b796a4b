"""Ctrl-C stops every stage and is KeyboardInterrupt; what a signal handler raises ends the call; nothing else is hurt.

The promise is 100 ms; LIMIT leaves room for machines that are busy with other tests."""
# It measures how soon a process stops, which a busy machine would make meaningless.
# ctest: RUN_SERIAL ON

import signal
import threading
import time

import numpy as np
import pytest

import vicinal as vc

LIMIT = 5.0
SLOW = {"metric": "minkowski", "p": 3.5, "threads": 1}


def table(rows=60000, cols=64):
    return np.random.default_rng(0).normal(size=(rows, cols)).astype(np.float32)


def many_pairs(count):
    """A map of squares of which each lies on many others."""
    corners = np.random.default_rng(0).uniform(0, 3, (count, 2))
    return vc.Polygons.of([[[[(x, y), (x + 5, y), (x + 5, y + 5), (x, y + 5)]]] for x, y in corners])


def steps():
    rows = table()
    steps = vc.KMeansSteps(rows, clusters=4000, threads=1)
    while True:
        steps.start(rows[:4000])
        steps.assign()
        steps.means()


MAP = many_pairs(9000)
CALLS = {
    "knn": lambda: vc.knn(table(), k=10, **SLOW),
    "radius": lambda: vc.radius(table(), radius=1.0, **SLOW),
    "index": lambda: vc.Index(table()).knn(k=10, **SLOW),
    "lof": lambda: vc.lof(table(), k=10, **SLOW),
    "kmeans": lambda: vc.kmeans(table(), clusters=4000, runs=100, threads=1),
    "steps": steps,
    "cross_validate": lambda: vc.cross_validate(table(), np.arange(60000) % 3, **SLOW),
    "lle search": lambda: vc.lle(table(), **SLOW),
    "lle dense": lambda: vc.lle(table(2500, 8), solver="dense", threads=1),
    "lle direct": lambda: vc.lle(table(60000, 4), solver="direct", threads=1),
    "lle lanczos": lambda: vc.lle(table(20000, 8), solver="lanczos", threads=1),
    "spanning tree": lambda: vc.minimum_spanning_tree(table(), min_samples=10, **SLOW),
    "hdbscan": lambda: vc.hdbscan(table(), **SLOW),
    "dbscan": lambda: vc.dbscan(table(), eps=1.0, **SLOW),
    "optics": lambda: vc.optics(table(), **SLOW),
    "match": lambda: vc.match(MAP, MAP, threads=1),
    "cocluster": lambda: vc.cocluster(np.arange(4000), np.arange(4000), method="product_serial"),
    "progress": lambda: vc.knn(table(), k=10, progress=lambda stage, fraction: None, **SLOW),
}


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c(name):
    sent = []

    def send():
        sent.append(time.monotonic())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    timer = threading.Timer(0.4, send)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        CALLS[name]()
    waited = time.monotonic() - sent[0]
    timer.join()
    assert waited < LIMIT, waited
    # The next call has a context of its own.
    assert vc.knn(np.arange(4.0).reshape(4, 1), k=1).ids.tolist() == [[1], [0], [1], [2]]


ROLL = vc.generate("swiss_roll", rows=20000, seed=1).points
#: Stage of lle: options with which it is reached.
LLE_STAGES = {
    "search": {},
    "weights": {},
    "weights modified": {"variant": "modified"},
    "weights hessian": {"variant": "hessian"},
    "weights ltsa": {"variant": "ltsa"},
    "order": {"solver": "direct"},
    "factor": {"solver": "direct"},
    "solve": {"solver": "direct"},
    "lanczos": {"solver": "lanczos"},
    "arnoldi": {"solver": "arnoldi"},
}


def embed_until(name, reached):
    """Embeds; `reached` is called when the stage begins, on another thread."""
    stage, told = name.split()[0], []

    def progress(now, fraction):
        if now == stage and not told:
            told.append(now)
            reached()

    vc.lle(ROLL, k=12, threads=1, progress=progress, **LLE_STAGES[name])


@pytest.mark.parametrize("name", LLE_STAGES)
def test_ctrl_c_in_a_stage_of_lle(name):
    sent = []

    def send():
        sent.append(time.monotonic())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        embed_until(name, send)
    assert time.monotonic() - sent[0] < LIMIT


def test_a_handler_that_raises():
    def handler(number, frame):
        raise TimeoutError("time is up")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(TimeoutError, match="time is up"):
            vc.knn(table(), k=10, **SLOW)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_handler_that_returns_runs_and_the_call_goes_on():
    seen = []

    def handler(number, frame):
        # A handler may call the library while a call waits.
        seen.append(vc.knn(np.arange(4.0).reshape(4, 1), k=1).ids[3, 0])

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        graph = vc.knn(table(400), k=3, **SLOW)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert seen == [2] and graph.ids.shape == (400, 3)


def test_ctrl_c_of_one_call_leaves_others_alone():
    rows = table(400)
    told = []
    other = threading.Thread(target=lambda: told.append(vc.knn(rows, k=3, **SLOW).rows))
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))
    other.start()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        vc.knn(table(), k=10, **SLOW)
    other.join()
    assert told == [400]

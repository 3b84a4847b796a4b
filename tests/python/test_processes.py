"""Threads, forked and spawned processes, and memory over many calls."""

import concurrent.futures
import gc
import multiprocessing
import os
import pickle
import threading
import time

import numpy as np
import pytest
from conftest import resident, same

import vicinal as vc

TABLE = np.random.default_rng(0).normal(size=(2000, 8))
EXPECTED = vc.knn(TABLE, k=3).ids


def ids_of(seed):
    """What a child answers."""
    return vc.knn(TABLE, k=3, threads=2).ids


def test_threads_on_one_index():
    index = vc.Index(TABLE)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: index.knn(k=3, threads=2).ids, range(40)):
            same(found, EXPECTED)


def test_other_threads_run_meanwhile():
    """The GIL is released: this thread counts while another computes."""
    rows = np.random.default_rng(0).normal(size=(400, 48))
    counted = 0
    done = threading.Event()

    def compute():
        vc.knn(rows, k=3, metric="minkowski", p=3.5, threads=1)
        done.set()

    thread = threading.Thread(target=compute)
    thread.start()
    while not done.is_set():
        counted += 1
        time.sleep(0.001)
    thread.join()
    assert counted > 20


def test_fork_while_another_thread_computes():
    rows = np.random.default_rng(0).normal(size=(400, 48))
    thread = threading.Thread(target=lambda: vc.knn(rows, k=3, metric="minkowski", p=3.5))
    thread.start()
    time.sleep(0.05)
    pid = os.fork()
    if pid == 0:
        # pytest is not of this process' business.
        try:
            os._exit(0 if np.array_equal(ids_of(0), EXPECTED) else 1)
        finally:
            os._exit(2)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_processes(how):
    ids_of(0)
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context(how)) as pool:
        for found in pool.map(ids_of, range(4)):
            same(found, EXPECTED)


def test_threads_obey_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert vc.knn(TABLE, k=3).plan.threads == 1
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert vc.knn(TABLE, k=3, threads=1).plan.threads == 1
    monkeypatch.setenv("VICINAL_ISA", "baseline")
    assert vc.knn(TABLE, k=3).plan.isa == "baseline"


def tables():
    """Tables that are copied or read by blocks."""
    made = [pytest.importorskip("scipy.sparse").csr_array(TABLE[:200])]
    try:
        import pandas
        import pyarrow
    except ImportError:
        return made
    made.append(pandas.DataFrame(TABLE[:200]).astype({0: np.float32}))
    made.append(pyarrow.table([pyarrow.array(TABLE[:200, at]) for at in range(8)], names=list("abcdefgh")))
    return made


def calls(others):
    small = TABLE[:200]
    labels = np.arange(200) % 3
    graph = vc.knn(small, k=3)
    index = vc.Index(small, copy=True)
    index.knn(small[:5].astype(int), k=2)
    vc.vote(graph, labels, weights=lambda distances: distances + 1, probabilities=True).labels
    vc.lof(index, k=3, novelty=True)
    vc.kmeans(small, clusters=3)
    vc.radius(small, radius=1.0)
    pickle.loads(pickle.dumps(graph))
    vc.NeighborModel.fit(small, labels, k=3, scaling="standard").predict(small[:5])
    pickle.loads(pickle.dumps(vc.lof(small, k=3)))
    for other in others:
        vc.knn(other, k=3)
    for bad in (small.astype(object), small[0], small.tolist()[0]):
        with pytest.raises(vc.Error):
            vc.knn(bad)
    with pytest.raises(TypeError):
        vc.knn(small, kay=3)


def test_nothing_leaks():
    """1,000 calls: what one call leaves behind would be 1,000 times as much. 200 rows are 12.8 kB."""
    others = tables()
    for _ in range(20):
        calls(others)
    gc.collect()
    before = resident()
    for _ in range(110):
        calls(others)
    gc.collect()
    assert resident() - before < 6e6

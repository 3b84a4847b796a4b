"""Peak memory of a search: at most input + output + 256 MB (contract clause 7), on a table that would need a 16 GB matrix."""

import os

import numpy as np


def test_peak_memory(command, tmp_path):
    rows, queries, columns, k = 200_000, 20_000, 128, 32
    generator = np.random.default_rng(0)
    np.save(tmp_path / "table.npy", generator.random((rows, columns), np.float32))
    np.save(tmp_path / "queries.npy", generator.random((queries, columns), np.float32))
    arguments = [command, "knn", "table.npy", "queries.npy", "-k", str(k), "-o", "graph.npz", "-q"]
    # wait4 measures this child alone; what it shares with its parent before exec is below what it needs afterwards.
    pid = os.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(command, arguments)
    _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    needed = (rows + queries) * columns * 4 + queries * k * 16
    assert usage.ru_maxrss * 1024 <= needed + 256_000_000
    assert np.load(tmp_path / "graph.npz")["ids"].shape == (queries, k)

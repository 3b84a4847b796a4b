"""Ctrl-C and a polite kill: exit code 130 in a moment, one sentence, nothing left in the folder."""

import os
import signal
import subprocess
import time

import numpy as np
import pytest


def start(command, folder, arguments=("knn", "-o", "out.npz")):
    """A search that takes far longer than this test, one thread."""
    name, *rest = arguments
    return subprocess.Popen(
        [command, name, "table.npy", "-k", "10", "--metric", "minkowski", "--p", "3.5", "--threads", "1", *rest],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "arguments",
    [
        ("knn", "-o", "out.npz"),
        ("lof", "-o", "out.csv", "--save-model", "model.vlof", "--report", "report.html"),
        ("lle", "-o", "out.csv", "--save-model", "model.vlle", "--report", "report.html"),
        ("regress", "--targets", "table.npy", "--cv", "5", "--save-model", "model.vnm"),
    ],
)
def test_interrupt(command, tmp_path, sent, arguments):
    np.save(tmp_path / "table.npy", np.random.default_rng(0).normal(size=(60000, 64)).astype(np.float32))
    running = start(command, tmp_path, arguments)
    time.sleep(1.5)
    assert running.poll() is None, running.communicate()
    begin = time.monotonic()
    running.send_signal(sent)
    stdout, stderr = running.communicate(timeout=60)
    waited = time.monotonic() - begin
    assert running.returncode == 130, stderr
    assert stdout == "" and stderr.count("\n") == 1
    # The promise is 100 ms; the rest is for machines that are busy with other tests.
    assert waited < 5
    assert [path.name for path in tmp_path.iterdir()] == ["table.npy"]


def test_interrupt_of_a_graph(command, tmp_path):
    (tmp_path / "edges.csv").write_text("".join(f"{i},{i + j}\n" for i in range(4000) for j in (0, 1)))
    running = subprocess.Popen(
        [command, "cocluster", "edges.csv", "--no-header", "--method", "product_serial", "-o", "groups.csv"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(1.5)
    assert running.poll() is None, running.communicate()
    begin = time.monotonic()
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=60)
    assert time.monotonic() - begin < 5
    assert running.returncode == 130, stderr
    assert stdout == "" and stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]


def test_a_file_that_shrinks_is_an_error(command, tmp_path):
    np.save(tmp_path / "table.npy", np.random.default_rng(0).normal(size=(60000, 64)))
    running = start(command, tmp_path)
    time.sleep(1.5)
    assert running.poll() is None, running.communicate()
    os.truncate(tmp_path / "table.npy", 4096)
    stdout, stderr = running.communicate(timeout=60)
    assert running.returncode == 3, (running.returncode, stderr)
    assert stderr.endswith("vicinal: error: a file shrank while it was read\n")
    assert os.listdir(tmp_path) == ["table.npy"]


def test_second_interrupt_ends_at_once(command, tmp_path):
    np.save(tmp_path / "table.npy", np.random.default_rng(0).normal(size=(60000, 64)).astype(np.float32))
    running = start(command, tmp_path)
    time.sleep(1)
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert [path.name for path in tmp_path.iterdir()] == ["table.npy"]

"""Ctrl-C and a polite kill: exit code 130 in a moment, one sentence, nothing left in the folder."""
# It measures how soon a process stops, which a busy machine would make meaningless.
# ctest: RUN_SERIAL ON

import json
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


SHRANK = "it shrank while it was read"


@pytest.mark.parametrize("name", ["table.npy", 'a "b\\c\n.npy'])
def test_a_file_that_shrinks_is_an_error(command, tmp_path, name):
    np.save(tmp_path / name, np.random.default_rng(0).normal(size=(60000, 64)))
    words = ["-k", "10", "--metric", "minkowski", "--p", "3.5", "--threads", "1", "--json", "-o", "out.npz"]
    running = subprocess.Popen(
        [command, "knn", name, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(1.5)
    assert running.poll() is None, running.communicate()
    os.truncate(tmp_path / name, 4096)
    stdout, stderr = running.communicate(timeout=60)
    assert running.returncode == 3, (running.returncode, stderr)
    shown = name.replace("\n", "\\x0a")
    assert stderr.endswith(f"vicinal: error: cannot read '{shown}': {SHRANK}\n")
    assert json.loads(stdout) == {"error": {"code": "io", "message": f"cannot read '{shown}': {SHRANK}"}}
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(
    "words",
    [
        ("convert", "table.npy", "out.csv"),
        ("kmeans", "table.npy", "-c", "300", "--tolerance", "0", "--max-iterations", "100000", "-o", "out.npz"),
        ("classify", "table.npy", "--labels", "labels.npy", "--metric", "minkowski", "--p", "3.5", "--cv", "5"),
    ],
)
def test_it_is_an_error_of_every_command(command, tmp_path, words):
    table = np.random.default_rng(0).normal(size=(60000, 64))
    np.save(tmp_path / "table.npy", table)
    np.save(tmp_path / "labels.npy", table[:, 0] > 0)
    if words[0] == "convert":  # the writer waits for the reader of a pipe
        os.mkfifo(tmp_path / "out.csv")
        reader = os.open(tmp_path / "out.csv", os.O_RDONLY | os.O_NONBLOCK)
    running = subprocess.Popen(
        [command, *words, "--threads", "1"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(1.5)
    assert running.poll() is None, running.communicate()
    os.truncate(tmp_path / "table.npy", 4096)
    if words[0] == "convert":
        while running.poll() is None:
            try:
                os.read(reader, 1 << 20)
            except BlockingIOError:
                time.sleep(0.01)
        os.close(reader)
    _, stderr = running.communicate(timeout=60)
    assert running.returncode == 3, (running.returncode, stderr)
    assert stderr.endswith(f"vicinal: error: cannot read 'table.npy': {SHRANK}\n")
    assert set(os.listdir(tmp_path)) <= {"table.npy", "labels.npy", "out.csv"}


def test_another_bus_error_takes_its_course(command, tmp_path):
    np.save(tmp_path / "table.npy", np.random.default_rng(0).normal(size=(60000, 64)).astype(np.float32))
    running = start(command, tmp_path)
    time.sleep(1)
    running.send_signal(signal.SIGBUS)
    running.communicate(timeout=60)
    assert running.returncode == -signal.SIGBUS


def test_second_interrupt_ends_at_once(command, tmp_path):
    np.save(tmp_path / "table.npy", np.random.default_rng(0).normal(size=(60000, 64)).astype(np.float32))
    running = start(command, tmp_path)
    time.sleep(1)
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert [path.name for path in tmp_path.iterdir()] == ["table.npy"]

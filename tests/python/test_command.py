"""The command that the package brings (`python -m vicinal`) is the command: texts, exit codes, files, signals."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest


TIME = re.compile(rb"\bin [0-9.e-]+ (m|\xc2\xb5)?s\b")  # \xc2\xb5: micro


@pytest.fixture
def both(tmp_path, command):
    """Runs the command and the package's; what they print and return must be the same, which is returned."""

    def both(*arguments, **options):
        words = {"cwd": tmp_path, "capture_output": True, "check": False, **options}
        program = subprocess.run([command, *arguments], **words)
        package = subprocess.run([sys.executable, "-m", "vicinal", *arguments], **words)
        assert package.returncode == program.returncode
        for printed, expected in ((package.stdout, program.stdout), (package.stderr, program.stderr)):
            assert TIME.sub(b"", printed) == TIME.sub(b"", expected)
        return package

    return both


def test_texts(both):
    for words in (["--version"], ["--help"], ["knn", "--help"], ["completion", "bash"]):
        assert both(*words).returncode == 0


def test_exit_codes(both, tmp_path, rows):
    np.save(tmp_path / "rows.npy", rows)
    assert both("knn", "rows.npy", "-k", "0").returncode == 2
    assert both("knn", "nothing.npy").returncode == 3
    assert both("knn", "rows.npy", "--memory-limit", "1").returncode == 4
    assert both("nothing").returncode == 2


def test_answers(both, tmp_path, rows):
    np.save(tmp_path / "rows.npy", rows)
    assert both("lof", "rows.npy", "-k", "5", "--threads", "2").stdout


def test_files(tmp_path, command, rows):
    text = "\n".join(",".join(map(repr, row)) for row in rows.tolist())
    for program, name in (([command], "program.npz"), ([sys.executable, "-m", "vicinal"], "package.npz")):
        words = [*program, "knn", "-", "-k", "3", "--no-header", "-o", name]
        subprocess.run(words, cwd=tmp_path, check=True, input=text, text=True, capture_output=True)
    assert (tmp_path / "program.npz").read_bytes() == (tmp_path / "package.npz").read_bytes()


def test_names_of_any_bytes(both, tmp_path, rows):
    name = os.fsencode(tmp_path) + b"/\xff\xc3.npy"
    with open(name, "wb") as file:
        np.save(file, rows)
    assert both("knn", b"\xff\xc3.npy", "-k", "2").returncode == 0
    assert both("knn", b"\xff\xc4.npy", "-k", "2").returncode == 3


def test_a_pipe_that_closes(tmp_path, rows):
    np.save(tmp_path / "rows.npy", np.tile(rows, (40, 1)))
    words = [sys.executable, "-m", "vicinal", "knn", "rows.npy", "-k", "3", "-q"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait(60) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals(number, tmp_path):
    """The process has begun to compute when it has told of progress."""
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(60000, 64)))
    words = [sys.executable, "-m", "vicinal", "knn", "rows.npy", "-k", "8", "--metric", "minkowski", "--p", "3.5"]
    words += ["--threads", "1", "--progress", "always", "-o", "graph.npz"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stderr.read(1)
        process.send_signal(number)
        rest = process.stderr.read()
        assert process.wait(60) == 130, rest
    assert b"Traceback" not in rest and not (tmp_path / "graph.npz").exists()


def test_json_of_doctor(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "vicinal", "doctor", "--json"], cwd=tmp_path, check=True, capture_output=True
    )
    assert json.loads(done.stdout)["healthy"] is True

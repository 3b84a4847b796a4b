"""--resume of kmeans: a clustering that is killed goes on from its last state, and ends with the bytes of one that was
not (docs/scale.md)."""

import json
import re
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

from resumed import refused, write_record


@pytest.fixture
def table(tmp_path):
    """table.npy, whose clustering takes many short iterations; weights.npy and centres.npy."""
    generator = np.random.default_rng(2)
    rows = generator.normal(size=(20000, 6))
    np.save(tmp_path / "table.npy", rows)
    np.save(tmp_path / "weights.npy", generator.integers(0, 4, 20000) / 4)
    np.save(tmp_path / "centres.npy", rows[:40])


CLUSTER = ["kmeans", "table.npy", "-c", 40, "--tolerance", 0, "--seed", 3]
KEEP = ["--resume", "kept", "--resume-every", 0]  # after every iteration


def state(folder):
    """(run, iterations) of the state that is kept; below all others where there is none."""
    try:
        kept = json.loads((folder / "kept/job.json").read_text())["state"]
    except FileNotFoundError:
        return -1, -1
    return kept.get("run", -1), kept.get("iterations", -1)


def stop(command, folder, arguments, at, sent=signal.SIGKILL):
    """Runs the command until so many runs and iterations are done, and ends it; again where it was done before."""
    for _ in range(5):
        running = subprocess.Popen([command, *map(str, arguments)], cwd=folder, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        until = time.monotonic() + 60
        while state(folder) < at and running.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        running.send_signal(sent)
        _, told = running.communicate(timeout=60)
        if running.returncode != 0:
            break
        for name in ("out.npz", "out.csv", "out.html", "model"):
            (folder / name).unlink(missing_ok=True)
    assert state(folder) >= at, told
    return running.returncode, told


def same(folder, names=("out.npz", "model")):
    for name in names:
        assert (folder / name).read_bytes() == (folder / f"whole.{name}").read_bytes(), name


@pytest.mark.parametrize("options, moments", [
    ("--runs 2", [(0, 0), (0, 9), (1, 3)]),
    ("--init centres.npy --weights weights.npy --empty keep", [(0, 1), (0, 12)]),
    ("--metric cosine --init random --runs 3 --max-iterations 25", [(0, 20), (2, 5)]),
    ("--batch-size 500 --runs 2 --max-iterations 400", [(0, 30), (1, 10)]),
])
def test_a_killed_clustering_goes_on(command, vicinal, ok, tmp_path, table, options, moments):
    ok(*CLUSTER, *options.split(), "-o", "whole.out.npz", "--save-model", "whole.model")
    clustering = [*CLUSTER, *options.split(), "-o", "out.npz", "--save-model", "model", *KEEP]
    for moment in moments:
        assert stop(command, tmp_path, clustering, moment)[0] == -signal.SIGKILL
        assert not (tmp_path / "out.npz").exists()
    (tmp_path / "kept" / "1.checkpoint.tmp.12345.0").write_bytes(b"half a state")
    run, iterations = state(tmp_path)
    done = vicinal(*clustering, "--threads", 1)
    assert done.returncode == 0, done
    assert f"resumed from 'kept': run {run + 1} of" in done.stderr and f"after iteration {iterations}\n" in done.stderr
    same(tmp_path)
    assert not (tmp_path / "kept").exists()


def test_ctrl_c_and_a_report(command, ok, tmp_path, table):
    ok(*CLUSTER, "-o", "whole.out.csv", "--report", "whole.html")
    clustering = [*CLUSTER, "-o", "out.csv", "--report", "out.html", *KEEP]
    code, told = stop(command, tmp_path, clustering, (0, 5), signal.SIGINT)
    assert code == 130 and told.count("\n") == 1
    assert not list(tmp_path.glob("**/*.tmp.*")) and not (tmp_path / "out.csv").exists()
    ok(*clustering)
    same(tmp_path, ["out.csv"])
    curve = [re.findall(r"<svg.*?</svg>", (tmp_path / name).read_text(), re.S) for name in ("out.html", "whole.html")]
    assert curve[0] == curve[1] and curve[0]


def test_two_at_once(command, vicinal, tmp_path, table):
    running = subprocess.Popen([command, *map(str, CLUSTER), "-o", "out.npz", *map(str, KEEP)], cwd=tmp_path,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while state(tmp_path) < (0, 1):
        assert running.poll() is None
        time.sleep(0.002)
    running.send_signal(signal.SIGSTOP)
    try:
        told = refused(vicinal, *CLUSTER, "-o", "out.npz", *KEEP, code=3)
        assert "--resume: 'kept' is in use by another process" in told
    finally:
        running.kill()
        running.wait()


def test_what_does_not_fit_is_refused(command, vicinal, ok, tmp_path, table):
    ok(*CLUSTER, "--weights", "weights.npy", "-o", "whole.out.npz")
    clustering = [*CLUSTER, "--weights", "weights.npy", "-o", "out.npz", *KEEP]
    stop(command, tmp_path, clustering, (0, 4))
    for half in tmp_path.glob("kept/*.tmp.*"):  # which the next process removes
        half.unlink()
    kept = {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()}

    def told(*more, change=(), code=2):
        words = [dict(change).get(word, word) for word in clustering]
        sentence = refused(vicinal, *words, *more, code=code)
        assert "--resume: 'kept/" in sentence and not (tmp_path / "out.npz").exists()
        return sentence

    assert "whose number of clusters is 40, not 41" in told(change=[(40, 41)])
    assert "whose --seed is 3, not 4" in told(change=[(3, 4)])
    assert "whose --tolerance is 0" in told(change=[("--tolerance", "--changed-share"), (0, 0.5)])
    assert "whose --init is k-means++, not random" in told("--init", "random")
    assert "whose --stop is settled, not classical" in told("--stop", "classical", "--empty", "farthest")
    assert "whose --runs is 1, not 2" in told("--runs", 2)
    assert "whose use of --report is false, not true" in told("--report", "r.html")
    for name in ("table.npy", "weights.npy"):
        before = (tmp_path / name).read_bytes()
        np.save(tmp_path / name, np.load(tmp_path / name)[::-1])
        assert f"with other values in '{name}'" in told()
        (tmp_path / name).write_bytes(before)
    assert kept == {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()}
    file = tmp_path / "kept" / json.loads(kept["job.json"])["state"]["file"]
    for damaged in (kept[file.name][:-3], b"", kept[file.name][:100] + b"x" + kept[file.name][101:]):
        file.write_bytes(damaged)
        assert f"'kept/{file.name}' is damaged, or not the file that this job wrote" in told(code=3)
    file.unlink()
    assert file.name in refused(vicinal, *clustering, code=3)
    file.write_bytes(kept[file.name])
    record = json.loads(kept["job.json"])
    for change in ({"file": 1}, {"file": "../table.npy"}, {"file": "2.checkpoint"}, {"digest": None}):
        write_record(tmp_path, {**record, "state": {**record["state"], **change}})
        assert "'kept/job.json' is damaged" in told(code=3)
    write_record(tmp_path, {**record, "job": {**record["job"], "vicinal": "0.0.9"}})
    assert "whose version of vicinal is 0.0.9, not" in told()
    write_record(tmp_path, record)
    told_of_search = refused(vicinal, "knn", "table.npy", "-k", 3, "-o", "x.npz", "--resume", "kept", code=2)
    assert "'kept/job.json' is of " in told_of_search
    ok(*clustering)
    same(tmp_path, ["out.npz"])
    for other in (["--scan", "2..4"], ["--model", "model"]):
        assert "--resume" in refused(vicinal, "kmeans", "table.npy", *KEEP, *other, code=2)


def test_a_result_that_cannot_be_printed_is_kept(command, ok, tmp_path, table):
    with open("/dev/full", "w") as full:
        done = subprocess.run([command, *map(str, [*CLUSTER, *KEEP])], cwd=tmp_path, stdout=full,
                              stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3 and state(tmp_path)[1] > 0, done
    ok(*CLUSTER, *KEEP)
    assert not (tmp_path / "kept").exists()


def test_a_folder_that_is_another_job_s_now(command, vicinal, ok, tmp_path, table):
    """A process whose folder was removed leaves the new one as it is."""
    running = subprocess.Popen([command, *map(str, CLUSTER), "--runs", "90", "-o", "out.npz", *map(str, KEEP)],
                               cwd=tmp_path, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        while state(tmp_path) < (0, 1):
            assert running.poll() is None
            time.sleep(0.002)
        running.send_signal(signal.SIGSTOP)
        shutil.rmtree(tmp_path / "kept")
        stop(command, tmp_path, [*CLUSTER[:-1], 4, "-o", "out.npz", *KEEP], (0, 3))
        kept = {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()}
        running.send_signal(signal.SIGCONT)
        _, told = running.communicate(timeout=60)
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == 3 and told.count("\n") == 1 and "'kept" in told, told  # or a temporary is gone
    assert kept == {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()}


def test_a_full_disk(vicinal, ok, tmp_path, table, small_disk):
    disk = small_disk("12k")
    clustering = [*CLUSTER, "-o", "out.npz", "--resume", disk / "kept", "--resume-every", 0]
    told = refused(vicinal, *clustering, code=3)
    assert "kept/" in told and "No space left" in told
    assert not list(disk.glob("**/*.tmp.*")) and not (tmp_path / "out.npz").exists()
    subprocess.run(["mount", "-o", "remount,size=640k", disk], check=True)
    ok(*clustering)
    ok(*CLUSTER, "-o", "whole.out.npz")
    same(tmp_path, ["out.npz"])
    assert list(disk.iterdir()) == []

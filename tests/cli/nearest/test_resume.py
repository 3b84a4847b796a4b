"""--resume of knn and radius: a search that is killed goes on with its finished blocks, and ends with the bytes of one
that was not (docs/scale.md)."""

import json
import os
import resource
import signal
import subprocess
import time

import numpy as np
import pytest


@pytest.fixture
def tables(tmp_path):
    """table.npy, most of whose rows have copies, queries.npy and few.npy, a filter."""
    generator = np.random.default_rng(8)
    np.save(tmp_path / "table.npy", generator.integers(0, 5, (700, 4)) / 4)
    np.save(tmp_path / "queries.npy", generator.integers(0, 5, (300, 4)) / 4)
    np.save(tmp_path / "few.npy", np.arange(700) % 3 == 1)


@pytest.fixture
def slow(tmp_path):
    """A table whose search takes most of a second."""
    np.save(tmp_path / "table.npy", np.random.default_rng(1).normal(size=(2500, 6)))
    return ["knn", "table.npy", "-k", 9, "--metric", "minkowski", "--p", 3.5, "--threads", 2]


KEEP = ["--resume", "kept", "--resume-every", 0]  # blocks of 64 rows


def start(command, folder, arguments, **options):
    return subprocess.Popen([command, *map(str, arguments)], cwd=folder, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **options)


def blocks(folder):
    return sorted((path for path in folder.glob("kept/*.part")), key=lambda path: int(path.stem))


def stop(command, folder, arguments, at, sent=signal.SIGKILL):
    """Runs the command until so many blocks are there, and ends it; again where it was done before."""
    for _ in range(5):
        running = start(command, folder, arguments)
        until = time.monotonic() + 60
        while len(blocks(folder)) < at and running.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        running.send_signal(sent)
        _, told = running.communicate(timeout=60)
        if running.returncode != 0:
            break
        (folder / "out.npz").unlink()
    assert len(blocks(folder)) >= at, told
    return running.returncode, told


def refused(vicinal, *arguments, code, **options):
    done = vicinal(*arguments, **options)
    assert done.returncode == code, done
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


SEARCHES = [
    "knn table.npy -k 7",
    "knn table.npy queries.npy -k 61 --metric manhattan",
    "knn table.npy -k 5 --metric minkowski --p 1.5 --filter few.npy --symmetric union",
    "knn table.npy -k 9 --max-radius 0.5 --include-self",
    "knn table.npy queries.npy -k 3 --method kdtree",
    "radius table.npy -r 0.5",
    "radius table.npy queries.npy -r 0.25 --metric cosine",
    "radius table.npy -r 0.5 --filter few.npy --symmetric mutual",
]


@pytest.mark.parametrize("search", SEARCHES)
def test_blocks_give_the_same_file(ok, tmp_path, tables, search):
    for suffix in ("npz", "csv"):
        ok(*search.split(), "-o", f"whole.{suffix}")
        ok(*search.split(), "-o", f"out.{suffix}", *KEEP)
        assert (tmp_path / f"out.{suffix}").read_bytes() == (tmp_path / f"whole.{suffix}").read_bytes()
        assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("queries", [[], ["queries.npy"]])
def test_counts(ok, ok_json, tmp_path, tables, queries):
    search = ["radius", "table.npy", *queries, "-r", 0.5, "--count", "-o"]
    ok(*search, "whole.npy")
    told = ok_json(*search, "out.npy", *KEEP)
    assert (tmp_path / "out.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert told["rows"] == (300 if queries else 700) and told["files"] == ["out.npy"]


def test_what_is_printed_is_the_same(ok, tables):
    search = ["knn", "table.npy", "-k", 7]
    assert ok(*search, *KEEP) == ok(*search)
    assert "memory" in ok(*search, *KEEP, "--explain")


def test_a_killed_search_goes_on(command, vicinal, ok, tmp_path, slow):
    ok(*slow, "-o", "whole.npz")
    search = [*slow, "-o", "out.npz", *KEEP]
    for at in (1, 9, 26):
        assert stop(command, tmp_path, search, at)[0] == -signal.SIGKILL
        assert not (tmp_path / "out.npz").exists()
    (tmp_path / "kept" / "640.part.tmp.12345.0").write_bytes(b"half a block")
    (tmp_path / "kept" / "job.json.tmp.12345.1").write_bytes(b"{")
    blocks(tmp_path)[3].unlink()  # searched again
    record = json.loads((tmp_path / "kept" / "job.json").read_text())
    searched = record["state"]["blocks"][-1]["end"] - 64
    assert searched >= 24 * 64  # the record follows the file
    search[search.index("--threads") + 1] = 1  # the same bits
    done = vicinal(*search, "--progress", "always")
    assert done.returncode == 0, done
    shown = f"{searched:,}".replace(",", " ")
    assert f"resumed from 'kept': {shown} of 2 500 rows were searched before" in done.stderr
    lines = done.stderr.partition("resumed from")[2].split("\x1b[2Ksearch")[1:]
    shares = [int(line.split(" %")[0].split()[-1]) for line in lines]
    assert shares and 100 * searched // 2500 <= min(shares) and max(shares) <= 100
    assert (tmp_path / "out.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.npz", "table.npy", "whole.npz"]


def test_ctrl_c_keeps_what_is_finished(command, ok, tmp_path, slow):
    ok(*slow, "-o", "whole.npz")
    code, told = stop(command, tmp_path, [*slow, "-o", "out.npz", *KEEP], 3, signal.SIGINT)
    assert code == 130 and told.count("\n") == 1
    assert not list(tmp_path.glob("**/*.tmp.*")) and not (tmp_path / "out.npz").exists()
    ok(*slow, "-o", "out.npz", *KEEP)
    assert (tmp_path / "out.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_a_folder_of_the_user_stays(ok, tmp_path, tables):
    (tmp_path / "kept").mkdir()
    ok("knn", "table.npy", "-o", "out.npz", *KEEP)
    assert list((tmp_path / "kept").iterdir()) == []


def test_two_at_once(command, vicinal, tmp_path, slow):
    search = [*slow, "-o", "out.npz", *KEEP]
    running = start(command, tmp_path, search)
    while not blocks(tmp_path):
        assert running.poll() is None
        time.sleep(0.002)
    running.send_signal(signal.SIGSTOP)
    try:
        assert "--resume: 'kept' is in use by another process" in refused(vicinal, *search, code=3)
    finally:
        running.kill()
        running.communicate()
    assert blocks(tmp_path)


@pytest.fixture
def stopped(vicinal, ok, tmp_path, tables):
    """A folder with three blocks of a search, as a killed process leaves it."""
    search = ["knn", "table.npy", "queries.npy", "-k", 7, "--filter", "few.npy", *KEEP, "-o", "out.npz"]
    ok(*search[:7], "-o", "whole.npz")
    # The output cannot be written where a folder appears in its place; what was found is kept.
    limit = 64 * 7 * 16 + 2500

    def few():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = vicinal(*search, preexec_fn=few)
    assert done.returncode == 3 and "out.npz" in done.stderr, done
    assert len(blocks(tmp_path)) == 5 and not (tmp_path / "out.npz").exists()
    return search


def test_a_full_disk(ok, tmp_path, stopped):
    """The output did not fit (fixture); every block is kept, and the same command writes it."""
    assert not list(tmp_path.glob("**/*.tmp.*"))
    changed = [path.stat().st_mtime_ns for path in blocks(tmp_path)]
    assert len(changed) == 5
    ok(*stopped)
    assert (tmp_path / "out.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_a_disk_that_is_full_at_a_block(vicinal, ok, tmp_path, tables):
    if os.geteuid() != 0:
        pytest.skip("a full disk is made with a tiny tmpfs, which takes root to mount")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"a tiny tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    try:
        search = ["knn", "table.npy", "-k", 12, "-o", "out.npz", "--resume-every", 0, "--resume", disk / "kept"]
        told = refused(vicinal, *search, code=3)
        assert "kept/" in told and "No space left" in told
        assert not list(disk.glob("**/*.tmp.*")) and len(list(disk.glob("kept/*.part"))) >= 2
        subprocess.run(["mount", "-o", "remount,size=640k", disk], check=True)
        ok(*search)
        ok(*search[:4], "-o", "whole.npz")
        assert (tmp_path / "out.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", disk], check=True)


def test_another_job_is_refused(vicinal, ok, tmp_path, stopped):
    kept = {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()}

    def told(*changes, code=2):
        words = [*stopped]
        for place, word in changes:
            words[place] = word
        sentence = refused(vicinal, *words, code=code)
        assert "--resume: 'kept/job.json' is of a job " in sentence
        assert {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()} == kept
        assert not (tmp_path / "out.npz").exists()
        return sentence

    assert "whose number of neighbors is 7, not 8" in told((4, 8))
    assert "whose --metric is euclidean, not cosine" in told((5, "--metric"), (6, "cosine"))
    assert "whose use of --filter is true, not false" in told((5, "--threads"), (6, "1"))
    assert "whose search is knn, not radius" in told((0, "radius"), (3, "-r"))
    assert "whose search is knn, not count" in told((0, "radius"), (3, "-r"), (5, "--count"), (6, "-q"), (-1, "x.npy"))
    tables = {name: np.load(tmp_path / name) for name in ("table.npy", "queries.npy", "few.npy")}

    def with_tables(**changed):
        for name, values in tables.items():
            np.save(tmp_path / name, changed.get(name.removesuffix(".npy"), values))

    table, queries = tables["table.npy"], tables["queries.npy"]
    for name, values in (("table", table), ("queries", queries)):
        with_tables(**{name: np.roll(values, 1)})
        assert f"with other values in '{name}.npy'" in told()
        with_tables(**{name: values.astype(np.float32)})
        assert f"whose type of the values in '{name}.npy' is float64, not float32" in told()
    with_tables(queries=queries[:-1])
    assert "whose number of rows in 'queries.npy' is 300, not 299" in told()
    with_tables(table=table[:, :3], queries=queries[:, :3])
    assert "whose number of columns in 'table.npy' is 4, not 3" in told()
    with_tables(few=~tables["few.npy"])
    assert "with other values in 'few.npy'" in told()
    with_tables()
    # The same values from another file are the same job, and what becomes of the lists may differ.
    (tmp_path / "moved.npy").write_bytes((tmp_path / "table.npy").read_bytes())
    np.savetxt(tmp_path / "queries.csv", np.load(tmp_path / "queries.npy"), delimiter=",")
    words = [*stopped]
    words[1], words[2] = "moved.npy", "queries.csv"
    ok(*words, "--distances", "float32")
    assert np.load(tmp_path / "out.npz")["distances"].dtype == np.float32


def test_damaged_and_foreign_files_are_refused(vicinal, ok, tmp_path, stopped):
    first, second, *_ = blocks(tmp_path)
    whole = first.read_bytes()
    for damaged in (whole[:-1], whole[: len(whole) // 2], b"", whole[:-200] + bytes([whole[-200] ^ 1]) + whole[-199:],
                    second.read_bytes(), b"id,x\n"):
        first.write_bytes(damaged)
        told = refused(vicinal, *stopped, code=3)
        assert "'kept/0.part' is damaged, or not the file that this job wrote" in told
        assert not (tmp_path / "out.npz").exists()
    first.write_bytes(whole)
    record = tmp_path / "kept" / "job.json"
    text = record.read_text()
    for damaged in (text[:-30], text.replace('"end": 64', '"end": 65'), text.replace("euclidean", "euclidear")):
        record.write_text(damaged)
        assert "'kept/job.json' is" in refused(vicinal, *stopped, code=3)
    record.write_text("[]")
    assert "is not the record of an interrupted job" in refused(vicinal, *stopped, code=3)
    record.write_text(text)
    for name in ("notes.txt", "65.part", "notes.part"):
        (tmp_path / "kept" / name).write_text("mine")
        assert f"'kept/{name}' is not of an interrupted job" in refused(vicinal, *stopped, code=2)
        (tmp_path / "kept" / name).unlink()
    first.unlink()
    ok(*stopped)
    assert (tmp_path / "out.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_folders_that_cannot_be_used(vicinal, tmp_path, tables):
    search = ["knn", "table.npy", "-o", "out.npz", "--resume"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "0.part").write_bytes(b"x")
    assert "'mine/0.part' is not of an interrupted job" in refused(vicinal, *search, "mine", code=2)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["0.part"]
    assert "'table.npy' is not a folder" in refused(vicinal, *search, "table.npy", code=3)
    assert "cannot make the folder 'no/where'" in refused(vicinal, *search, "no/where", code=3)
    assert "--resume-every: is -1" in refused(vicinal, *search, "kept", "--resume-every", -1, code=2)
    assert "k: is 700" in refused(vicinal, *search, "kept", "-k", 700, code=2)
    assert not (tmp_path / "kept").exists()
    told = refused(vicinal, "knn", "table.npy", "--rows", "0:9", "-o", "0.part", "--resume", "kept", code=2)
    assert "--resume" in told

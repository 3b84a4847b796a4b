"""--resume of knn and radius: a search that is killed goes on with its finished blocks, and ends with the bytes of one
that was not (docs/scale.md)."""

import json
import os
import resource
import select
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

from resumed import refused, write_record


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


@pytest.fixture
def long(tmp_path):
    """A table whose search takes many seconds, for those that are killed."""
    np.save(tmp_path / "long.npy", np.random.default_rng(1).normal(size=(20000, 6)))
    return ["knn", "long.npy", "-k", 9, "--metric", "minkowski", "--p", 3.5, "--threads", 1]


KEEP = ["--resume", "kept", "--resume-every", 0]  # blocks of 64 rows


def start(command, folder, arguments, **options):
    return subprocess.Popen([command, *map(str, arguments)], cwd=folder, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **options)


def blocks(folder):
    return sorted((path for path in folder.glob("kept/*.part")), key=lambda path: int(path.stem))


def kept_blocks(folder):
    """What the record tells of blocks."""
    try:
        return json.loads((folder / "kept" / "job.json").read_text())["state"].get("blocks", [])
    except FileNotFoundError:
        return []


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


def wait_for(what, running):
    until = time.monotonic() + 60
    while not what():
        assert running.poll() is None and time.monotonic() < until
        time.sleep(0.002)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def finish_blocks(vicinal, folder, *search):
    """Searches all blocks; the output cannot be written, so they stay."""
    suffix = "npy" if "--count" in search else "csv"
    (folder / f"full.{suffix}").symlink_to("/dev/full")
    done = vicinal(*search, "-o", f"full.{suffix}")
    assert done.returncode == 3 and f"full.{suffix}" in done.stderr, done
    (folder / f"full.{suffix}").unlink()
    return [int(path.stem) for path in blocks(folder)]


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
def test_blocks_give_the_same_file(vicinal, ok, tmp_path, tables, search):
    rows = 300 if "queries.npy" in search else 700
    for suffix in ("npz", "csv"):
        ok(*search.split(), "-o", f"whole.{suffix}")
        if suffix == "csv":
            assert finish_blocks(vicinal, tmp_path, *search.split(), *KEEP) == list(range(0, rows, 64))
        ok(*search.split(), "-o", f"out.{suffix}", *KEEP)
        assert (tmp_path / f"out.{suffix}").read_bytes() == (tmp_path / f"whole.{suffix}").read_bytes()
        assert not (tmp_path / "kept").exists()


def test_the_first_block_is_small(vicinal, ok, tmp_path, tables):
    """Whatever the plan expects: it does not know how long the lists within an infinite radius are to write."""
    search = ["radius", "table.npy", "-r", "inf", "--resume", "kept"]
    assert finish_blocks(vicinal, tmp_path, *search)[:2] == [0, 64]
    ok(*search, "-o", "out.npz")
    ok(*search[:4], "-o", "whole.npz")
    assert (tmp_path / "out.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


@pytest.mark.parametrize("queries", [[], ["queries.npy"]])
def test_counts(ok, ok_json, tmp_path, tables, queries):
    search = ["radius", "table.npy", *queries, "-r", 0.5, "--count", "-o"]
    ok(*search, "whole.npy")
    told = ok_json(*search, "out.npy", *KEEP)
    assert (tmp_path / "out.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert told["rows"] == (300 if queries else 700) and told["files"] == ["out.npy"]


def test_what_is_printed_is_the_same(ok, ok_json, tables):
    search = ["knn", "table.npy", "-k", 7]
    assert ok(*search, *KEEP) == ok(*search)
    needed = ok_json(*search, *KEEP, "--explain")["plan"]["memory_bytes"]
    assert ok(*search, *KEEP, "--memory-limit", needed) == ok(*search)


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
    lines = done.stderr.split("\x1b[2Kmerge")[1:]
    shares = [int(line.split(" %")[0].split()[-1]) for line in lines]
    assert shares == sorted(shares) and shares.count(100) <= 1, shares  # not of each block by itself
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


def test_two_at_once(command, vicinal, tmp_path, long):
    search = [*long, "-o", "out.npz", *KEEP]
    running = start(command, tmp_path, search)
    try:
        wait_for(lambda: blocks(tmp_path), running)
        running.send_signal(signal.SIGSTOP)
        assert "--resume: 'kept' is in use by another process" in refused(vicinal, *search, code=3)
    finally:
        running.kill()
        running.communicate()
    assert blocks(tmp_path)


def test_a_folder_that_is_another_job_s_now(command, vicinal, ok, tmp_path, tables, long):
    """A process whose folder was removed leaves the new one as it is."""
    running = start(command, tmp_path, [*long, "-o", "out.npz", *KEEP])
    other = ["knn", "table.npy", "-k", 9, "--metric", "cosine"]
    try:
        wait_for(lambda: kept_blocks(tmp_path), running)  # the next is searched
        running.send_signal(signal.SIGSTOP)
        shutil.rmtree(tmp_path / "kept")
        finish_blocks(vicinal, tmp_path, *other, *KEEP)
        kept = contents(tmp_path / "kept")
        running.send_signal(signal.SIGCONT)
        _, told = running.communicate(timeout=60)
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == 3 and told.count("\n") == 1 and "'kept" in told, told  # or a temporary is gone
    assert contents(tmp_path / "kept") == kept
    ok(*other, *KEEP, "-o", "out.npz")
    ok(*other, "-o", "whole.npz")
    assert (tmp_path / "out.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


@pytest.mark.parametrize("change", ["lock", "block", "stranger"])
def test_what_is_removed_at_the_end(command, ok, tmp_path, tables, change):
    """Its own files only, while the folder is its own; what stays is a note, for the result is there."""
    search = ["knn", "table.npy", "-k", 61, "-o", "-"]
    running = start(command, tmp_path, [*search, *KEEP])
    kept = tmp_path / "kept"
    assert select.select([running.stdout], [], [], 60)[0]  # the lists are read, and most wait for room in the pipe
    stays = set()
    if change == "lock":
        (kept / "lock").unlink()
        stays = {path.name for path in kept.iterdir()}
    elif change == "block":
        (kept / "0.part").unlink()
        (kept / "0.part").mkdir()
        stays = {path.name for path in kept.iterdir()}
    else:
        (kept / "64000.part").write_text("mine")
        stays = {"64000.part"}
    printed, told = running.communicate(timeout=60)
    assert running.returncode == 0 and printed == ok(*search)
    assert ("note: --resume: " in told) == (change != "stranger"), told
    assert {path.name for path in kept.iterdir()} == stays


def test_a_block_that_is_replaced_while_lists_are_read(command, vicinal, tmp_path, tables):
    """By that of another search, which has the same shape: it is not the file that the record tells of."""
    search = ["radius", "table.npy", "-r", 9, *KEEP]
    finish_blocks(vicinal, tmp_path, *search, "--metric", "cosine")
    other = (tmp_path / "kept" / "640.part").read_bytes()
    shutil.rmtree(tmp_path / "kept")
    running = start(command, tmp_path, [*search, "-o", "-"])
    assert select.select([running.stdout], [], [], 60)[0]  # of the first block; most wait for room in the pipe
    (tmp_path / "kept" / "640.part").write_bytes(other)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 3 and "'kept/640.part' is damaged, or not the file that this job wrote" in told, told
    assert len(blocks(tmp_path)) == 11


def test_results_that_cannot_be_printed_are_kept(command, ok, tmp_path, tables):
    for search in (["radius", "table.npy", "-r", 1, "--count"], ["radius", "table.npy", "-r", 1], ["knn", "table.npy"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([command, *map(str, [*search, *KEEP])], cwd=tmp_path, stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        assert done.returncode == 3 and len(blocks(tmp_path)) == 11, done
        assert ok(*search, *KEEP) == ok(*search)
        assert not (tmp_path / "kept").exists()


@pytest.fixture
def stopped(vicinal, ok, tmp_path, tables):
    """A folder with the five blocks of a search whose output could not be written."""
    search = ["knn", "table.npy", "queries.npy", "-k", 7, "--filter", "few.npy", *KEEP]
    ok(*search[:7], "-o", "whole.npz")
    assert len(finish_blocks(vicinal, tmp_path, *search)) == 5
    return [*search, "-o", "out.npz"]


def test_a_full_disk(vicinal, tmp_path, stopped):
    """The output did not fit (fixture); every block is kept, and the same command writes it."""
    assert not list(tmp_path.glob("**/*.tmp.*"))
    done = vicinal(*stopped)
    assert done.returncode == 0 and "resumed from 'kept': 300 of 300 rows were searched before" in done.stderr, done
    assert (tmp_path / "out.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_a_block_that_is_searched_again_may_be_interrupted(vicinal, ok, tmp_path, stopped):
    (tmp_path / "kept" / "0.part").unlink()

    def few():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))  # a record, but no block

    done = vicinal(*stopped, preexec_fn=few)
    assert done.returncode == 3 and "cannot write 'kept/0.part'" in done.stderr, done
    # As a process leaves it that is killed when the block is written and the record is not: other seconds are in it.
    (tmp_path / "kept" / "0.part").write_bytes(b"a block of other bytes")
    done = vicinal(*stopped)
    assert done.returncode == 0 and "236 of 300 rows were searched before" in done.stderr, done
    assert (tmp_path / "out.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_a_disk_that_is_full_at_a_block(vicinal, ok, tmp_path, tables, small_disk):
    disk = small_disk("64k")
    search = ["knn", "table.npy", "-k", 12, "-o", "out.npz", "--resume-every", 0, "--resume", disk / "kept"]
    told = refused(vicinal, *search, code=3)
    assert "kept/" in told and "No space left" in told
    assert not list(disk.glob("**/*.tmp.*")) and len(list(disk.glob("kept/*.part"))) >= 2
    subprocess.run(["mount", "-o", "remount,size=640k", disk], check=True)
    ok(*search)
    ok(*search[:4], "-o", "whole.npz")
    assert (tmp_path / "out.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert list(disk.iterdir()) == []


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
    assert "that searches among the rows of --filter alone, not among all rows;" in told((5, "--threads"), (6, "1"))
    assert "that searches around other rows than those of the table;" in told((2, "--threads"), (3, "1"), (4, "-q"))
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


def test_lists_that_are_changed_need_those_among_all_rows(vicinal, ok, tmp_path, tables):
    filtered = ["radius", "table.npy", "-r", 0.5, "--filter", "few.npy", *KEEP]
    finish_blocks(vicinal, tmp_path, *filtered)
    told = refused(vicinal, *filtered, "--symmetric", "union", code=2)
    assert "of a job that searches among the rows of --filter alone, not among all rows, which --symmetric" in told
    shutil.rmtree(tmp_path / "kept")
    finish_blocks(vicinal, tmp_path, *filtered, "--symmetric", "union")
    told = refused(vicinal, *filtered, code=2)
    assert "of a job that searches among all rows, not those of --filter alone" in told
    ok(*filtered, "--symmetric", "mutual", "-o", "out.npz")
    ok(*filtered[:6], "--symmetric", "mutual", "-o", "whole.npz")
    assert (tmp_path / "out.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_records_that_someone_wrote(vicinal, ok, tmp_path, stopped):
    record = json.loads((tmp_path / "kept" / "job.json").read_text())
    digest = record["digest"]
    write_record(tmp_path, record)
    assert json.loads((tmp_path / "kept" / "job.json").read_text())["digest"] == digest
    for state in ([], None, 3, {"blocks": {}}, {"blocks": [1]}, {"blocks": [{"end": "x", "digest": "y"}]},
                  {"blocks": [{"end": 64}]}, {"blocks": [{"end": 64.5, "digest": ""}]},
                  {"blocks": [{"end": 2**64 - 1, "digest": ""}]}, {"blocks": [{"end": 301, "digest": ""}]}):
        write_record(tmp_path, {**record, "state": state})
        assert "'kept/job.json' is damaged" in refused(vicinal, *stopped, code=3)
    write_record(tmp_path, {**record, "job": {**record["job"], "vicinal": "0.0.9"}})
    assert "whose version of vicinal is 0.0.9, not " in refused(vicinal, *stopped, code=2)
    deep = 1_000_000
    text = '{"format": "vicinal-resume", "x": ' + deep * "[" + deep * "]" + "}"
    (tmp_path / "kept" / "job.json").write_text(text)
    assert "'kept/job.json' is damaged" in refused(vicinal, *stopped, code=3)
    with open(tmp_path / "kept" / "job.json", "w") as large:
        large.truncate(100 << 20)
    assert "'kept/job.json' is damaged" in refused(vicinal, *stopped, code=3)
    write_record(tmp_path, record)
    ok(*stopped)


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
    for name in ("notes.txt", "65.part", "notes.part", "notes.part.tmp.1.2", "0.part.tmp.1", "lock.tmp.1.2"):
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
    for name, code in (("0.part.tmp.1.2", 2), ("job.json.tmp.1.2", 2), ("lock.tmp.1.2", 2), ("lock", 2), ("notes", 2),
                       ("job.json", 3)):
        for files in ([name], [name, "lock"], [name, "notes"]):
            shutil.rmtree(tmp_path / "mine")
            (tmp_path / "mine").mkdir()
            for file in files:
                (tmp_path / "mine" / file).write_text("mine")
            assert "'mine/" in refused(vicinal, *search, "mine", code=2 if "lock" in files else code), files
            assert contents(tmp_path / "mine") == {file: b"mine" for file in files}
    shutil.rmtree(tmp_path / "mine")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "lock").symlink_to("nothing")
    assert "'mine/lock' is not of an interrupted job" in refused(vicinal, *search, "mine", code=2)
    assert os.listdir(tmp_path / "mine") == ["lock"]
    assert "'table.npy' is not a folder" in refused(vicinal, *search, "table.npy", code=3)
    assert "cannot make the folder 'no/where'" in refused(vicinal, *search, "no/where", code=3)
    assert "--resume-every: is -1" in refused(vicinal, *search, "kept", "--resume-every", -1, code=2)
    (tmp_path / "empty.toml").write_text('[knn]\nresume = ""\n')
    assert "--resume: the name of the folder is empty" in refused(vicinal, *search[:-1], "--config", "empty.toml",
                                                                  code=2)
    for command in (["knn", "table.npy"], ["radius", "table.npy", "-r", 1], ["kmeans", "table.npy", "-c", 3]):
        assert "--resume-every: is for the folder of" in refused(vicinal, *command, "--resume-every", 5, code=2)
    assert "k: is 700" in refused(vicinal, *search, "kept", "-k", 700, code=2)
    assert not (tmp_path / "kept").exists()
    told = refused(vicinal, "knn", "table.npy", "--rows", "0:9", "-o", "0.part", "--resume", "kept", code=2)
    assert "--resume" in told


def test_a_folder_of_a_process_that_was_killed_at_once(ok, tmp_path, tables):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "lock").touch()
    (tmp_path / "kept" / "job.json.tmp.12345.0").write_text("{")
    ok("knn", "table.npy", "-o", "out.npz", *KEEP)
    assert list((tmp_path / "kept").iterdir()) == []

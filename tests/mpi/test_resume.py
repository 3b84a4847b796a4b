"""`mpirun -n 3 vicinal knn TABLE -o DIR/ --resume kept`: a search of ranks that is killed goes on, with any number of
ranks, and the merged parts are the file of one process, byte by byte.

VICINAL_COMMAND is the command.
"""

# ctest: COST 90
# ctest: TIMEOUT 600

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mpirun import AT_ONCE, ENVIRONMENT, MPIRUN, OPTIONS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from small_disk import small_disk  # noqa: E402, F401

COMMAND = os.environ.get("VICINAL_COMMAND", "")
LIMIT = 120  # s, of which a run takes some
EVERY_BLOCK = ["--resume", "kept", "--resume-every", "0"]  # blocks of at most 64 rows

pytestmark = pytest.mark.skipif(not (COMMAND and MPIRUN and os.environ.get("VICINAL_MPI_RANKS")),
                                reason="the plug-in for MPI is not built here, or no mpirun")


def words_of(ranks, words):
    return [*([MPIRUN, "-n", str(ranks), *OPTIONS] if ranks else []), COMMAND, *words]


def run(folder, ranks, *words):
    return subprocess.run(words_of(ranks, words), cwd=folder, capture_output=True, text=True, timeout=LIMIT,
                          env=AT_ONCE)


def ok(folder, ranks, *words):
    ran = run(folder, ranks, *words)
    assert ran.returncode == 0, ran
    return ran


def errors(ran):
    return [line for line in ran.stderr.splitlines() if "error:" in line]


def recorded(folder):
    """The blocks that the record tells of; one that is not finished has no digest."""
    try:
        return json.loads((folder / "kept" / "job.json").read_text())["state"].get("blocks", [])
    except FileNotFoundError:
        return []


def blocks(folder):
    """What the record tells of finished blocks."""
    return [block for block in recorded(folder) if block["digest"]]


def ranks_of(mpirun):
    """The processes that mpirun has started."""
    listed = pathlib.Path(f"/proc/{mpirun.pid}/task/{mpirun.pid}/children").read_text().split()
    return [int(pid) for pid in listed]


def kill(folder, ranks, victim, at, *words, is_reached=None):
    """Kills one rank as soon as so many blocks are recorded, or something else is so; mpirun ends the others."""
    running = subprocess.Popen(words_of(ranks, words), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=ENVIRONMENT)
    until = time.monotonic() + LIMIT
    reach(running, is_reached or (lambda: len(blocks(folder)) >= at))
    os.kill(sorted(ranks_of(running))[victim] if victim is not None else running.pid, signal.SIGKILL)
    assert running.wait(timeout=LIMIT) != 0
    wait_for_lock(folder, until)


def reach(running, is_reached):
    until = time.monotonic() + LIMIT
    while not is_reached() and running.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    assert running.poll() is None, "the search has ended before"


def is_dead(pid):
    """Killed, but not yet waited for."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def wait_for_lock(folder, until):
    """Ranks whose mpirun is killed end by themselves, some with the search; the folder is locked until then."""
    while time.monotonic() < until:
        if has_ended(folder):
            return
        found = run(folder, 0, "info", "kept/0.part")
        lock = subprocess.run(["flock", "-n", "kept/lock", "true"], cwd=folder)
        if found.returncode == 0 and lock.returncode == 0:
            return
        time.sleep(0.05)
    raise AssertionError("kept/0.part cannot be read, or kept is locked")


def has_ended(folder):
    """All that was searched is there, and what was kept is removed."""
    return (folder / "out" / "manifest.json").exists() and not (folder / "kept").exists()


def check(folder, search, whole):
    ok(folder, 0, "merge", "out/", "-o", f"merged{whole.suffix}")
    assert (folder / f"merged{whole.suffix}").read_bytes() == whole.read_bytes()
    assert not (folder / "kept").exists()


@pytest.fixture
def tables(tmp_path):
    """table.npy, most of whose rows have copies, queries.npy, and few.npy, a filter."""
    generator = np.random.default_rng(8)
    np.save(tmp_path / "table.npy", generator.integers(0, 5, (500, 3)) / 4)
    np.save(tmp_path / "queries.npy", generator.integers(0, 5, (130, 3)) / 4)
    np.save(tmp_path / "few.npy", np.arange(500) % 3 == 1)


@pytest.mark.parametrize("ranks, search", [
    (1, "knn table.npy -k 7"),
    (3, "knn table.npy -k 60 --metric manhattan"),
    (3, "knn table.npy queries.npy -k 5 --filter few.npy"),
    (2, "radius table.npy -r 0.5"),
    (3, "radius table.npy queries.npy -r 0.75 --filter few.npy"),
    (3, "radius table.npy -r 0.5 --count"),
])
def test_blocks_of_ranks_are_the_file_of_one_process(tmp_path, tables, ranks, search):
    whole = tmp_path / ("whole.npy" if "--count" in search else "whole.npz")
    ok(tmp_path, 0, *search.split(), "-o", whole.name)
    told = ok(tmp_path, ranks, *search.split(), "-o", "out/", *EVERY_BLOCK, "--json").stdout
    count = json.loads(ok(tmp_path, ranks, *search.split(), "-o", "out2/", "--json").stdout)["neighbors"]
    assert json.loads(told)["neighbors"] == count
    check(tmp_path, search, whole)


SLOW_ROWS = 2500


@pytest.fixture
def slow(request, tmp_path):
    """A search of about a second."""
    rows = getattr(request, "param", SLOW_ROWS)
    np.save(tmp_path / "slow.npy", np.random.default_rng(1).normal(size=(rows, 5)))
    return ["slow.npy", "--metric", "minkowski", "--p", "3.5", "--threads", "1"]


SEARCHED = {}  # by the words of a search of SLOW_ROWS rows


def by_one_process(folder, search):
    """The file of such a search, which is done once."""
    whole = folder / ("whole.npy" if "--count" in search else "whole.npz")
    if tuple(search) not in SEARCHED:
        ok(folder, 0, *search, "-o", whole.name)
        SEARCHED[tuple(search)] = whole.read_bytes()
    whole.write_bytes(SEARCHED[tuple(search)])
    return whole


@pytest.mark.parametrize("search, ranks, victim, at, later", [
    (["knn", "-k", "9"], 3, 0, 1, 2),
    (["knn", "-k", "9"], 3, 2, 20, 4),
    (["radius", "-r", "0.5"], 2, 1, 8, 3),
    (["radius", "-r", "0.5", "--count"], 3, 1, 3, 2),
])
def test_a_killed_rank(tmp_path, slow, search, ranks, victim, at, later):
    search = [*search, *slow]
    whole = by_one_process(tmp_path, search)
    kill(tmp_path, ranks, victim, at, *search, "-o", "out/", *EVERY_BLOCK)
    go_on(tmp_path, search, whole, at, later)


# Ranks see only after a second that mpirun is gone.
@pytest.mark.parametrize("slow", [12_000], indirect=True)
def test_a_killed_mpirun(tmp_path, slow):
    search = ["knn", "-k", "9", *slow]
    whole = tmp_path / "whole.npz"
    ok(tmp_path, 0, *search, "-o", whole.name)
    kill(tmp_path, 2, None, 12, *search, "-o", "out/", *EVERY_BLOCK)
    if (tmp_path / "out" / "manifest.json").exists():
        ok(tmp_path, 0, *search, "-o", "out/", *EVERY_BLOCK)
        check(tmp_path, search, whole)
        pytest.skip("the ranks have ended the search before they saw that mpirun is gone")
    go_on(tmp_path, search, whole, 12, 0)


def go_on(tmp_path, search, whole, at, later):
    kept = len(blocks(tmp_path))
    assert kept >= at and not (tmp_path / "out" / "manifest.json").exists()
    # Another number of ranks twice: it is killed once more, and a block is lost.
    kill(tmp_path, max(1, later), 0, kept + 1, *search, "-o", "out/", *EVERY_BLOCK)
    (tmp_path / "kept" / "0.part").unlink()
    told = ok(tmp_path, later, *search, "-o", "out/", *EVERY_BLOCK)
    assert told.stderr.count("resumed from 'kept'") == 1, told
    check(tmp_path, search, whole)


@pytest.mark.parametrize("victim, at, later", [(0, 1, 2), (2, 9, 4)])
def test_a_stopped_rank(tmp_path, slow, victim, at, later):
    """The others end the job, which goes on with other ranks."""
    search = ["knn", "-k", "9", *slow]
    by_one_process(tmp_path, search)
    words = words_of(3, [*search, "-o", "out/", *EVERY_BLOCK, "--stall-limit", "2"])
    with open(tmp_path / "told", "w") as told:
        running = subprocess.Popen(words, cwd=tmp_path, stdout=told, stderr=told, env=ENVIRONMENT)
        reach(running, lambda: len(blocks(tmp_path)) >= at)
        stopped = sorted(ranks_of(running))[victim]
        os.kill(stopped, signal.SIGSTOP)
        assert running.wait(timeout=30) != 0
    sentences = {line for line in (tmp_path / "told").read_text().splitlines() if "did not come within" in line}
    assert all(f"rank {victim} did not come within 2000 ms" in line for line in sentences), sentences
    assert len(sentences) == 1, sentences
    assert not pathlib.Path(f"/proc/{stopped}").exists() or is_dead(stopped)
    wait_for_lock(tmp_path, time.monotonic() + LIMIT)
    ok(tmp_path, later, *search, "-o", "out/", *EVERY_BLOCK)
    check(tmp_path, search, tmp_path / "whole.npz")


def test_a_full_disk(tmp_path, slow, small_disk):
    """What was kept before is still there, and a larger disk is enough for the rest."""
    disk = small_disk("128k")
    (tmp_path / "kept").symlink_to(disk)
    search = ["knn", "-k", "9", *slow]
    by_one_process(tmp_path, search)
    ran = run(tmp_path, 3, *search, "-o", "out/", *EVERY_BLOCK)
    assert ran.returncode == 3 and len(errors(ran)) == 1, ran
    assert "No space left on device" in errors(ran)[0] and "rank " in errors(ran)[0], ran
    assert len(blocks(tmp_path)) >= 3 and not (tmp_path / "out" / "manifest.json").exists()
    assert not [path for path in disk.iterdir() if path.name not in ("job.json", "lock") and path.suffix != ".part"]
    subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
    told = ok(tmp_path, 2, *search, "-o", "out/", *EVERY_BLOCK)
    assert told.stderr.count("resumed from 'kept'") == 1, told
    ok(tmp_path, 0, "merge", "out/", "-o", "merged.npz")
    assert (tmp_path / "merged.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


@pytest.mark.parametrize("later", [0, 2])
def test_a_job_that_stops_between_files_and_record(tmp_path, slow, later):
    """All ranks have written their blocks, whose digests are not recorded. They are searched again."""
    search = ["knn", "-k", "9", *slow]
    by_one_process(tmp_path, search)

    def is_searching():
        kept = recorded(tmp_path)
        return len(kept) >= 6 and kept[3]["digest"] and not kept[-1]["digest"]

    kill(tmp_path, 3, 1, None, *search, "-o", "out/", *EVERY_BLOCK, is_reached=is_searching)
    begin = 0
    pending = 0
    for block in recorded(tmp_path):
        if not block["digest"]:
            (tmp_path / "kept" / f"{begin}.part").write_bytes(b"a block of other bytes")
            pending += 1
        begin = block["end"]
    if pending != 3:
        pytest.skip("the rank was killed between two rounds")
    if later:
        ok(tmp_path, later, *search, "-o", "out/", *EVERY_BLOCK)
        return check(tmp_path, search, tmp_path / "whole.npz")
    ok(tmp_path, 0, *search, "-o", "merged.npz", *EVERY_BLOCK)
    assert (tmp_path / "merged.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_a_lost_block_that_is_larger_than_a_share(tmp_path, tables):
    """It is cut, so that no rank needs more memory than is planned."""
    search = ["knn", "table.npy", "-k", "9"]
    ok(tmp_path, 0, *search, "-o", "whole.npz")
    with open("/dev/full", "w") as full:
        ran = subprocess.run([COMMAND, *search, "--resume", "kept", "--resume-every", "60"], cwd=tmp_path, stdout=full,
                             stderr=subprocess.PIPE, text=True, timeout=LIMIT)
    sizes = np.diff([0, *(block["end"] for block in recorded(tmp_path))])
    assert ran.returncode == 3 and max(sizes) > 200, (ran, sizes)
    for part in (tmp_path / "kept").glob("*.part"):
        part.unlink()
    (tmp_path / "out" / "manifest.json").mkdir(parents=True)
    resumed = [*search, "-o", "out/", *EVERY_BLOCK]
    assert run(tmp_path, 3, *resumed).returncode == 3
    sizes = np.diff([0, *(block["end"] for block in recorded(tmp_path))])
    assert max(sizes) <= 167 and sum(sizes) == 500, sizes
    (tmp_path / "out" / "manifest.json").rmdir()
    ok(tmp_path, 3, *resumed)
    check(tmp_path, search, tmp_path / "whole.npz")


def test_what_blocks_took_counts_once(tmp_path, tables):
    """Also that of a block whose rows several ranks have."""
    search = ["knn", "table.npy", "-k", "9"]
    with open("/dev/full", "w") as full:
        subprocess.run([COMMAND, *search, "--resume", "kept", "--resume-every", "60"], cwd=tmp_path, stdout=full,
                       stderr=subprocess.PIPE, timeout=LIMIT)
    assert 2 < len(blocks(tmp_path)) < 7
    shutil.copytree(tmp_path / "kept", tmp_path / "copy")
    one = json.loads(ok(tmp_path, 0, *search, "-o", "one.npz", "--resume", "copy", "--json").stdout)["stats"]
    ok(tmp_path, 7, *search, "-o", "out/", *EVERY_BLOCK)
    parts = json.loads(ok(tmp_path, 0, "merge", "out/", "-o", "merged.npz", "--json").stdout)["stats"]
    assert parts["distinct_rows"] == one["distinct_rows"]
    assert not abs(parts["search_seconds"] - one["search_seconds"]) > 1e-9 * one["search_seconds"], (parts, one)


def test_a_folder_that_hosts_do_not_share(tmp_path, tables):
    """Each rank has a folder of this name in its own working directory."""
    for rank in "01":
        (tmp_path / rank / "out").mkdir(parents=True)
        (tmp_path / rank / "kept").mkdir()
    lines = [f"cd $OMPI_COMM_WORLD_RANK && exec {COMMAND} knn ../table.npy -k 3 -o out/ --resume kept"]
    ran = subprocess.run([MPIRUN, "-n", "2", *OPTIONS, "sh", "-c", *lines], cwd=tmp_path, capture_output=True,
                         text=True, timeout=LIMIT, env=AT_ONCE)
    assert ran.returncode == 3 and len(errors(ran)) == 1, ran
    assert "--resume: 'kept/" in errors(ran)[0], ran
    assert "is not there; do all hosts share the folder?" in errors(ran)[0], ran


def test_one_process_goes_on_with_blocks_of_ranks(tmp_path, slow):
    search = ["knn", "-k", "9", *slow]
    by_one_process(tmp_path, search)
    kill(tmp_path, 2, 1, 5, *search, "-o", "out/", *EVERY_BLOCK)
    told = ok(tmp_path, 0, *search, "-o", "merged.npz", *EVERY_BLOCK)
    assert "resumed from 'kept'" in told.stderr
    assert (tmp_path / "merged.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


@pytest.mark.parametrize("ranks", [0, 2])
def test_the_output_is_another_folder(tmp_path, tables, ranks):
    """The files of --resume are removed at the end, and parts have the same names."""
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    for output, kept in [("new/", "new"), ("new/", "./new/"), ("there/", "there"), ("there/", tmp_path / "there"),
                         ("link/", "there"), ("there/", "link"), ("new/", "there/../new")]:
        ran = run(tmp_path, ranks, "knn", "table.npy", "-k", "3", "-o", output, "--resume", str(kept))
        assert ran.returncode == 2 and len(errors(ran)) == 1, ran
        assert f"--resume: '{kept}' is the folder of -o" in errors(ran)[0], ran
    assert not (tmp_path / "new").exists() and not list((tmp_path / "there").iterdir())


def test_what_is_refused_is_one_sentence(tmp_path, tables, slow):
    kill(tmp_path, 3, 1, 3, "knn", "-k", "9", *slow, "-o", "out/", *EVERY_BLOCK)
    block = tmp_path / "kept" / "64.part"
    data = bytearray(block.read_bytes())
    for words, code, sentence in [
        (["-k", "8", *slow], 2, "rank 0: --resume: 'kept/job.json' is of a job whose number of neighbors is 9"),
        (["-k", "9", "table.npy"], 2, "rank 0: --resume: 'kept/job.json' is of a job"),
        (["-k", "0", *slow], 2, "k: is 0, must be at least 1"),
        (["-k", "9", *slow, "--rows", ":9"], 2, "rank 0: --rows: needs a file for the part"),
        (["-k", "9", *slow, "--memory-limit", "10k"], 4, "rank 0: knn needs"),
    ]:
        ran = run(tmp_path, 2, "knn", *words, "-o", "out/", *EVERY_BLOCK)
        assert ran.returncode == code and len(errors(ran)) == 1 and sentence in errors(ran)[0], ran
    data[-40] ^= 1
    block.write_bytes(data)
    ran = run(tmp_path, 2, "knn", "-k", "9", *slow, "-o", "out/", *EVERY_BLOCK)
    assert ran.returncode == 3 and "rank 0: --resume: 'kept/64.part' is damaged" in errors(ran)[0], ran
    lines = [f"exec {COMMAND} knn table.npy -k 3 -o out/ --resume kept$OMPI_COMM_WORLD_RANK"]
    ran = subprocess.run([MPIRUN, "-n", "2", *OPTIONS, "sh", "-c", *lines], cwd=tmp_path, capture_output=True,
                         text=True, timeout=LIMIT, env=AT_ONCE)
    assert ran.returncode == 2 and "--resume: is not the folder of rank 0" in errors(ran)[0], ran

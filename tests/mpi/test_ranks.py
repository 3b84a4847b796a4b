"""Ranks that are processes under mpirun: the same results and bytes as in one process and among threads, and what
happens when one of them fails. No rank may hang: each run has a limit of time.

VICINAL_MPI_RANKS names the program (ranks.cpp).
"""

# ctest: COST 60
# ctest: TIMEOUT 2400

import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import time
import typing
import uuid

import pytest

from mpirun import AT_ONCE, MPIRUN, OPTIONS

PROGRAM = os.environ.get("VICINAL_MPI_RANKS", "")
MARK = "VICINAL_RUN_OF_RANKS"  # in the environment of a run's processes, by which they are found
LIMIT = 240  # s, of which a run takes one or two on a machine with nothing else to do, and ten if a rank stops

pytestmark = pytest.mark.skipif(not (PROGRAM and MPIRUN), reason="the plug-in for MPI is not built here, or no mpirun")


class Ran(typing.NamedTuple):
    code: int
    lines: list  # of standard output
    errors: str
    mark: str


def run(ranks, *words):
    """Fails where mpirun does not end."""
    mark = str(uuid.uuid4())
    command = [MPIRUN, "-n", str(ranks), *OPTIONS, PROGRAM, *map(str, words)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env={**AT_ONCE, MARK: mark})
    except subprocess.TimeoutExpired:
        for process in left_of(mark):
            os.kill(process, signal.SIGKILL)
        raise
    return Ran(ran.returncode, ran.stdout.splitlines(), ran.stderr, mark)


def left_of(mark):
    """Processes of a run."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if os.fsencode(f"{MARK}={mark}") in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:  # it has ended, or is somebody else's
            pass
    return found


def sentences(lines):
    """What ranks threw, as ranks.cpp prints it."""
    return [line.removeprefix("error ") for line in lines if line.startswith("error ")]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_operation(ranks):
    ran = run(ranks, "operations", 1 << 24)
    assert ran.code == 0, ran


@pytest.mark.parametrize("piece", [64, 1000, 5601])
def test_messages_in_pieces(piece):
    ran = run(3, "operations", piece)
    assert ran.code == 0, ran


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_same_bits_and_bytes(ranks):
    ran = run(ranks, "results")
    assert ran.code == 0, ran


def test_same_bits_in_pieces():
    ran = run(2, "results", 104)
    assert ran.code == 0, ran


def test_ranks_of_a_host():
    ran = run(3, "hosts")
    assert ran.code == 0 and ran.lines == ["3"] * 3, ran


@pytest.mark.parametrize("level", ["single", "multiple"])
def test_program_that_starts_mpi_itself(level):
    ran = run(3, "own", level)
    assert ran.code == 0, ran


@pytest.mark.parametrize("case, sentence", [
    ("operation", "communicator: rank 0 is in a sum of 16 bytes, but rank 1 in a barrier"),
    ("size", "communicator: rank 0 is in a maximum of 16 bytes, but rank 2 in a maximum of 8 bytes"),
    ("root", "communicator: rank 0 is in a broadcast of rank 0 of 16 bytes, but rank 2 in a broadcast of rank 1 of 16 "
             "bytes"),
    ("sent", "communicator: rank 2 expects 16 bytes of rank 1, which sends 8 to rank 2"),
    ("parts", "communicator: ranks 0 and 2 expect parts of different sizes"),
    ("abandon", "rank 2: the disk is full"),
    ("long", "rank 2: xxxx...xxxx, 1507 bytes"),
])
def test_all_ranks_throw_one_sentence(case, sentence):
    ran = run(3, "wrong", case)
    assert ran.code == 1 and sentences(ran.lines) == [f"3: {sentence}"] * 3, ran


def test_a_rank_that_leaves_is_named():
    ran = run(3, "wrong", "leave")
    assert ran.code == 1 and sentences(ran.lines) == ["3: communicator: rank 1 has left"] * 2, ran


def test_options_must_be_the_same():
    ran = run(2, "pieces")
    assert ran.code == 1 and sentences(ran.lines) == ["1: piece_bytes: is not the same on ranks 0 and 1"] * 2, ran


@pytest.mark.parametrize("bad, row", [(0, 2), (1, 5), (2, 285)])
def test_a_nan_of_one_rank_is_an_error_of_all(bad, row):
    ran = run(3, "fails", "nan", bad)
    sentence = f"2: rank {bad}: table: row {row}, column 1 is not a finite number"
    assert ran.code == 0 and ran.lines == [sentence] * 3, ran


@pytest.mark.parametrize("kind, bad, begin", [("memory", 1, "4: rank 1: "), ("cancel", 2, "6: rank 2: cancelled")])
def test_what_one_rank_lacks_is_an_error_of_all(kind, bad, begin):
    ran = run(3, "fails", kind, bad)
    assert ran.code == 0 and len(ran.lines) == 3 and len(set(ran.lines)) == 1, ran
    assert ran.lines[0].startswith(begin), ran


# Each rank early, in the middle and at the end, but not each by every kind.
@pytest.mark.parametrize("kind, rank, round_", [
    ("kill", 0, 0), ("kill", 2, 29), ("quit", 0, 14), ("quit", 2, 0), ("terminate", 1, 0), ("throw", 2, 14),
    ("throw", 0, 29)])
def test_a_rank_that_dies_ends_the_job(kind, rank, round_):
    ran = run(3, "fault", kind, rank, round_)
    assert ran.code != 0, ran


@pytest.mark.parametrize("rank, round_", [(0, 0), (1, 14), (2, 29), (0, 29), (2, 0)])
def test_a_rank_that_exits_is_named(rank, round_):
    ran = run(3, "fault", "exit", rank, round_)
    assert ran.code != 0, ran
    assert set(sentences(ran.lines)) <= {f"3: communicator: rank {rank} has left"}, ran


def test_exit_while_a_thread_is_in_an_operation_ends_the_job():
    ran = run(3, "fault", "exit-within", 1, 5)
    assert ran.code != 0, ran
    assert set(sentences(ran.lines)) <= {"3: communicator: rank 1 has left"}, ran


# Whoever sees it first ends the job, so that not all may come to print it.
@pytest.mark.parametrize("rank", [0, 1])
def test_an_error_of_mpi_on_one_rank_is_an_error_of_all(rank):
    ran = run(3, "fault", "mpi", rank, 5)
    assert ran.code != 0, ran
    said = set(sentences(ran.lines))
    assert len(said) == 1 and said.pop().startswith(f"3: rank {rank}: communicator: MPI: MPI_ERR_INTERN"), ran


def test_a_pause_within_the_limit_is_no_error():
    ran = run(3, "fault", "pause", 1, 5)
    assert ran.code == 0 and ran.lines == [], ran


STOPS = [("stop", 0, 0), ("stop", 1, 14), ("stop-within", 0, 0), ("stop-within", 2, 0)]
WAITS = [*((3, "fault", *stop) for stop in STOPS), (3, "fault", "late", 1, 5), (2, "alone")]


@pytest.fixture(scope="module")
def waiting():
    """Runs whose ranks wait most of their time for one that does not come, three at once."""
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        yield {words: pool.submit(run, *words) for words in WAITS}


@pytest.mark.parametrize("kind, rank, round_", STOPS)
def test_a_stopped_rank_is_named_and_ends(waiting, kind, rank, round_):
    ran = waiting[3, "fault", kind, rank, round_].result()
    assert ran.code != 0, ran
    said = set(sentences(ran.lines))
    late = re.compile(rf"3: communicator: rank {rank} did not come within 5000 ms to a (sum|barrier)")
    assert said and all(late.fullmatch(line) for line in said), ran
    # mpirun may end before the ranks that it has killed.
    for _ in range(100):
        if not left_of(ran.mark):
            return
        time.sleep(0.1)
    assert not left_of(ran.mark), ran


def test_a_late_rank_is_named(waiting):
    ran = waiting[3, "fault", "late", 1, 5].result()
    assert ran.code != 0, ran
    assert set(sentences(ran.lines)) == {"3: communicator: rank 1 did not come within 5000 ms to a sum"}, ran


def test_the_code_of_an_error_remains_if_rank_0_does_not_come(waiting):
    ran = waiting[2, "alone"].result()
    assert ran.code != 0, ran
    said = sentences(ran.lines)
    assert len(said) == 1 and said[0].startswith("4: rank 1: memory: the system refused"), ran

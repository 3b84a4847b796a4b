"""Ranks that are processes under mpirun: the same results and bytes as in one process and among threads, and what
happens when one of them fails. No rank may hang: each run has a limit of time.

VICINAL_MPI_RANKS names the program (ranks.cpp).
"""

# ctest: COST 40

import os
import pathlib
import re
import shutil
import subprocess

import pytest

PROGRAM = os.environ.get("VICINAL_MPI_RANKS", "")
MPIRUN = shutil.which("mpirun")
# Ranks of the library sleep while they wait, and need no yielding of Open MPI's, which takes long beside other work.
OPTIONS = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "0", "--mca", "btl", "self,vader"]
# Open MPI asks for both before it runs as root.
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
LIMIT = 60  # s, of which a run takes one or two on a machine with nothing else to do

pytestmark = pytest.mark.skipif(not (PROGRAM and MPIRUN), reason="the plug-in for MPI is not built here, or no mpirun")


def run(ranks, *words, options=()):
    """(exit code, lines of both streams); fails where mpirun does not end."""
    command = [MPIRUN, "-n", str(ranks), *OPTIONS, *options, PROGRAM, *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=ENVIRONMENT)
    return ran.returncode, (ran.stdout + ran.stderr).splitlines()


def sentences(lines):
    """What ranks threw, as ranks.cpp prints it."""
    return [line.removeprefix("error ") for line in lines if line.startswith("error ")]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_operation(ranks):
    code, lines = run(ranks, "operations", 1 << 24)
    assert code == 0, lines


@pytest.mark.parametrize("piece", [64, 1000, 5601])
def test_messages_in_pieces(piece):
    code, lines = run(3, "operations", piece)
    assert code == 0, lines


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_same_bits_and_bytes(ranks):
    code, lines = run(ranks, "results")
    assert code == 0, lines


def test_same_bits_in_pieces():
    code, lines = run(2, "results", 104)
    assert code == 0, lines


def test_ranks_of_a_host():
    assert run(3, "hosts") == (0, ["3"] * 3)


@pytest.mark.parametrize("level", ["single", "multiple"])
def test_program_that_starts_mpi_itself(level):
    code, lines = run(3, "own", level)
    assert code == 0, lines


@pytest.mark.parametrize("case, sentence", [
    ("operation", "communicator: rank 0 is in a sum of 16 bytes, but rank 1 in a barrier"),
    ("size", "communicator: rank 0 is in a maximum of 16 bytes, but rank 2 in a maximum of 8 bytes"),
    ("root", "communicator: rank 0 is in a broadcast of rank 0 of 16 bytes, but rank 2 in a broadcast of rank 1 of 16 "
             "bytes"),
    ("sent", "communicator: rank 2 expects 16 bytes of rank 1, which sends 8 to rank 2"),
    ("parts", "communicator: ranks 0 and 2 expect parts of different sizes"),
    ("abandon", "rank 2: the disk is full"),
])
def test_all_ranks_throw_one_sentence(case, sentence):
    code, lines = run(3, "wrong", case)
    assert code == 1 and sentences(lines) == [f"3: {sentence}"] * 3, lines


def test_a_rank_that_leaves_is_named():
    code, lines = run(3, "wrong", "leave")
    assert code == 1 and sentences(lines) == ["3: communicator: rank 1 has left"] * 2, lines


def test_options_must_be_the_same():
    code, lines = run(2, "pieces")
    assert code == 1 and sentences(lines) == ["1: piece_bytes: is not the same on ranks 0 and 1"] * 2, lines


@pytest.mark.parametrize("bad, row", [(0, 2), (1, 5), (2, 285)])
def test_a_nan_of_one_rank_is_an_error_of_all(bad, row):
    code, lines = run(3, "fails", "nan", bad)
    assert (code, lines) == (0, [f"2: rank {bad}: table: row {row}, column 1 is not a finite number"] * 3)


@pytest.mark.parametrize("kind, bad, begin", [("memory", 1, "4: rank 1: "), ("cancel", 2, "6: rank 2: cancelled")])
def test_what_one_rank_lacks_is_an_error_of_all(kind, bad, begin):
    code, lines = run(3, "fails", kind, bad)
    assert code == 0 and len(lines) == 3 and len(set(lines)) == 1 and lines[0].startswith(begin), lines


# Each rank early, in the middle and at the end, but not each by every kind.
@pytest.mark.parametrize("kind, rank, round_", [
    ("kill", 0, 0), ("kill", 1, 14), ("kill", 2, 29), ("quit", 0, 14), ("quit", 1, 29), ("quit", 2, 0),
    ("terminate", 0, 29), ("terminate", 1, 0), ("throw", 2, 14), ("throw", 0, 0)])
def test_a_rank_that_dies_ends_the_job(kind, rank, round_):
    code, lines = run(3, "fault", kind, rank, round_)
    assert code != 0, lines


@pytest.mark.parametrize("rank, round_", [(0, 0), (1, 14), (2, 29), (0, 29), (2, 0)])
def test_a_rank_that_exits_is_named(rank, round_):
    code, lines = run(3, "fault", "exit", rank, round_)
    assert code != 0, lines
    assert set(sentences(lines)) <= {f"3: communicator: rank {rank} has left"}, lines


# Whoever sees it first ends the job, so that not all may come to print it.
@pytest.mark.parametrize("kind, rank, round_", [("stop", 0, 0), ("stop", 1, 14), ("stop", 2, 29), ("stop", 0, 29),
                                                ("stop", 2, 0), ("stop-within", 0, 0), ("stop-within", 1, 0),
                                                ("stop-within", 2, 0)])
def test_a_stopped_rank_is_named_and_ends(kind, rank, round_):
    code, lines = run(3, "fault", kind, rank, round_)
    assert code != 0, lines
    said = set(sentences(lines))
    late = re.compile(rf"3: communicator: rank {rank} did not come within 1500 ms to a (sum|barrier)")
    assert said and all(late.fullmatch(line) for line in said), lines
    left = [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if is_rank(path)]
    assert not left, left


def is_rank(path):
    try:
        return path.read_bytes().startswith(os.fsencode(PROGRAM))
    except OSError:  # it has ended
        return False


def test_a_pause_within_the_limit_is_no_error():
    code, lines = run(3, "fault", "pause", 1, 5)
    assert (code, lines) == (0, [])


@pytest.mark.parametrize("rank", [0, 1])
def test_a_late_rank_is_named(rank):
    code, lines = run(3, "fault", "late", rank, 5)
    assert code != 0, lines
    assert set(sentences(lines)) == {f"3: communicator: rank {rank} did not come within 1500 ms to a sum"}, lines

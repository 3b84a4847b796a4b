"""Ranks beside threads: 2 ranks of 1 thread and 1 process of 2 threads, in turns, in one run.

    ranks.py --bench build/release/bench/vicinal-bench [-o FILE.json] [--turns N] [--scale X] [--machine NAME]
             [--commit ID] [JOB...]

Jobs are those of `vicinal-bench ranks`: knn-queries (200,000 x 64, 10,000 queries), knn-within (60,000 x 64), kmeans
(1,000,000 x 16, K = 100), lof (200,000 x 8), and parts: knn of one process beside the same search through one part.
Both ways make the data and run the job once; then, in each turn, one runs it while the other waits. `speed` is the
median time of the process over that of the ranks, `best_speed` the least time of the one over that of the other. All
answers are compared bit for bit; others are an error. Needs mpirun and an idle machine.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
from result import add_options, processor, write  # noqa: E402

JOBS = ["knn-queries", "knn-within", "kmeans", "lof"]
RANKS = 2
# Ranks of the library sleep while they wait, and need no yielding of Open MPI's. Containers may refuse the reading of
# another process's memory, by which Open MPI copies.
MPIRUN = ["mpirun", "-n", str(RANKS), "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "0",
          "--mca", "btl", "self,vader", "--mca", "btl_vader_single_copy_mechanism", "none"]
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


class Way:
    """A process, or ranks, that run the job once whenever they are asked."""

    def __init__(self, command, turns):
        self.command = [*command, "--on-request", "--repeat", str(turns)]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True, env=ENVIRONMENT)

    def seconds(self):
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            return float(self.process.stdout.readline())
        except (OSError, ValueError):
            self.fail()

    def told(self):
        rest = self.process.stdout.read()
        if self.process.wait() != 0:
            self.fail()
        return json.loads(rest)

    def fail(self):
        self.process.kill()
        self.errors.seek(0)
        sys.exit(f"{' '.join(self.command)}\n{self.errors.read()}")


def measured(options, job):
    command = [options.bench, "ranks", "--job", job, "--scale", str(options.scale), "--json"]
    ways = {"process": Way([*command, "--threads", str(RANKS)], options.turns),
            "ranks": Way([*MPIRUN, *command, "--threads", "1"], options.turns)}
    times = {way: [] for way in ways}
    for _ in range(options.turns):
        for way, its in ways.items():
            times[way].append(its.seconds())
    told = {way: its.told() for way, its in ways.items()}
    if told["process"]["bits"] != told["ranks"]["bits"]:
        sys.exit(f"{job}: the ranks give other bits than the process")
    return {"job": job, "shape": told["process"]["shape"], "process_seconds": times["process"],
            "ranks_seconds": times["ranks"], **compared(times["process"], times["ranks"]),
            "reason": told["ranks"]["reason"]}


def compared(one, other):
    """Speed of the other way in parts of the first one's: by the medians of all times, and by the least ones, from
    which what else the machine does has taken the least."""
    return {"speed": statistics.median(one) / statistics.median(other), "best_speed": min(one) / min(other)}


def measured_parts(options):
    told = run([options.bench, "ranks", "--job", "parts", "--scale", str(options.scale), "--repeat",
                str(options.turns), "--threads", str(RANKS), "--json"])
    if told["bits"] != told["bits_by_parts"]:
        sys.exit("parts: merging gives other bits")
    return {"job": "parts", "shape": told["shape"], "process_seconds": told["seconds"],
            "parts_seconds": told["seconds_by_parts"], **compared(told["seconds"], told["seconds_by_parts"])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="those that run; nothing: all")
    parser.add_argument("--bench", default="build/release/bench/vicinal-bench")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--scale", type=float, default=1, help="times the rows and queries")
    add_options(parser)
    options = parser.parse_args()
    unknown = set(options.jobs) - {*JOBS, "parts"}
    if unknown:
        parser.error(f"no job is named {sorted(unknown)[0]}")
    if shutil.which("mpirun") is None:
        parser.error("mpirun is not installed")
    lines = []
    for job in options.jobs or [*JOBS, "parts"]:
        line = measured_parts(options) if job == "parts" else measured(options, job)
        lines.append(line)
        other = line.get("ranks_seconds") or line["parts_seconds"]
        print(f"{job}, {line['shape']}: process {statistics.median(line['process_seconds']):.3f} s, "
              f"{'parts' if job == 'parts' else 'ranks'} {statistics.median(other):.3f} s, {100 * line['speed']:.1f} %, "
              f"at best {100 * line['best_speed']:.1f} %", flush=True)
        write(options, {"script": "bench/ranks.py", "processor": processor(), "ranks": RANKS, "scale": options.scale,
                        "turns": options.turns, "lines": lines})


if __name__ == "__main__":
    main()

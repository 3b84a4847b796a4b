"""Rate and peak memory of `vicinal lof --model MODEL -`: rows of a CSV from standard input, as fast as they are taken.

    python bench/lof_stream.py COMMAND KDD.gz [-o RESULT.json]

The model is fitted on the first 20,000 connections of KDD Cup 99 (41 columns, text ones as codes, standard scale, k =
20); the next ones come through a pipe, in numbers that grow, so that peak memory is seen not to. The rate is of the
longest run, from the start of the command to its last answer.
"""

import argparse
import datetime
import gzip
import itertools
import json
import os
import platform
import subprocess
import tempfile
import time


def peak_of(pid):
    """Bytes of memory that a process had at most since it is this program; wait4 would count what forked it."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def stream(command, model, lines):
    """Seconds until the last answer, and peak memory in bytes, of one run over all lines."""
    last = str(len(lines) - 1).encode()
    with tempfile.TemporaryFile() as answers:
        begin = time.monotonic()
        running = subprocess.Popen([command, "lof", "--model", model, "-", "-q"], stdin=subprocess.PIPE, stdout=answers)
        running.stdin.writelines(lines)
        running.stdin.flush()
        tail = b""
        while tail.split(b",")[0] != last:
            assert running.poll() is None
            time.sleep(0.001)
            size = os.fstat(answers.fileno()).st_size
            written = os.pread(answers.fileno(), 200, max(0, size - 200)).splitlines()
            tail = written[-1] if written else b""
        seconds = time.monotonic() - begin
        peak = peak_of(running.pid)
        running.stdin.close()
        assert running.wait() == 0
    return seconds, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command")
    parser.add_argument("kdd")
    parser.add_argument("-o", "--output")
    given = parser.parse_args()
    given.command = os.path.abspath(given.command)
    with gzip.open(given.kdd) as file:
        lines = [line.rpartition(b",")[0] + b"\n" for line in itertools.islice(file, 220_000)]
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/train.csv", "wb") as train:
            train.writelines(lines[:20_000])
        model = f"{folder}/model.vlof"
        options = ["--categories", "ordinal", "--scale", "standard", "-k", "20", "--top", "0", "-q"]
        subprocess.run([given.command, "lof", f"{folder}/train.csv", *options, "--save-model", model], check=True)
        for rows in (2_000, 20_000, 200_000):
            seconds, peak = stream(given.command, model, lines[20_000 : 20_000 + rows])
            runs.append({"rows": rows, "seconds": round(seconds, 3), "rows_a_second": round(rows / seconds), "peak_bytes": peak})
            print(runs[-1], flush=True)
    version = subprocess.run([given.command, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    with open("/proc/cpuinfo") as file:
        processor = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    result = {"command": "lof --model MODEL -", "date": datetime.date.today().isoformat(), "version": version,
              "machine": {"processor": processor, "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0]},
              "model": {"data": "KDD Cup 99, first 20,000 rows", "columns": 41, "k": 20}, "runs": runs}  # fmt: skip
    if given.output:
        with open(given.output, "w") as file:
            json.dump(result, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()

"""Reading of CSV beside pandas (C engine) and pyarrow: the same numbers, and how fast.

    read_csv.py --command build/release/bench/vicinal-bench [--bytes 1e9] [--threads 2] [--repeat 5] [-o result.json]

A file of 41 columns is made: whole numbers, rates of two decimals, and float64 as text that reads back. Each reads it in
turns, every time in a process of its own, after one reading that warms the page cache; seconds and processor seconds (user
and system, all threads) are of the call alone. pandas reads with its default settings, pyarrow with as many threads as we.
Numbers are held bit for bit against pyarrow's and against pandas' with float_precision='round_trip'; how many differ from
those of its default, which older versions do not round correctly, is counted. Needs pandas and pyarrow.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

import numpy as np

COLUMNS = 41
NAMES = [f"x{j}" for j in range(COLUMNS)]
READERS = {
    "pyarrow": "pa.set_cpu_count(threads); table = pc.read_csv(file)",
    "pyarrow_float64": "pa.set_cpu_count(threads); table = pc.read_csv(file, convert_options=pc.ConvertOptions(column_types=dict.fromkeys(names, pa.float64())))",
    "pandas": "table = pd.read_csv(file)",
}
CHILD = """
import json, resource, sys, time
file, threads, names = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
import {module}
before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
{read}
seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({{"seconds": seconds, "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}}))
"""


def make_file(path, size):
    generator = np.random.default_rng(1)
    rows = 50_000
    kinds = (
        lambda: map(str, generator.integers(0, 512, rows)),
        lambda: ("%.2f" % v for v in generator.random(rows)),
        lambda: map(str, (generator.exponential(1, rows) * 1000).astype(int)),
        lambda: (repr(float(v)) for v in generator.normal(size=rows)),
    )
    written = 0
    with open(path, "w") as file:
        written += file.write(",".join(NAMES) + "\n")
        blocks = []
        while written < size:
            if len(blocks) < 8:  # then they come again: the values, not their number, are what takes time
                blocks.append("\n".join(map(",".join, zip(*(kinds[j % 4]() for j in range(COLUMNS))))) + "\n")
                block = blocks[-1]
            else:
                block = blocks[(written // len(blocks[0])) % 8]
            written += file.write(block)


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def equal_bits(command, file, folder):
    """Numbers of ours that differ from pyarrow's, from pandas' correctly rounded ones, and from pandas' default."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.csv as pc

    # The command of the build tree that vicinal-bench is in.
    vicinal = pathlib.Path(command).resolve().parents[1] / "cli" / "vicinal"
    subprocess.run([vicinal, "convert", file, folder / "ours.npy", "--quiet"], check=True)
    ours = np.load(folder / "ours.npy", mmap_mode="r").view(np.int64)
    types = pc.ConvertOptions(column_types=dict.fromkeys(NAMES, pa.float64()))
    found = {"numbers": ours.size}
    for name, read in (
        ("pyarrow", lambda: pc.read_csv(file, convert_options=types)),
        ("pandas_round_trip", lambda: pd.read_csv(file, dtype=np.float64, float_precision="round_trip")),
        ("pandas_default", lambda: pd.read_csv(file, dtype=np.float64)),
    ):
        table = read()
        found[name] = sum(
            int((np.asarray(table[column], np.float64).view(np.int64) != ours[:, j]).sum()) for j, column in enumerate(NAMES)
        )
        del table
    return found


def timed(arguments, file):
    command = [arguments.command, "read", file, "--repeat", "1", "--threads", arguments.threads, "--json", "--quiet"]
    told = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout
    turn = {"vicinal": json.loads(told)["runs"][0]}
    for name, read in READERS.items():
        module = "pandas as pd" if name == "pandas" else "pyarrow as pa, pyarrow.csv as pc"
        child = [sys.executable, "-c", CHILD.format(module=module, read=read), file, arguments.threads, json.dumps(NAMES)]
        turn[name] = json.loads(subprocess.run(list(map(str, child)), check=True, capture_output=True, text=True).stdout)
    return turn


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", required=True)
    parser.add_argument("--bytes", type=float, default=1e9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("-o", "--output")
    arguments = parser.parse_args()
    import pandas
    import pyarrow

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        file = folder / "table.csv"
        make_file(file, arguments.bytes)
        timed(arguments, file)
        turns = [timed(arguments, file) for _ in range(arguments.repeat)]
        result = {
            "command": "bench/peers/read_csv.py",
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "commit": arguments.commit,
            "versions": {"pandas": pandas.__version__, "pyarrow": pyarrow.__version__, "python": platform.python_version()},
            "machine": {"cpu": processor(), "cores": os.cpu_count()},
            "load": os.getloadavg()[0],
            "bytes": file.stat().st_size,
            "columns": COLUMNS,
            "threads": arguments.threads,
            "turns": turns,
            "different_bits": equal_bits(arguments.command, file, folder),
        }
    result["least"] = {name: {what: min(turn[name][what] for turn in turns) for what in ("seconds", "cpu")} for name in turns[0]}
    result["median"] = {
        name: {what: statistics.median(turn[name][what] for turn in turns) for what in ("seconds", "cpu")} for name in turns[0]
    }
    for name, took in result["median"].items():
        least = result["least"][name]
        print(f"{name:16} median {took['seconds']:6.2f} s, {took['cpu']:6.2f} s of processors; "
              f"least {least['seconds']:6.2f} s, {least['cpu']:6.2f} s")
    print("different bits:", result["different_bits"])
    if arguments.output:
        pathlib.Path(arguments.output).write_text(json.dumps(result, indent=1) + "\n")
    wrong = result["different_bits"]["pyarrow"] + result["different_bits"]["pandas_round_trip"]
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

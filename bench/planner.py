"""What the planner's question costs: `vicinal-bench knn` with method automatic, kdtree and fused, in turns.

    planner.py --command build/release/bench/vicinal-bench --commit ID -o planner.json [NAME...]

NAMEs are those of the group knn in peers/suite/catalog.py, without "knn-"; all where none is given. kdd needs the
table that `vicinal-bench peers knn-kdd` writes into build/bench: -o is in the same folder. Each method first makes one
call; kdtree or fused that takes more than three times as long as automatic then, or whose process takes ten times as
long, takes no further part. The others take --turns turns, each a process of its own that makes two calls and times the
second. The row is put into the JSON file, whose other rows are kept.
`ratio` is automatic's median over the better of the other two, `ratio_of_least` the same of the least times.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers" / "suite"))
import catalog  # noqa: E402


def call(options, method, warmup, timeout=None):
    words = [options.command, "knn", *options.words, "--method", method, "--warmup", str(warmup), "--repeat",
             "1", "--device", "cpu", "--json"]
    told = subprocess.run(words, check=True, capture_output=True, text=True, timeout=timeout).stdout
    return json.loads(told)


def once(options, method, timeout):
    """Seconds of a first call, or None where its process takes longer than `timeout`."""
    try:
        return call(options, method, 0, timeout)["seconds"]["min"]
    except subprocess.TimeoutExpired:
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", required=True)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--commit")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    known = catalog.planner_rows()
    for name in options.names:
        if name not in known:
            parser.error(f"there is no data set '{name}'; there are: {' '.join(known)}")
    for name in options.names or known:
        options.name = name
        options.words = shlex.split(known[name].format(work=shlex.quote(str(options.output.resolve().parent))))
        if name == "kdd" and not pathlib.Path(options.words[1]).exists():
            print(f"kdd: left out, `vicinal-bench peers knn-kdd` makes {options.words[1]}")
            continue
        measure(options)


def measure(options):
    began = time.perf_counter()
    first = {"automatic": once(options, "automatic", None)}
    timeout = 10 * (time.perf_counter() - began)
    for method in ("kdtree", "fused"):
        first[method] = once(options, method, timeout)
    taking_part = [method for method, took in first.items() if took and took <= 3 * first["automatic"]]
    seconds = {method: [] for method in taking_part}
    for turn in range(options.turns):
        begin = turn % len(taking_part)
        for method in taking_part[begin:] + taking_part[:begin]:
            told = call(options, method, 1)
            seconds[method] += told["seconds"]["runs"]
            if method == "automatic":
                plan, machine = told["plan"], told["machine"]
    row = {"arguments": options.words, "commit": options.commit,
           "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machine": machine, "plan": plan,
           "first_call": first, "first_call_timeout": timeout}
    for method, runs in seconds.items():
        row[method] = {"median": statistics.median(runs), "min": min(runs), "runs": runs}
    others = [row[method] for method in taking_part if method != "automatic"]
    row["ratio"] = row["automatic"]["median"] / min(other["median"] for other in others)
    row["ratio_of_least"] = row["automatic"]["min"] / min(other["min"] for other in others)
    rows = json.loads(options.output.read_text()) if options.output.exists() else {}
    rows = {"machine": machine, "date": row["date"], "commit": options.commit, **rows, options.name: row}
    options.output.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"{options.name}: {plan['method']}, ratio {row['ratio']:.3f}, of the least times {row['ratio_of_least']:.3f}")


if __name__ == "__main__":
    main()

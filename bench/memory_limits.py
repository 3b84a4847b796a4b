"""Memory limits of every subcommand: is the first number that a refusal names enough, and does a run keep its limit?

    memory_limits.py --command build/release/cli/vicinal --commit ID -o limits.json [--only knn-npy,lof-npy]

Each case runs without a limit, then with --memory-limit 1, whose refusal names a number of bytes: the first number
told. Then it runs at that number, at nine shares of it, and at one byte less. A run that fails at the first number is
told another one; `numbers` counts how many are told until a run succeeds. Peak resident size is wait4's ru_maxrss, with
all pages of mapped inputs that were touched; `base` is that of `vicinal --version`. `over` is the worst peak minus
limit of all runs with a limit from the base on that were not refused by the parser; `slower` the least time of three
at the first number over that without a limit.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

# Name: words of the command, in the folder of the inputs. OUT is replaced by a name of its own.
CASES = {
    "knn-npy": "knn t.npy q.npy -k 20 -o OUT.npz",
    "knn-self": "knn low.npy -k 10 -o OUT.npz",
    "knn-csv": "knn t.csv -k 10 -o OUT.csv",
    "knn-gz": "knn t.npy.gz q.npy -k 10 -o OUT.npz",
    "knn-int": "knn whole.npy q.npy -k 10 -o OUT.npz",
    "classify-npy": "classify t.npy q.npy --labels labels.npy -k 10 -o OUT.csv",
    "classify-csv": "classify t.csv q.csv --label class -k 10 -o OUT.csv",
    "classify-text": "classify t.npy q.npy --labels labels.txt -k 10 -o OUT.csv",
    "regress-npy": "regress t.npy q.npy --targets targets.npy -k 10 -o OUT.npy",
    "regress-csv": "regress t.csv q.csv --target class -k 10 -o OUT.csv",
    "radius-npy": "radius low.npy -r 0.03 -o OUT.npz",
    "radius-count": "radius low.npy -r 0.03 --count -o OUT.npy",
    "radius-report": "radius low.npy -r 0.03 -o OUT.npz --report OUT.html",
    "radius-graph": "radius low.npy -r 0.03 -o OUT.npz --include-self --symmetric union --layout scipy",
    "radius-float32": "radius low.npy -r 0.03 -o OUT.npz --distances float32",
    "radius-all": "radius low.npy few.npy -r 9 -o OUT.npz",
    "classify-radius": "classify t.npy q.npy --labels labels.npy -r 6 -o OUT.csv --outlier 0",
    "regress-radius": "regress t.npy q.npy --targets targets.npy -r 6 -o OUT.npy --outlier 0",
    "classify-missing": "classify gaps.npy q.npy --labels labels.npy -k 10 --missing drop -o OUT.csv",
    "knn-missing": "knn gaps.npy q.npy -k 10 --missing mean -o OUT.npz",
    "knn-graph": "knn low.npy -k 10 --include-self --symmetric union --layout scipy -o OUT.npz",
    "impute-mean": "impute gaps.npy -o OUT.npy --method mean",
    "impute-knn": "impute some_gaps.npy -o OUT.csv --method knn",
    "lof-npy": "lof low.npy -k 20 -o OUT.csv",
    "lof-csv": "lof t.csv --drop class -k 20 -o OUT.npy",
    "kmeans-npy": "kmeans t.npy -c 20 --max-iterations 10 -o OUT.csv",
    "kmeans-csv": "kmeans t.csv --drop class -c 20 --max-iterations 10 -o OUT.npz",
    "lle-npy": "lle swiss.npy -k 12 --dim 2 -o OUT.npy",
    "lle-large": "lle roll.npy -k 12 --dim 2 -o OUT.npy",
    "lle-csv": "lle swiss.csv -k 12 --dim 2 -o OUT.csv",
    "dbscan-npy": "dbscan low.npy --eps 0.03 -o OUT.csv",
    "hdbscan-npy": "hdbscan low.npy -o OUT.csv",
    "hdbscan-soft": "hdbscan low.npy -o OUT.csv --memberships OUT.npy",
    "hdbscan-model": "hdbscan few.npy --model low.vhd -o OUT.csv",
    "hdbscan-model-soft": "hdbscan low.npy --model low.vhd -o OUT.csv --memberships OUT.npy",
    "optics-npy": "optics low.npy -o OUT.csv",
    "spanning-tree": "spanning-tree low.npy -o OUT.npz",
    "match": "match old.geojson new.geojson --planar -o OUT.csv",
    "match-gpkg": "match old.geojson new.geojson --planar -o OUT.gpkg",
    "cocluster": "cocluster edges.csv -o OUT.csv",
    "cocluster-spectral": "cocluster edges.csv --method spectral -c 2 -o OUT.csv",
    "cocluster-split": "cocluster edges.csv --split-members 10 -o OUT.csv",
    "convert-csv": "convert t.csv OUT.npy",
    "convert-npy": "convert t.npy OUT.csv",
    "convert-libsvm": "convert t.npy OUT.libsvm",
    "info-csv": "info t.csv",
    "info-npy": "info t.npy",
    "convert-fortran": "convert columns.npy OUT.csv",
    "info-fortran": "info columns.npy",
    "info-wide": "info wide.npy --json",
    "generate": "generate blobs -n 200000 -o OUT.npy",
}


def make_inputs(folder):
    """Runs in a process of its own: a child's ru_maxrss begins at what its parent held."""
    import gzip

    import numpy as np

    os.chdir(folder)
    draws = np.random.default_rng(24)
    table = draws.normal(size=(100_000, 32)).astype(np.float32)
    queries = draws.normal(size=(2_000, 32)).astype(np.float32)
    labels = draws.integers(0, 10, len(table))
    np.save("t.npy", table)
    np.save("q.npy", queries)
    gaps = np.where(np.random.default_rng(25).random(table.shape) < 0.02, np.float32(np.nan), table)
    np.save("gaps.npy", gaps)
    np.save("some_gaps.npy", gaps[:5_000])
    np.save("whole.npy", (table * 1000).astype(np.int16))
    np.save("labels.npy", labels)
    np.save("targets.npy", table[:, 0].astype(np.float64))
    np.save("low.npy", draws.random((100_000, 3)))
    np.save("few.npy", draws.random((300, 3)))
    np.save("columns.npy", np.asfortranarray(table))
    np.save("wide.npy", draws.integers(0, 100, (8, 100_000), dtype=np.int8))
    pathlib.Path("labels.txt").write_text("".join(f"class{x}\n" for x in labels))
    pathlib.Path("t.npy.gz").write_bytes(gzip.compress(pathlib.Path("t.npy").read_bytes(), 1))
    header = ",".join(f"c{j}" for j in range(8)) + ",class"
    for name, rows, classes in (("t", table[:60_000, :8], labels), ("q", queries[:, :8], labels)):
        lines = (",".join(f"{x:.6f}" for x in row) + f",{c}" for row, c in zip(rows.tolist(), classes))
        pathlib.Path(f"{name}.csv").write_text(header + "\n" + "\n".join(lines) + "\n")
    angle = 1.5 * np.pi * (1 + 2 * draws.random(6_000))
    swiss = np.column_stack([angle * np.cos(angle), 20 * draws.random(6_000), angle * np.sin(angle)])
    np.save("swiss.npy", swiss)
    np.savetxt("swiss.csv", swiss, delimiter=",", fmt="%.9g")
    angle = 1.5 * np.pi * (1 + 2 * draws.random(40_000))
    np.save("roll.npy", np.column_stack([angle * np.cos(angle), 20 * draws.random(40_000), angle * np.sin(angle)]))
    edges = draws.integers(0, 150_000, (200_000, 2))
    pathlib.Path("edges.csv").write_text("a,b\n" + "".join(f"x{a},y{b}\n" for a, b in edges))
    for name, shift in (("old", 0.0), ("new", 0.3)):
        squares = []
        for i in range(20_000):
            x, y = i % 150 + shift, i // 150 + shift
            ring = [[x, y], [x + 0.9, y], [x + 0.9, y + 0.9], [x, y + 0.9], [x, y]]
            squares.append({"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [ring]}})
        pathlib.Path(f"{name}.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": squares}))


class Runner:
    def __init__(self, command, folder):
        self.command = str(pathlib.Path(command).resolve())
        self.folder = folder
        self.scratch = os.path.join(folder, "told")

    def run(self, words, limit=None):
        """Exit code, stderr, peak bytes, seconds."""
        words = [self.command, *(word.replace("OUT", "out") for word in words)]
        if words[1] != "--version":
            words += ["--device", "cpu"] if words[1] not in ("info", "convert", "generate", "match") else []
            words += ["--memory-limit", str(limit)] if limit is not None else []
        start = time.monotonic()
        pid = os.fork()
        if pid == 0:
            os.chdir(self.folder)
            told = os.open(self.scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(told, 2)
            os.execv(self.command, words)
        _, status, usage = os.wait4(pid, 0)
        seconds = time.monotonic() - start
        text = pathlib.Path(self.scratch).read_text(errors="replace")
        return os.waitstatus_to_exitcode(status), text.strip(), usage.ru_maxrss * 1024, seconds


def number_in(text):
    found = re.search(r"\((\d+) bytes\)", text)
    return int(found[1]) if found else None


def measure(runner, words, base):
    code, text, free_peak, seconds = runner.run(words)
    if code != 0:
        return {"failed": text}
    for _ in range(2):
        seconds = min(seconds, runner.run(words)[3])
    code, text, peak, _ = runner.run(words, 1)
    row = {"peak_free": free_peak, "seconds_free": round(seconds, 3), "refusal": text.splitlines()[-1] if text else ""}
    first = number_in(text) if code != 0 else None
    if code == 0:
        return row | {"first": None, "enough": False, "note": "a limit of 1 byte is not refused"}
    if first is None:
        return row | {"first": None, "enough": False, "note": "the refusal names no bytes"}
    row["first"] = first
    runs = []

    def at(limit):
        code, text, peak, took = runner.run(words, limit)
        runs.append({"limit": limit, "code": code, "peak": peak, "seconds": round(took, 3)})
        if code not in (0, 1, 2, 3, 4, 5, 6):
            runs[-1]["told"] = text
        return code, text, took

    code, text, took = at(first)
    row["enough"] = code == 0
    number, numbers = first, 1
    while code != 0 and numbers < 12 and (following := number_in(text)) and following > number:
        number, numbers = following, numbers + 1
        code, text, took = at(number)
    row["numbers"] = numbers if code == 0 else None
    row["last"] = number
    if code == 0:
        took = min(took, at(number)[2], at(number)[2])
        row["seconds"] = round(took, 3)
        row["slower"] = round(took / seconds, 2)
    row["refused_one_byte_less"] = at(number - 1)[0] != 0
    for share in SHARES:
        at(max(1, int(share * number)))
    row["over"] = max((run["peak"] - run["limit"] for run in runs if run["limit"] >= base or run["code"] == 0), default=None)
    row["over_base"] = max(run["peak"] - run["limit"] - base for run in runs)
    row["runs"] = runs
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command")
    parser.add_argument("--commit")
    parser.add_argument("--only", default="")
    parser.add_argument("--inputs", help="folder to make the inputs in, and to use again [a temporary one]")
    parser.add_argument("-o", "--output")
    parser.add_argument("--make", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        return make_inputs(options.make)
    with tempfile.TemporaryDirectory() as folder:
        folder = options.inputs or folder
        if not os.path.exists(os.path.join(folder, "new.geojson")):
            os.makedirs(folder, exist_ok=True)
            subprocess.run([sys.executable, __file__, "--make", folder], check=True)
        runner = Runner(options.command, folder)
        base = runner.run(["--version"])[2]
        if not os.path.exists(os.path.join(folder, "low.vhd")):
            runner.run("hdbscan low.npy --save-model low.vhd".split())
        print(f"base {base / 1e6:.1f} MB")
        print(f"{'case':18} {'first number':>13} {'enough':>6} {'numbers':>7} {'last':>13} {'over MB':>8} {'slower':>6}")
        rows = {}
        for name, words in CASES.items():
            if options.only and name not in options.only.split(","):
                continue
            row = rows[name] = measure(runner, words.split(), base)
            if "failed" in row or row.get("first") is None:
                print(f"{name:18} {row.get('note', 'failed')}: {row.get('refusal', row.get('failed'))}", flush=True)
                continue
            over = "-" if row["over"] is None else f"{row['over'] / 1e6:.1f}"
            print(f"{name:18} {row['first']:13} {'yes' if row['enough'] else 'no':>6} {row['numbers'] or '-':>7} "
                  f"{row['last']:13} {over:>8} {row.get('slower', '-'):>6}", flush=True)
    if options.output:
        machine = {"cores": os.cpu_count(), "system": platform.platform()}
        head = {"date": time.strftime("%Y-%m-%d"), "commit": options.commit, "machine": machine}
        text = json.dumps({**head, "base": base, "cases": rows}, indent=1)
        pathlib.Path(options.output).write_text(text + "\n")


if __name__ == "__main__":
    main()

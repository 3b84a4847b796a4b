"""Signals: how long after one does the command end, and what does it leave?

    interrupts.py --command build/release/cli/vicinal --commit ID -o interrupts.json [--signals 30] [STAGE...]

Each stage is a command that works for a second or more. It runs once undisturbed, then gets SIGINT or SIGTERM at random
times of that span, in a folder of its own. The table has, for each stage, the milliseconds from the signal to the end
of the process: median, 99th percentile and worst; the exit codes; and whether any file was left. `killed` sends SIGKILL
to commands that replace a file: the old one must be whole each time, and nothing else beside it but a temporary.
"""

import argparse
import json
import os
import pathlib
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

# Name: words of the command, in an empty folder. IN/ are the inputs; what it writes has names that begin with out.
STAGES = {
    "info-csv": "info IN/large.csv",
    "info-map": "info IN/old.geojson",
    "read-csv": "convert IN/large.csv out.npy",
    "read-csv-gz": "convert IN/large.csv.gz out.npy",
    "read-csv-xz": "convert IN/large.csv.xz out.npy",
    "read-libsvm": "convert IN/large.svm out.npy",
    "read-text": "kmeans IN/words.csv -c 2 --categories ordinal --text b --max-iterations 1 -o out.csv",
    "read-labels": "classify IN/few.npy IN/few.npy --labels IN/labels.txt -k 1",  # refused once they are read
    "write-csv": "convert IN/large.npy out.csv",
    "write-libsvm": "convert IN/large.npy out.libsvm",
    "write-gz": "convert IN/large.npy out.npy.gz",
    "write-xz": "convert IN/some.npy out.npy.xz",
    "knn-fused": "knn IN/wide.npy -k 10 -o out.npz --method fused",
    "knn-direct": "knn IN/wide.npy IN/many.npy -k 10 -o out.npz --method direct",
    "knn-kdtree": "knn IN/low.npy -k 10 -o out.npz --method kdtree",
    "knn-minkowski": "knn IN/low.npy -k 10 -o out.npz --metric minkowski --p 3",
    "radius": "radius IN/low.npy -r 0.01 -o out.npz",
    "radius-batches": "radius IN/low.npy -r 0.025 --memory-limit 150M -o out.npz",
    "radius-graph": "radius IN/low.npy -r 0.02 --include-self --symmetric union --layout scipy -o out.npz",
    "radius-long-lists": "radius IN/low.npy IN/low_asked.npy -r 9 --memory-limit 150M -o out.npz",
    "classify": "classify IN/wide.npy IN/asked.npy --labels IN/wide_labels.npy -k 1..15 --cv 3 -o out.csv",
    "impute-knn": "impute IN/gaps.npy --method knn -o out.npy",
    "lof": "lof IN/low.npy -k 20 -o out.csv",
    "dbscan": "dbscan IN/low.npy --eps 0.03 --min-samples 20 -o out.csv",
    "hdbscan": "hdbscan IN/low.npy --min-cluster-size 50 -o out.csv",
    "hdbscan-wide": "hdbscan IN/wide.npy --min-cluster-size 5 -o out.csv",
    "optics": "optics IN/some_low.npy --min-samples 10 -o out.csv",
    "spanning-tree": "spanning-tree IN/low.npy -o out.npz",
    "kmeans": "kmeans IN/large.npy -c 100 --max-iterations 5 -o out.csv",
    "lle-direct": "lle IN/roll.npy -k 12 --solver direct -o out.npy",
    "lle-lanczos": "lle IN/noise.npy -k 10 --solver lanczos -o out.npy",
    "cocluster": "cocluster IN/edges.csv -o out.csv",
    "cocluster-split": "cocluster IN/edges.csv --split-members 100 -o out.csv",
    "match-geojson": "match IN/old.geojson IN/new.geojson --planar -o out.csv",
    "match-gpkg": "match IN/old.geojson IN/new.geojson --planar -o out.gpkg",
    "generate": "generate swiss-roll -n 3000000 -o out.csv",
}
KILLED = ("write-csv", "write-xz", "knn-kdtree", "match-gpkg")
LEAST_SECONDS = 0.3
REFUSED = {"read-labels": 3}


def make_inputs(folder, command):
    import gzip
    import lzma

    import numpy as np

    draws = np.random.default_rng(1)
    save = lambda name, array: np.save(folder / name, array)
    large = draws.random((1_500_000, 16), np.float32)
    save("large.npy", large)
    save("some.npy", large[:120_000])
    save("gaps.npy", np.where(np.random.default_rng(3).random((60_000, 16)) < 0.05, np.nan, large[:60_000]))
    save("few.npy", draws.random((1000, 2)))
    save("wide.npy", draws.random((60_000, 64), np.float32))
    save("wide_labels.npy", draws.integers(0, 5, 60_000))
    save("asked.npy", draws.random((1000, 64), np.float32))
    save("low.npy", draws.random((600_000, 3), np.float32))
    save("some_low.npy", np.random.default_rng(5).random((100_000, 3), np.float32))
    save("many.npy", np.random.default_rng(4).random((6000, 64), np.float32))
    save("noise.npy", draws.standard_normal((4000, 20)))
    save("low_asked.npy", np.random.default_rng(2).random((40, 3), np.float32))
    subprocess.run([command, "generate", "swiss-roll", "-n", "60000", "-o", folder / "roll.npy", "-q"], check=True)
    for name in ("large.csv", "large.svm"):
        words = ["--to-format", "libsvm"] if name.endswith("svm") else []
        subprocess.run([command, "convert", folder / "large.npy", folder / name, "-q", *words], check=True)
    text = (folder / "large.csv").read_bytes()[:80_000_000]
    text = text[: text.rindex(b"\n") + 1]
    (folder / "large.csv.gz").write_bytes(gzip.compress(text, 1))
    some = text[: text.rindex(b"\n", 0, 20_000_000) + 1]
    (folder / "large.csv.xz").write_bytes(lzma.compress(some, preset=0))
    numbers = draws.permutation(3_000_000)
    (folder / "words.csv").write_text("a,b\n" + "".join(f"{i % 7},w{n}\n" for i, n in enumerate(numbers)))
    (folder / "labels.txt").write_text("".join(f"class {n % 1000}\n" for n in numbers) * 5)
    members = 400_000
    ends = [draws.integers(0, members, 3 * members // 2) for _ in range(2)]
    (folder / "edges.csv").write_text("a,b\n" + "".join(f"{i},{j}\n" for i, j in zip(*ends)))
    for name, shift in (("old.geojson", 0.0), ("new.geojson", 0.2)):
        squares = []
        for i in range(150_000):
            x, y = 2.0 * (i % 400) + shift, 2.0 * (i // 400) + shift
            ring = [[x, y], [x + 1.5, y], [x + 1.5, y + 1.5], [x, y + 1.5], [x, y]]
            geometry = {"type": "Polygon", "coordinates": [ring]}
            squares.append({"type": "Feature", "properties": {}, "geometry": geometry})
        (folder / name).write_text(json.dumps({"type": "FeatureCollection", "features": squares}))


def start(command, words, folder, inputs):
    words = [word.replace("IN/", f"{inputs}/") for word in words.split()]
    return subprocess.Popen([command, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def interrupted(command, words, inputs, sent, wait, kept=()):
    """(seconds from the signal to the end, exit code, names left), or nothing where it had ended before."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, data in kept:
            (folder / file).write_bytes(data)
        process = start(command, words, folder, inputs)
        time.sleep(wait)
        if process.poll() is not None:
            return None
        begin = time.monotonic()
        process.send_signal(sent)
        code = process.wait()
        seconds = time.monotonic() - begin
        whole = all((folder / file).read_bytes() == data for file, data in kept)
        left = sorted(path.name for path in folder.iterdir() if path.name not in dict(kept))
        return seconds, code, left, whole


def measure(command, name, inputs, signals, draws):
    words = STAGES[name]
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        code = start(command, words, folder, inputs).wait()
        whole = time.monotonic() - begin
    row = {"stage": name, "command": words, "seconds": round(whole, 2), "code": code}
    expected = REFUSED.get(name, 0)
    if code != expected or whole < LEAST_SECONDS:
        return row | {"fault": "does not run" if code != expected else "ends too soon"}
    found = []
    for _ in range(4 * signals):
        if len(found) == signals:
            break
        sent = draws.choice([signal.SIGINT, signal.SIGTERM])
        one = interrupted(command, words, inputs, sent, draws.uniform(0.05, 0.95) * whole)
        # The last work may be done when the signal comes.
        if one is not None and one[1] != expected:
            found.append(one)
    times = sorted(1000 * one[0] for one in found)
    return row | {
        "signals": len(times),
        "median_ms": round(statistics.median(times), 1),
        "p99_ms": round(times[min(len(times) - 1, int(0.99 * len(times)))], 1),
        "worst_ms": round(times[-1], 1),
        "codes": sorted({one[1] for one in found}),
        "left": sorted({file for one in found for file in one[2]}),
    }


def killed(command, inputs, signals, draws):
    rows = []
    for name in KILLED:
        words = STAGES[name]
        target = next(word for word in words.split() if word.startswith("out"))
        old = b"the old file\n"
        with tempfile.TemporaryDirectory() as folder:
            begin = time.monotonic()
            start(command, words, folder, inputs).wait()
            whole = time.monotonic() - begin
        found = [interrupted(command, words, inputs, signal.SIGKILL, draws.uniform(0.05, 0.95) * whole, [(target, old)])
                 for _ in range(signals)]
        found = [one for one in found if one is not None]
        rows.append({"stage": f"killed-{name}", "signals": len(found), "old file whole": all(one[3] for one in found)})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default="build/release/cli/vicinal")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--signals", type=int, default=30, help="signals a stage [30]")
    parser.add_argument("--inputs", help="folder to make the inputs in, and to use again [a temporary one]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"some of {', '.join(STAGES)}, killed [all]")
    options = parser.parse_args()
    chosen = options.stages or [*STAGES, "killed"]
    unknown = set(chosen) - {*STAGES, "killed"}
    if unknown:
        parser.error(f"there is no stage {', '.join(sorted(unknown))}")
    command = str(pathlib.Path(options.command).resolve())
    draws = random.Random(options.seed)
    rows = []

    def save():  # after each stage: the whole takes half an hour
        if options.output:
            machine = {"cores": os.cpu_count(), "system": platform.platform()}
            found = {"date": time.strftime("%Y-%m-%d"), "commit": options.commit, "machine": machine, "rows": rows}
            options.output.write_text(json.dumps(found, indent=1) + "\n")

    with tempfile.TemporaryDirectory() as name:
        inputs = pathlib.Path(options.inputs or name)
        if not (inputs / "new.geojson").exists():
            inputs.mkdir(exist_ok=True)
            make_inputs(inputs, command)
        print(f"{'stage':16} {'whole s':>8} {'signals':>8} {'median':>8} {'99 %':>8} {'worst':>8} ms  left",
              flush=True)
        for stage in chosen:
            if stage == "killed":
                rows += killed(command, inputs, options.signals, draws)
                save()
                for row in rows[-len(KILLED):]:
                    kept = "whole" if row["old file whole"] else "LOST"
                    print(f"{row['stage']:25} {row['signals']:8} old file {kept}")
                continue
            row = measure(command, stage, inputs, options.signals, draws)
            rows.append(row)
            save()
            if "fault" in row:
                print(f"{stage:16} {row['seconds']:8} {row['fault']} (exit code {row['code']})", flush=True)
                continue
            print(f"{stage:16} {row['seconds']:8} {row['signals']:8} {row['median_ms']:8} {row['p99_ms']:8} "
                  f"{row['worst_ms']:8}     {', '.join(row['left']) or 'nothing'}"
                  + ("" if row["codes"] == [130] else f"  exit codes {row['codes']}"), flush=True)
    late = [row["stage"] for row in rows if row.get("p99_ms", 0) > 100]
    wrong = [row["stage"] for row in rows if row.get("left") or "fault" in row or row.get("codes", [130]) != [130]
             or not row.get("old file whole", True)]
    print(f"later than 100 ms: {', '.join(late) or 'none'}; wrong: {', '.join(wrong) or 'none'}")
    return 1 if late or wrong else 0


if __name__ == "__main__":
    sys.exit(main())

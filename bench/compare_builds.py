"""Two builds of the command: the same files and the same text, byte by byte?

    compare_builds.py BEFORE AFTER [--only TEXT]

BEFORE and AFTER are paths of `vicinal`. Some two hundred commands over every subcommand, metric, method, format and
report run with each, in folders of their own; everything they write is compared, and so are exit codes and standard
output. Left out is what no two runs share: seconds, and memory and reasons of plans that are made of measured times.
Exit code 1 where anything differs.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

METRICS = ["euclidean", "sqeuclidean", "cosine", "manhattan", "chebyshev", "minkowski", "inner_product", "hamming"]
SHAPES = ["blobs", "moons", "swiss-roll"]


def commands():
    """(name, words); files are named as they are made: what a command writes, later ones read."""
    for shape in SHAPES:
        for form in ("npy", "csv"):
            yield f"generate {shape} -n 400 --seed 3 -o {shape}.{form}"
    for form in ("npz", "csv", "tsv", "libsvm", "fvecs --lossy", "npy.gz", "npz.xz", "csv.gz"):
        yield f"convert blobs.npy converted.{form}"
    for form in ("npz", "csv", "tsv", "fvecs", "npy.gz"):
        yield f"convert converted.{form} again.npy"
        yield f"info converted.{form} --json"
    for name in ("table.npy", "table.csv", "words.csv", "edges.csv", "converted.npz"):
        yield f"info {name}"
        yield f"info {name} --json --columns"
    yield "info table.npy --report info.html"
    for metric in METRICS:
        extra = " --p 3" if metric == "minkowski" else ""
        yield f"knn table.npy -k 7 --metric {metric}{extra} -o self-{metric}.npz"
        yield f"knn table.npy queries.npy -k 7 --metric {metric}{extra} -o asked-{metric}.csv"
        yield f"knn floats.npy -k 5 --metric {metric}{extra} -o floats-{metric}.npz"
        if metric != "inner_product":
            yield f"radius table.npy -r 0.3 --metric {metric}{extra} -o within-{metric}.npz"
            yield f"radius table.npy queries.npy -r 0.3 --count --metric {metric}{extra} -o count-{metric}.npy"
        yield f"lof table.npy -k 10 --metric {metric}{extra} -o lof-{metric}.csv" if metric != "inner_product" else "lof --help"
    for method in ("fused", "direct", "kdtree", "product_kmin", "product_bitonic", "direct_filter", "tiled_insertion",
                   "insertion", "block_heap"):
        yield f"knn table.npy -k 9 --method {method} -o by-{method}.npz"
        yield f"knn bytes.npy -k 9 --method {method} -o bytes-{method}.npz"
    for screen in ("int8", "bfloat16", "float32"):
        yield f"knn floats.npy -k 9 --method fused --screen {screen} -o screen-{screen}.npz"
    yield "knn table.npy queries.npy -k 3 --report neighbors.html -o reported.npz"
    for weights in ("uniform", "distance"):
        yield f"classify table.npy queries.npy --labels labels.npy -k 5 --weights {weights} -o classes-{weights}.csv"
        yield f"regress table.npy queries.npy --targets targets.npy -k 5 --weights {weights} -o values-{weights}.csv"
    yield "classify table.csv table.csv --label class -k 3 --report classes.html -o classes.csv"
    yield "classify table.npy --labels labels.npy -k 1..9 --cv 5 --json"
    yield "regress table.npy --targets targets.npy -k 1..9 --cv 5 --json"
    yield "regress table.csv table.csv --target c0 --drop class -k 3 --report values.html -o values.csv"
    for scale in ("standard", "minmax"):
        yield f"classify table.csv table.csv --label class --scale {scale} -k 3 --save-model {scale}.vnm -o scaled-{scale}.csv"
        yield f"classify --model {scale}.vnm table.csv -o of-model-{scale}.csv"
    for init in ("k-means++", "k-means||", "first-k", "random"):
        yield f"kmeans table.npy -c 6 --seed 5 --init {init} -o clusters-of-{init.strip('+|')}.csv"
    for more in ("--metric cosine", "--batch-size 64", "--runs 3", "--stop classical", "--empty farthest"):
        yield f"kmeans table.npy -c 6 --seed 5 {more} -o clusters-more.csv"
    yield "kmeans table.npy --scan 2..6 --seed 5"
    yield "kmeans table.npy -c 6 --seed 5 --report clusters.html --save-model clusters.vkm -o clusters.npz"
    yield "kmeans queries.npy --model clusters.vkm -o assigned.csv"
    yield "kmeans words.csv -c 3 --seed 5 --categories ordinal -o words.csv.out.csv"
    yield "kmeans words.csv -c 3 --seed 5 --categories onehot -o words-onehot.csv"
    for score in ("lof", "simplified_lof", "knn", "knn_weighted", "loop", "ldof", "inflo", "cof", "cof_pyod"):
        yield f"lof table.npy -k 8 --score {score} -o score-{score}.csv"
    yield "lof table.csv --label class -k 10 --top 5 --report outliers.html -o outliers.csv"
    yield "lof table.npy -k 10 --save-model lof.vlof -o kept.csv"
    yield "lof queries.npy --model lof.vlof -o novel.csv"
    yield "lof table.npy -k 5 --k-to 15 --across max -o range.csv"
    for variant in ("standard", "modified", "hessian", "ltsa"):
        for solver in ("direct", "lanczos", "dense"):
            yield f"lle swiss-roll.npy -k 10 --variant {variant} --solver {solver} -o lle-{variant}-{solver}.npy"
    yield "lle swiss-roll.csv -k 10 --report lle.html --quality --save-model lle.vlle -o lle.csv"
    yield "lle swiss-roll.npy --model lle.vlle -o placed.npy"
    for method in ("components", "closure", "product_serial", "spectral -c 2"):
        yield f"cocluster edges.csv --method {method} -o groups-{method.split()[0]}.csv"
    yield "cocluster edges.csv --split-members 10 -o split.csv"
    yield "cocluster edges.csv --json"
    for rule in ("standard", "touch", "area", "share", "iou"):
        yield f"match old.geojson new.geojson --planar --rule {rule} -o match-{rule}.csv"
    for form in ("geojson", "gpkg", "html"):
        flag = "--report" if form == "html" else "-o"
        yield f"match old.geojson new.geojson --planar {flag} matched.{form}"
    for words in ("", "knn", "radius", "classify", "regress", "kmeans", "lof", "lle", "match", "cocluster", "convert",
                  "info", "doctor", "generate", "completion"):
        yield f"{words} --help".strip()
    for shell in ("bash", "zsh", "fish"):
        yield f"completion {shell}"
    for wrong in ("knn nowhere.npy", "knn table.npy -k 0", "knn table.npy -k 100000", "knn ragged.csv",
                  "knn table.npy --metric none", "knn missing.csv", "radius table.npy -r -1", "kmeans table.npy -c 0",
                  "lof table.npy -k 5000", "lle table.npy -k 1", "cocluster table.npy", "match table.csv table.csv",
                  "convert table.npy out.nothing", "knn table.npy -k 3 --memory-limit 1", "nothing"):
        yield wrong
        yield f"{wrong} --json"


def make_inputs(folder):
    import numpy as np

    draws = np.random.default_rng(7)
    table, queries = draws.random((600, 6)), draws.random((60, 6))
    table[100:140] = table[3]  # equal rows
    np.save(folder / "table.npy", table)
    np.save(folder / "queries.npy", queries)
    np.save(folder / "floats.npy", draws.standard_normal((900, 40)).astype(np.float32))
    np.save(folder / "bytes.npy", draws.integers(0, 255, (700, 24), dtype=np.uint8))
    labels = draws.integers(0, 4, 600)
    np.save(folder / "labels.npy", labels)
    np.save(folder / "targets.npy", draws.random(600))
    head = ",".join(f"c{j}" for j in range(6)) + ",class"
    np.savetxt(folder / "table.csv", np.column_stack([table, labels]), "%.9g", ",", header=head, comments="")
    words = ["red", "green", "blue, dark", "red"]
    (folder / "words.csv").write_text("a,b\n" + "".join(f'{i % 5},"{words[i * 7 % 4]}"\n' for i in range(90)))
    ends = draws.integers(0, 120, (150, 2))
    (folder / "edges.csv").write_text("a,b\n" + "".join(f"old {a},new {b}\n" for a, b in ends))
    (folder / "ragged.csv").write_text("1,2\n3\n")
    (folder / "missing.csv").write_text("1,2\n3,\n")
    for name, shift in (("old", 0.0), ("new", 0.3)):
        squares = []
        for i in range(60):
            x, y = 2.0 * (i % 10) + shift * (i % 3), 2.0 * (i // 10)
            ring = [[x, y], [x + 1.5, y], [x + 1.5, y + 1.5], [x, y + 1.5], [x, y]]
            squares.append({"type": "Feature", "properties": {"id": f"{name}{i}"},
                            "geometry": {"type": "Polygon", "coordinates": [ring]}})
        (folder / f"{name}.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": squares}))


# Times, and what is made of them.
MEASURED = [
    re.compile(rb'"[a-z_]*seconds[a-z_]*": ?[-+.0-9e]+'),
    re.compile(rb"\b[0-9.]+(e-?[0-9]+)? ?(ns|us|\xc2\xb5s|ms|s|min|h)\b"),
    re.compile(rb'"(free_)?memory[a-z_]*": ?[0-9]+'),
    re.compile(rb'"expected[a-z_]*": ?[-+.0-9e]+'),
    re.compile(rb'"reason": ?"[^"]*"'),
    re.compile(rb'"(rate|gflops)[a-z_]*": ?[-+.0-9e]+'),
]


def without_times(data):
    for pattern in MEASURED:
        data = pattern.sub(b"_", data)
    return data


def contents_of(path):
    if path.suffix == ".gpkg":
        import sqlite3
        with sqlite3.connect(path) as base:
            text = "\n".join(base.iterdump())
        return re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "_", text).encode()
    data = path.read_bytes()
    return without_times(data) if path.suffix in (".html", ".json") else data


def run(command, words, folder):
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    env = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run([command, *words.split()], cwd=folder, capture_output=True, timeout=120, env=env)
    made = [path for path in sorted(folder.iterdir()) if before.get(path.name) != path.stat().st_mtime_ns]
    return done.returncode, without_times(done.stdout), without_times(done.stderr), {p.name: contents_of(p) for p in made}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--only", default="", help="commands that hold this text")
    options = parser.parse_args()
    programs = [str(path.resolve()) for path in (options.before, options.after)]
    counts = {"commands": 0, "files": 0, "refused": 0}
    different = []
    with tempfile.TemporaryDirectory() as name:
        folders = [pathlib.Path(name) / which for which in ("before", "after")]
        for folder in folders:
            folder.mkdir()
            make_inputs(folder)
        for words in commands():
            found = [run(program, words, folder) for program, folder in zip(programs, folders)]
            if options.only not in words:
                continue
            counts["commands"] += 1
            counts["files"] += len(found[0][3])
            counts["refused"] += found[0][0] != 0
            if found[0] != found[1]:
                parts = [part for part, a, b in zip(("exit code", "stdout", "stderr"), *found) if a != b]
                parts += [file for file in sorted({*found[0][3], *found[1][3]})
                          if found[0][3].get(file) != found[1][3].get(file)]
                different.append(words)
                print(f"{words}: {', '.join(parts)}")
                for a, b in zip(found[0][1:3], found[1][1:3]):
                    if a != b:
                        print(f"  {a[-300:]!r}\n  {b[-300:]!r}")
    print(f"{counts['commands']} commands, of which {counts['refused']} are refused, and {counts['files']} files: "
          f"{len(different)} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())

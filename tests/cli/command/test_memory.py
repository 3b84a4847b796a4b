"""Peak memory of a search: at most input + output + 256 MB (contract clause 7), on a table that would need a 16 GB matrix;
and the number of bytes that a refusal names: enough, and what --explain says."""
# ctest: COST 60

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest


# In a small process of its own: a child's ru_maxrss begins at what its parent held. wait4 measures this child alone.
MEASURE = """
import os, sys
pid = os.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss * 1024)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak_of(command, folder, arguments, code=0):
    """Bytes, of a command that must end with this code."""
    words = [sys.executable, "-S", "-c", MEASURE, command, *arguments]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return int(done.stdout.splitlines()[-1])


def test_peak_memory(command, tmp_path):
    rows, queries, columns, k = 200_000, 20_000, 128, 32
    generator = np.random.default_rng(0)
    np.save(tmp_path / "table.npy", generator.random((rows, columns), np.float32))
    np.save(tmp_path / "queries.npy", generator.random((queries, columns), np.float32))
    arguments = ["knn", "table.npy", "queries.npy", "-k", str(k), "-o", "graph.npz", "-q"]
    needed = (rows + queries) * columns * 4 + queries * k * 16
    assert peak_of(command, tmp_path, arguments) <= needed + 256_000_000
    assert np.load(tmp_path / "graph.npz")["ids"].shape == (queries, k)


def test_any_number_of_neighbors_keeps_the_limit(command, vicinal, tmp_path):
    draws = np.random.default_rng(0)
    rows, queries = 6_000, 1_000
    np.save(tmp_path / "table.npy", draws.random((rows, 3)))
    np.save(tmp_path / "queries.npy", draws.random((queries, 3)))
    arguments = ["radius", "table.npy", "queries.npy", "-r", "9", "-o", "out.npz", "-q", "--memory-limit"]
    told = int(re.search(r"\((\d+) bytes\)", vicinal(*arguments, "1").stderr)[1])
    shown = json.loads(vicinal(*arguments[:-1], "--explain", "--json").stdout)
    assert shown["plan"]["memory_bytes"] == told
    peak = peak_of(command, tmp_path, [*arguments, str(told)])
    found = np.load(tmp_path / "out.npz")
    assert len(found["ids"]) == rows * queries and found["offsets"][-1] == rows * queries
    assert told < 90e6 < 16 * rows * queries
    assert peak <= told + 30e6


COMMANDS = {
    "knn": "knn table.npy -k 10 -o out.npz",
    "knn of queries": "knn table.npy queries.npy -k 10 -o out.npz",
    "knn of text": "knn table.csv --drop class -k 10 -o out.csv",
    "count": "radius table.npy -r 0.1 --count -o out.npy",
    "radius": "radius table.npy -r 0.15 -o out.npz",
    "radius of queries": "radius table.npy queries.npy -r 0.3 -o out.csv",
    "radius, a page": "radius table.npy -r 0.1 -o out.npz --report out.html",
    "radius, everything": "radius table.npy few.npy -r 9 -o out.npz",
    "radius, for others": "radius table.npy -r 0.2 --include-self --layout scipy --distances float32 -o out.npz",
    "radius, symmetric": "radius table.npy -r 0.2 --symmetric union --filter filter.npy --include-self -o out.csv",
    "radius, rows left out": "radius gaps.npy few.npy -r 9 --missing drop -o out.npz",
    "classify within": "classify table.npy queries.npy --labels labels.npy -r 9 -o out.csv",
    "regress within": "regress table.npy queries.npy --targets targets.npy -r 9 -o out.npy",
    "classify": "classify table.npy queries.npy --labels labels.npy -k 10 -o out.csv",
    "classify of text": "classify table.csv --label class table.csv -k 10 -o out.csv",
    "classify, labels that all differ": "classify table.npy queries.npy --labels texts.txt -k 10 -o out.csv",
    "regress": "regress table.npy queries.npy --targets targets.npy -k 10 -o out.npy",
    "lof": "lof table.npy -k 20 -o out.npy",
    "knn, symmetric": "knn table.npy -k 7 --symmetric union -o out.csv",
    "knn, for others": "knn table.npy -k 7 --symmetric union --include-self --layout scipy -o out.npz",
    "kmeans, labelled": "kmeans table.npy -c 20 --max-iterations 3 --labels labels.npy -o out.csv",
    "lof, labelled": "lof table.csv --label class --normal 1 -k 20 -o out.npz",
    "lof of text": "lof table.csv --drop class -k 20 -o out.csv",
    "lle": "lle table.npy -k 8 -o out.npy",
    "lle of text": "lle table.csv --drop class -k 8 -o out.npy",
    "lle of more text than a process takes": "lle wide.csv -k 8 -o out.npy",
    "cocluster": "cocluster edges.csv -o out.csv",
    "cocluster, split": "cocluster edges.csv --split-members 10 -o out.csv",
    "cocluster, spectral": "cocluster edges.csv --method spectral -c 2 -o out.csv",
    "match": "match old.geojson new.geojson --planar -o out.csv",
    "match, written by GDAL": "match old.geojson new.geojson --planar -o out.geojson",
    "convert": "convert table.npy out.csv",
    "convert, compressed": "convert table.csv out.npz.xz",
    "convert of columns": "convert columns.npy out.npz",
    "knn, filled": "knn table.npy queries.npy -k 2 --missing knn -o out.npz",
    "classify, filled": "classify table.npy queries.npy --labels labels.npy -k 2 --missing knn --scale minmax -o out.csv",
    "lof, filled": "lof table.npy -k 5 --missing knn -o out.npy",
    "convert, filled": "convert table.npy out.npy --missing mean",
    "impute": "impute table.npy -o out.csv",
    "info": "info table.npy --json",
    "info of text": "info table.csv",
    "info, a page": "info table.npy --report out.html",
    "dbscan": "dbscan table.npy --eps 0.1 --labels labels.npy -o out.csv",
    "hdbscan": "hdbscan table.npy -o out.csv",
    "hdbscan, soft": "hdbscan table.npy -o out.npz --memberships soft.npy",
    "dbscan, rated": "dbscan table.npy --eps 0.1 --validity",
    "optics": "optics table.npy -o out.csv",
    "optics, all pairs": "optics table.npy --method direct --max-eps 0.2 --clusters dbscan --eps 0.1 -o out.npz",
    "knn, within a radius": "knn table.npy queries.npy -k 20 --max-radius 0.1 -o out.npz",
    "knn, in blocks": "knn table.npy -k 20 --max-radius 0.1 --resume kept --resume-every 0.02 -o out.npz",
    "radius, in blocks": "radius table.npy -r 0.1 --resume kept --resume-every 0.02 -o out.csv",
    "kmeans, kept": "kmeans table.npy -c 20 --max-iterations 3 --runs 2 --resume kept --resume-every 0 -o out.npz",
    "spanning tree": "spanning-tree table.npy --min-samples 20 -o out.csv",
    "kmeans": "kmeans table.npy -c 20 --max-iterations 3 -o out.csv",
}


def square(x, y):
    ring = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1], [x, y]]
    return {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [ring]}}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS.keys())
def test_the_first_number_told_is_enough(vicinal, tmp_path, arguments):
    # Points all over four dimensions are the slowest to embed.
    rows, columns = (4_000 if arguments.startswith("lle ") else 12_000), 4
    draws = np.random.default_rng(0)
    table = draws.random((rows, columns))
    labels = draws.integers(0, 3, rows)
    np.save(tmp_path / "table.npy", table)
    np.save(tmp_path / "queries.npy", draws.random((500, columns)))
    np.save(tmp_path / "few.npy", draws.random((100, columns)))
    np.save(tmp_path / "filter.npy", draws.random(rows) < 0.5)
    np.save(tmp_path / "gaps.npy", np.where(draws.random((rows, 1)) < 0.1, np.nan, table))
    np.save(tmp_path / "labels.npy", labels)
    (tmp_path / "texts.txt").write_text("".join(f"the label of row {i}\n" for i in range(rows)))
    np.save(tmp_path / "targets.npy", draws.random(rows))
    header = ",".join(f"c{j}" for j in range(columns)) + ",class"
    np.savetxt(tmp_path / "table.csv", np.column_stack([table, labels]), "%.6g", ",", header=header, comments="")
    if "wide.csv" in arguments:
        np.savetxt(tmp_path / "wide.csv", np.tile(table[:1500], 400), "%.3g", ",")
    np.save(tmp_path / "columns.npy", np.asfortranarray(table))
    ends = draws.integers(0, rows, (rows, 2))
    (tmp_path / "edges.csv").write_text("a,b\n" + "".join(f"member {a},{b} of the others\n" for a, b in ends))
    for name in ("old", "new"):
        squares = [square(2 * (i % 50), 2 * (i // 50)) for i in range(1000)]
        (tmp_path / f"{name}.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": squares}))

    def run(limit):
        return vicinal(*arguments.split(), "--memory-limit", str(limit))

    refused = run(1)
    assert refused.returncode == 4, refused.stderr
    told = int(re.search(r"\((\d+) bytes\)", refused.stderr)[1])
    for limit in (told // 2, told - 1):
        # Less may be enough, where a search without a tree is.
        less = run(limit)
        assert less.returncode in (0, 4), less.stderr
        if less.returncode == 4:
            assert limit < int(re.search(r"\((\d+) bytes\)", less.stderr)[1]) <= told
    enough = run(told)
    assert enough.returncode == 0, enough.stderr

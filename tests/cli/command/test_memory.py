"""Peak memory of a search: at most input + output + 256 MB (contract clause 7), on a table that would need a 16 GB matrix;
and the number of bytes that a refusal names: enough, and what --explain says."""

import json
import os
import re

import numpy as np
import pytest


def test_peak_memory(command, tmp_path):
    rows, queries, columns, k = 200_000, 20_000, 128, 32
    generator = np.random.default_rng(0)
    np.save(tmp_path / "table.npy", generator.random((rows, columns), np.float32))
    np.save(tmp_path / "queries.npy", generator.random((queries, columns), np.float32))
    arguments = [command, "knn", "table.npy", "queries.npy", "-k", str(k), "-o", "graph.npz", "-q"]
    # wait4 measures this child alone; what it shares with its parent before exec is below what it needs afterwards.
    pid = os.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(command, arguments)
    _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    needed = (rows + queries) * columns * 4 + queries * k * 16
    assert usage.ru_maxrss * 1024 <= needed + 256_000_000
    assert np.load(tmp_path / "graph.npz")["ids"].shape == (queries, k)


COMMANDS = {
    "knn": "knn table.npy -k 10 -o out.npz",
    "knn of queries": "knn table.npy queries.npy -k 10 -o out.npz",
    "knn of text": "knn table.csv --drop class -k 10 -o out.csv",
    "count": "radius table.npy -r 0.1 --count -o out.npy",
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
    "cocluster": "cocluster edges.csv -o out.csv",
    "cocluster, split": "cocluster edges.csv --split-members 10 -o out.csv",
    "cocluster, spectral": "cocluster edges.csv --method spectral -k 2 -o out.csv",
    "match": "match old.geojson new.geojson --planar -o out.csv",
    "match, written by GDAL": "match old.geojson new.geojson --planar -o out.geojson",
    "convert": "convert table.npy out.csv",
    "convert, compressed": "convert table.csv out.npz.xz",
    "convert of columns": "convert columns.npy out.npz",
    "info": "info table.npy --json",
    "info of text": "info table.csv",
    "info, a page": "info table.npy --report out.html",
    "kmeans": "kmeans table.npy -c 20 --max-iterations 3 -o out.csv",
}


def square(x, y):
    ring = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1], [x, y]]
    return {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [ring]}}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS.keys())
def test_the_first_number_told_is_enough(vicinal, tmp_path, arguments):
    rows, columns = 12_000, 4
    draws = np.random.default_rng(0)
    table = draws.random((rows, columns))
    labels = draws.integers(0, 3, rows)
    np.save(tmp_path / "table.npy", table)
    np.save(tmp_path / "queries.npy", draws.random((500, columns)))
    np.save(tmp_path / "labels.npy", labels)
    (tmp_path / "texts.txt").write_text("".join(f"the label of row {i}\n" for i in range(rows)))
    np.save(tmp_path / "targets.npy", draws.random(rows))
    header = ",".join(f"c{j}" for j in range(columns)) + ",class"
    np.savetxt(tmp_path / "table.csv", np.column_stack([table, labels]), "%.6g", ",", header=header, comments="")
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

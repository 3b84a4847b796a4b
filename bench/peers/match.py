"""GeoPandas compared with `vicinal match`: the same two files, the same plane, pairs by sjoin, areas by shapely (GEOS),
groups by scipy's connected components; then every area of vicinal is compared with that of GEOS. `topo-tools change`,
if it is installed in the environment of this Python, is timed on the same files. Each similarity that it writes is
compared with the IoU of the same pair by GEOS. It names features by a column of unique values, if both layers have one.

Each of the three has a call to warm up, which is not timed. GeoPandas and GEOS have one thread.

Usage: match.py VICINAL OLD NEW [--crs CRS] [--threads N] [--repeat N] [--machine TEXT] [--commit C] [-o RESULT.json]
Needs geopandas, shapely, pyogrio and scipy (bench/peers/requirements-match.txt).
"""

import argparse
import csv
import datetime
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import geopandas
import numpy
import pyogrio
import scipy.sparse
import shapely


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("vicinal")
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--crs")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of vicinal and topo-tools")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--machine", default="unknown", help="what ran it, for whoever reads the result")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("-o", "--output")
    asked = parser.parse_args()
    asked.old, asked.new = os.path.abspath(asked.old), os.path.abspath(asked.new)
    return asked


def read(path, crs, projection):
    frame = geopandas.read_file(path)
    frame = frame.set_crs(crs, allow_override=True) if crs else frame
    frame = frame.to_crs(projection)
    broken = ~frame.geometry.is_valid
    frame.loc[broken, "geometry"] = shapely.make_valid(frame.geometry[broken].values, method="structure")
    return frame[["geometry"]], int(broken.sum())


def peer(asked, projection, out):
    """From files to a CSV of pairs above the threshold; returns ids and areas of all pairs that meet."""
    old, broken_old = read(asked.old, asked.crs, projection)
    new, broken_new = read(asked.new, asked.crs, projection)
    pairs = geopandas.sjoin(old, new, predicate="intersects")
    a, b = pairs.index.to_numpy(), pairs["index_right"].to_numpy()
    first, second = old.geometry.values[a], new.geometry.values[b]
    area = shapely.area(shapely.intersection(first, second))
    smaller = numpy.minimum(shapely.area(first), shapely.area(second))
    kept = area >= 0.25 * smaller
    ends = a[kept], b[kept] + len(old)
    graph = scipy.sparse.coo_matrix((numpy.ones(kept.sum()), ends), shape=[len(old) + len(new)] * 2)
    groups, labels = scipy.sparse.csgraph.connected_components(graph, directed=False)
    numpy.savetxt(out, numpy.column_stack([a[kept], b[kept], labels[a[kept]]]), fmt="%d", delimiter=",")
    iou = area / (shapely.area(first) + shapely.area(second) - area)
    return a, b, area, smaller, iou, {"pairs": len(a), "kept": int(kept.sum()), "groups": int(groups),
                                 "invalid": [broken_old, broken_new], "broken": broken_old + broken_new}


def names_of(path):
    """(column, {value: number of the feature}) of the first column of whole numbers or text whose values are unique."""
    frame = pyogrio.read_dataframe(path, read_geometry=False)
    for column in frame.columns:
        values = frame[column]
        if column.lower() in ("fid", "ogc_fid"):  # topo-tools renames these
            continue
        if values.dtype.kind in "iu" or all(isinstance(value, str) for value in values):
            if values.is_unique:
                return column, {str(value): row for row, value in enumerate(values)}
    return None, {}


def fids_of(path):
    """The ids of the features, which GeoPackages number from 1 and GeoJSON from 0."""
    return pyogrio.read_dataframe(path, columns=[], read_geometry=False, fid_as_index=True).index.tolist()


def topo_tools(asked, folder):
    """{version, threads, warm_up_seconds, seconds, pairs: {(a, b): similarity}}, or {error}. The first call loads an
    extension of DuckDB from the network. A call takes minutes for large layers, so one is timed."""
    program = pathlib.Path(sys.executable).with_name("topo-tools")
    if not program.exists():
        return {"error": "topo-tools is not installed"}
    out, seconds = folder / "changes.csv", []
    words = [program, "change", asked.old, asked.new, out, "--threads", str(asked.threads)]
    (column_a, rows_a), (column_b, rows_b) = names_of(asked.old), names_of(asked.new)
    if column_a and column_b:
        words += ["--code-column-a", column_a, "--code-column-b", column_b]
    for _ in range(2):
        start = time.perf_counter()
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
        seconds.append(time.perf_counter() - start)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "Error" in line or "Exception" in line]
            return {"error": (lines or ["it failed"])[-1].strip()[:200]}
    about = {"version": importlib.metadata.version("topo-tools"), "threads": asked.threads,
             "warm_up_seconds": seconds[0], "seconds": seconds[1:]}
    if not (column_a and column_b):
        return {**about, "not_compared": "a layer has no column of unique values, so its pairs have no names"}
    with out.open(encoding="utf-8-sig") as rows:
        pairs = {(rows_a[row["code_a"]], rows_b[row["code_b"]]): float(row["similarity"])
                 for row in csv.DictReader(rows) if row["similarity"]}
    return {**about, "pairs": pairs} if pairs else {**about, "not_compared": "it wrote no similarities"}


def similarity_error(similarities, a, b, areas):
    """The largest difference between the similarity and the IoU of the same pair; a pair that GEOS has not has IoU 0.
    topo-tools rounds to three decimals. Both project to equal areas, but not by the same projection."""
    known = dict(zip(zip(a.tolist(), b.tolist()), areas.tolist()))
    return max(abs(value - known.get(pair, 0.0)) for pair, value in similarities.items())


def main():
    asked = arguments()
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "pairs.csv"
        options = [asked.vicinal, "match", asked.old, asked.new, "--json", "--threads", str(asked.threads)]
        options += ["--crs", asked.crs] if asked.crs else []
        seconds = {"vicinal_csv": [], "vicinal_gpkg": [], "geopandas_csv": []}
        for turn in range(-1, asked.repeat):  # -1: the warm-up
            if turn == 0:
                seconds = {name: [] for name in seconds}
            for name, target in (("vicinal_csv", out), ("vicinal_gpkg", out.with_suffix(".gpkg"))):
                start = time.perf_counter()
                said = json.loads(subprocess.run([*options, "-o", target], check=True, capture_output=True).stdout)
                seconds[name].append(time.perf_counter() - start)
            start = time.perf_counter()
            a, b, area, smaller, iou, found = peer(asked, said["projection"], out.with_name("peer.csv"))
            seconds["geopandas_csv"].append(time.perf_counter() - start)
        topo = topo_tools(asked, pathlib.Path(folder))
        with out.open() as rows:
            ours = {(int(row["a_id"]), int(row["b_id"])): float(row["area"]) for row in csv.DictReader(rows)}
    fids_a, fids_b = (fids_of(path) for path in (asked.old, asked.new))
    errors = []
    seen = set()
    for i, j, theirs, least in zip(a.tolist(), b.tolist(), area.tolist(), smaller.tolist()):
        key = (fids_a[i], fids_b[j])
        seen.add(key)
        errors.append(abs(ours.get(key, 0.0) - theirs) / least if least > 0 else 0.0)
    missing = sum(1 for key, value in ours.items() if key not in seen and value > 0)
    errors = numpy.array(errors)
    areas = {"pairs": len(errors), "largest": float(errors.max()), "above_1e-9": int((errors > 1e-9).sum()),
             "median": float(numpy.median(errors)), "only_vicinal": missing}
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    result = {"machine": asked.machine, "cores": os.cpu_count(), "threads": asked.threads, "load": os.getloadavg()[0],
              "commit": asked.commit, "date": date, "old": pathlib.Path(asked.old).name,
              "new": pathlib.Path(asked.new).name, "vicinal": said["versions"],
              "geopandas": geopandas.__version__, "shapely": shapely.__version__, "geos": shapely.geos_version_string,
              "seconds": seconds, "peer_found": found, "vicinal_pairs": said["pairs"],
              "vicinal_groups": said["groups"]["count"], "repaired": [said["a"]["repaired"], said["b"]["repaired"]],
              "area_errors": areas}
    if "pairs" in topo:
        topo["similarity_error"] = similarity_error(topo["pairs"], a, b, iou)
        topo["pairs"] = len(topo["pairs"])
    result["topo_tools"] = topo
    text = json.dumps(result, indent=2)
    if asked.output:
        pathlib.Path(asked.output).write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()

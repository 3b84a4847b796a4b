"""GeoPandas beside `vicinal match`: the same two files, the same plane, pairs by sjoin, areas by shapely (GEOS), groups by
scipy's connected components; then every area of vicinal's is compared with GEOS's. `topo-tools change`, if it is
installed beside this Python, is timed on the same files; the similarities that it writes are compared with the IoU of
GEOS's areas.

Usage: match.py VICINAL OLD NEW [--crs CRS] [--repeat N] [--machine TEXT] [--commit C] [-o RESULT.json]
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
import scipy.sparse
import shapely


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("vicinal")
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--crs")
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
    graph = scipy.sparse.coo_matrix((numpy.ones(kept.sum()), (a[kept], b[kept] + len(old))), shape=[len(old) + len(new)] * 2)
    groups, labels = scipy.sparse.csgraph.connected_components(graph, directed=False)
    numpy.savetxt(out, numpy.column_stack([a[kept], b[kept], labels[a[kept]]]), fmt="%d", delimiter=",")
    iou = area / (shapely.area(first) + shapely.area(second) - area)
    return a, b, area, smaller, iou, {"pairs": len(a), "kept": int(kept.sum()), "groups": int(groups),
                                 "invalid": [broken_old, broken_new], "broken": broken_old + broken_new}


def topo_tools(asked, folder, turns):
    """{version, seconds, similarities}, or {error}. It loads an extension of DuckDB from the network at its first call."""
    program = pathlib.Path(sys.executable).with_name("topo-tools")
    if not program.exists():
        return {"error": "topo-tools is not installed"}
    out, seconds = folder / "changes.csv", []
    for _ in range(turns):
        start = time.perf_counter()
        words = [program, "change", asked.old, asked.new, out]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
        seconds.append(time.perf_counter() - start)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "Error" in line or "Exception" in line]
            return {"error": (lines or ["it failed"])[-1].strip()[:200]}
    with out.open(encoding="utf-8-sig") as rows:
        found = [float(row["similarity"]) for row in csv.DictReader(rows) if row["similarity"]]
    return {"version": importlib.metadata.version("topo-tools"), "seconds": seconds, "similarities": found}


def similarity_error(found, areas):
    """The largest difference between a similarity and the nearest IoU of a pair. Both project to equal areas, but not by
    the same projection."""
    both = numpy.sort(areas)
    at = numpy.clip(numpy.searchsorted(both, found), 1, len(both) - 1)
    return float(numpy.minimum(abs(both[at] - found), abs(both[at - 1] - found)).max())


def main():
    asked = arguments()
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "pairs.csv"
        options = [asked.vicinal, "match", asked.old, asked.new, "--json"] + (["--crs", asked.crs] if asked.crs else [])
        seconds = {"vicinal_csv": [], "vicinal_gpkg": [], "geopandas_csv": []}
        for _ in range(asked.repeat):
            for name, target in (("vicinal_csv", out), ("vicinal_gpkg", out.with_suffix(".gpkg"))):
                start = time.perf_counter()
                said = json.loads(subprocess.run([*options, "-o", target], check=True, capture_output=True).stdout)
                seconds[name].append(time.perf_counter() - start)
            start = time.perf_counter()
            a, b, area, smaller, iou, found = peer(asked, said["projection"], out.with_name("peer.csv"))
            seconds["geopandas_csv"].append(time.perf_counter() - start)
        # Minutes, for large layers: once.
        topo = topo_tools(asked, pathlib.Path(folder), 1)
        with out.open() as rows:
            # Files number their features from 0 or from 1.
            ours = {(int(row["a_id"]), int(row["b_id"])): float(row["area"]) for row in csv.DictReader(rows)}
    base = [min(key[side] for key in ours) for side in (0, 1)]
    shift = [0 if value == 0 else 1 for value in base]
    worst, missing = 0.0, 0
    errors = []
    seen = set()
    for i, j, theirs, least in zip(a.tolist(), b.tolist(), area.tolist(), smaller.tolist()):
        key = (i + shift[0], j + shift[1])
        seen.add(key)
        errors.append(abs(ours.get(key, 0.0) - theirs) / least if least > 0 else 0.0)
    missing = sum(1 for key, value in ours.items() if key not in seen and value > 0)
    errors = numpy.array(errors)
    result = {"machine": asked.machine, "cores": os.cpu_count(), "load": os.getloadavg()[0], "commit": asked.commit,
              "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "old": pathlib.Path(asked.old).name, "new": pathlib.Path(asked.new).name, "vicinal": said["versions"],
              "geopandas": geopandas.__version__, "shapely": shapely.__version__, "geos": shapely.geos_version_string,
              "seconds": seconds, "peer_found": found, "vicinal_pairs": said["pairs"], "vicinal_groups": said["groups"]["count"],
              "repaired": [said["a"]["repaired"], said["b"]["repaired"]],
              "area_errors": {"pairs": len(errors), "largest": float(errors.max()), "above_1e-9": int((errors > 1e-9).sum()),
                              "median": float(numpy.median(errors)), "only_vicinal": missing}}
    if topo.get("similarities"):
        topo["similarity_error"] = similarity_error(topo.pop("similarities"), iou)
    result["topo_tools"] = topo
    text = json.dumps(result, indent=2)
    if asked.output:
        pathlib.Path(asked.output).write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()

"""Section `time` of density.py: HDBSCAN and spanning trees in turns with other packages, each in a process of its own."""

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
from density_checks import NEAR, lengths_by_prim, rand_index, require, same_partition, sample_of, wrong_edges


def blobs_of(rows, cols, seed=0):
    """Thirty normal clusters of unequal width, and a tenth of the rows spread over all."""
    draws = np.random.default_rng(seed)
    centers, widths = draws.uniform(-10, 10, (30, cols)), draws.uniform(0.1, 1, 30)
    at = draws.integers(0, 30, rows)
    table = centers[at] + widths[at, None] * draws.standard_normal((rows, cols))
    spread = draws.random(rows) < 0.1
    table[spread] = draws.uniform(-12, 12, (int(spread.sum()), cols))
    return table


def fashion():
    import gzip

    path = pathlib.Path(os.environ.get("FASHION", "/usr/share/datasets/fashion-mnist")) / "train-images-idx3-ubyte.gz"
    return np.frombuffer(gzip.open(path).read(), np.uint8, offset=16).reshape(-1, 784).astype(np.float64)


TABLES = {"250,000 x 2": (250_000, 2), "1,000,000 x 3": (1_000_000, 3), "1,000,000 x 16": (1_000_000, 16),
          "100,000 x 128": (100_000, 128), "fashion": None}
OURS = ("vicinal", "vicinal_tree")
TREES = ("quitefastmst",)  # compared with `vicinal spanning-tree`, the others with `vicinal hdbscan`
CLUSTERS = ("fast_hdbscan", "hdbscan", "sklearn")
WORKER = pathlib.Path(__file__).with_name("density_worker.py")


class Peer:
    """A process that answers one call a line. Its own processes (joblib's) are ended with it: they would compute on."""

    def __init__(self, name, path, size, least, threads):
        words = [sys.executable, "-P", WORKER, name, str(path), *map(str, (size, least, threads))]
        self.name, self.log = name, tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                      start_new_session=True)

    def answer(self, seconds):
        """A line, or why there is none."""
        ready, _, _ = select.select([self.child.stdout], [], [], max(0.1, seconds))
        if not ready:
            self.close()
            return {"error": f"did not end in {seconds:.0f} s", "ended_after_seconds": seconds}
        line = self.child.stdout.readline()
        if line:
            return json.loads(line)
        self.close()
        self.log.seek(0)
        return {"error": (self.log.read().strip().splitlines() or ["ended without a word"])[-1]}

    def call(self, seconds):
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        return self.answer(seconds)

    def close(self):
        if self.child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()


def times(ours, options, keep):
    lines = []
    for name, shape in TABLES.items():
        if options.only and name not in options.only:
            continue
        rows = fashion() if shape is None else blobs_of(max(3_000, int(shape[0] * options.scale)), shape[1])
        rows = rows[: max(3_000, int(len(rows) * options.scale))] if shape is None else rows
        table = ours.save("rows.npy", rows)
        ended = {}  # what did not end need not be asked again
        for least in (1, 10) if name == "250,000 x 2" else (10,):
            line = {"table": name, "rows": len(rows), "cols": rows.shape[1], "min_samples": least,
                    "min_cluster_size": 25, "threads": ours.threads, "load": os.getloadavg()[0]}
            lines.append(line)
            with contextlib.ExitStack() as running:
                time_one(ours, options, line, table, least, ended, running)
            line["sample"] = sample_is_exact(ours, rows, least)
            keep(lines)
            print(json.dumps(line), flush=True)
    return lines


def sample_is_exact(ours, rows, least):
    """A spanning tree of a sample of the rows, compared with all pairs of them in float64."""
    compared = sample_of(rows, 2_000)
    table = ours.save("sample.npy", compared)
    _, tree = ours.arrays("spanning-tree", table, "--min-samples", least, "--exclude-self")
    expected = lengths_by_prim(compared, least + 1)
    off = np.abs(np.sort(tree["lengths"]) - expected) / np.maximum(expected, np.finfo(float).tiny)
    found = {"rows": len(compared), "length_error": float(off.max())}
    found["wrong_edges"], found["joins_all_rows"] = wrong_edges(compared, tree, least + 1)
    require(found["length_error"] <= NEAR and found["wrong_edges"] == 0 and found["joins_all_rows"],
            f"the tree of {len(compared)} rows: {found}")
    return found


def time_one(ours, options, line, table, least, ended, running):
    """The core distance of a row is that of its neighbor number `least` in all packages; the row itself is none."""
    peers, left, reach = {}, {}, ["--min-samples", least, "--exclude-self"]
    for name in (*OURS, *TREES, *CLUSTERS):
        if name not in OURS and options.peers and name not in options.peers:
            continue
        if name in ended:
            line[name] = {"error": ended[name]["error"] + " with another min_samples"}
            continue
        peer = Peer(name, ours.folder / table, 25, least, ours.threads)
        running.callback(peer.close)
        warm = peer.answer(options.timeout)
        if "error" in warm:
            if name not in OURS:
                line[name] = {"error": warm["error"]}
            continue
        peers[name], left[name] = peer, options.timeout if name not in OURS else 1e6
    by_command = [name for name in OURS if name not in peers]
    line["called_from"] = "the command" if by_command else "Python"
    spent = {name: [] for name in (*OURS, *peers)}
    for turn in range(options.repeat):
        if turn > 0 and ended and all(name in OURS for name in peers):
            break
        if turn == 0 or by_command:
            # The command's own seconds begin before it reads the table.
            for name, words in zip(OURS, (("hdbscan", table, "--min-cluster-size", 25, *reach, "-o", "ours.npz"),
                                          ("spanning-tree", table, *reach, "-o", "tree.npz"))):
                told = ours.run(*words)
                if name in by_command:
                    spent[name].append({"seconds": told["seconds"], "cpu_seconds": ours.spent["cpu_seconds"]})
                if name == "vicinal":
                    line["tree_seconds"], line["method"] = told["tree_seconds"], told["plan"]["method"]
        for name in list(peers):
            if left[name] <= 0:
                continue
            start = time.perf_counter()
            found = peers[name].call(left[name])
            taken = time.perf_counter() - start
            # What would not end again is not asked again.
            left[name] = left[name] - taken if left[name] > 2.2 * taken else 0
            if "error" in found:
                if name in OURS:
                    sys.exit(f"density.py: {name}: {found['error']}")
                line[name] = ended[name] = found
                del peers[name]
                continue
            spent[name].append(found)
    with np.load(ours.folder / "tree.npz") as tree:
        total = float(np.sum(tree["lengths"]))
    with np.load(ours.folder / "ours.npz") as found:
        labels = found["labels"]
    for name, calls in spent.items():
        if not calls:
            continue
        median = float(np.median([call["seconds"] for call in calls]))
        line[name] = line.get(name, {}) | {"seconds": median, "calls": calls}
        if name in TREES:
            line[name]["total_over_ours"] = calls[-1]["total"] / total - 1
        elif name in CLUSTERS:
            theirs = np.load(f"{ours.folder / table}.{name}.npy")
            line[name]["same"] = same_partition(labels, theirs)
            line[name]["rand_index"] = rand_index(labels, theirs)
    for name in (*TREES, *CLUSTERS):
        if "seconds" in line.get(name, {}):
            own = line["vicinal_tree" if name in TREES else "vicinal"]
            line[name]["ratio"] = line[name]["seconds"] / own["seconds"]

"""What the sections of density.py share: calls of the command `vicinal`, samples, and comparisons of answers."""

import json
import pathlib
import signal
import subprocess
import sys

import numpy as np

NEAR = 1e-12  # relative difference of two lengths that may be equal but for rounding
failures = []


def require(holds, sentence):
    """NaN fails, too."""
    if not holds:
        failures.append(sentence)
        print("NOT KEPT:", sentence, file=sys.stderr, flush=True)


class Vicinal:
    def __init__(self, command, folder, threads):
        self.command, self.folder, self.threads = str(pathlib.Path(command).resolve()), folder, threads

    def run(self, *words, limit=None, timeout=0):
        """What --json prints; seconds, processor seconds and peak bytes are kept as `spent`. None if it was ended after
        `timeout` seconds (0: never), which `spent` then says."""
        words = [self.command, *words, "--threads", self.threads, "--quiet", "--json"]
        words += [] if words[1] in ("generate", "info") else ["--device", "cpu"]
        words += [] if limit is None else ["--memory-limit", limit]
        told = self.spend(words, timeout)
        return None if "ended_after_seconds" in self.spent else json.loads(told)

    def spend(self, words, timeout=0):
        # Through a small process: a child's peak begins at what its parent holds. A program keeps the timer that was
        # set before it started, and SIGALRM ends it.
        measure = ("import os, signal, sys, time\nstart = time.perf_counter()\npid = os.fork()\n"
                   "if pid == 0:\n"
                   "  signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))\n"
                   "  os.execv(sys.argv[2], sys.argv[2:])\n"
                   "_, status, usage = os.wait4(pid, 0)\n"
                   "print(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024,"
                   " os.waitstatus_to_exitcode(status), file=sys.stderr)")
        done = subprocess.run([sys.executable, "-S", "-c", measure, str(timeout), *map(str, words)],
                              capture_output=True, text=True, cwd=self.folder)
        seconds, cpu, peak, code = done.stderr.splitlines()[-1].split() if done.returncode == 0 else (0, 0, 0, 1)
        ended = timeout > 0 and int(code) == -signal.SIGALRM
        if int(code) and not ended:
            sys.exit(f"failed: {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        self.spent = {"seconds": float(seconds), "cpu_seconds": float(cpu), "peak_bytes": int(peak)}
        self.spent |= {"ended_after_seconds": timeout} if ended else {}
        return done.stdout

    def arrays(self, *words):
        told = self.run(*words, "-o", "answer.npz")
        with np.load(self.folder / "answer.npz") as found:
            return told, {name: found[name] for name in found.files}

    def save(self, name, rows):
        np.save(self.folder / name, np.ascontiguousarray(rows))
        return name


def same_partition(a, b):
    """Whether two labelings differ in the numbers of clusters only; noise is noise."""
    pairs = set(zip(a.tolist(), b.tolist()))
    one_to_one = len({x for x, _ in pairs}) == len(pairs) == len({y for _, y in pairs})
    return one_to_one and all((x < 0) == (y < 0) for x, y in pairs)


def rand_index(a, b):
    from sklearn.metrics import adjusted_rand_score

    return round(float(adjusted_rand_score(a, b)), 6)


def sample_of(rows, most):
    if len(rows) <= most:
        return rows
    return rows[np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False))]


def lengths_by_prim(rows, least):
    """Ascending lengths of the edges of a minimum spanning tree, which all such trees have: float64, all pairs."""
    n = len(rows)
    core, columns = np.empty(n), np.ascontiguousarray(rows.T)

    def distances(row):
        total = np.zeros(n)
        for column in columns:
            total += (column - column[row]) ** 2
        return np.sqrt(total)

    for row in range(n):
        core[row] = np.partition(distances(row), least - 1)[least - 1]
    nearest, lengths, row, inside = np.full(n, np.inf), [], 0, np.zeros(n, bool)
    for _ in range(n - 1):
        inside[row] = True
        np.minimum(nearest, np.maximum(np.maximum(distances(row), core), core[row]), out=nearest)
        nearest[inside] = np.inf
        row = int(np.argmin(nearest))
        lengths.append(nearest[row])
    return np.sort(lengths)


def wrong_edges(rows, tree, least):
    """Edges that are not as long as the core distances of their rows, or their distance, but for rounding; and whether
    the edges join all rows. Such edges whose lengths are those of `lengths_by_prim` are a minimum spanning tree."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import KDTree

    a, b, n = tree["a"], tree["b"], len(rows)
    core = KDTree(rows, balanced_tree=False).query(rows, [least])[0][:, 0]
    expected = np.maximum(core[a], core[b])
    for first in range(0, len(a), 10_000):
        some = slice(first, first + 10_000)
        far = np.sqrt(((rows[a[some]] - rows[b[some]]) ** 2).sum(axis=1))
        expected[some] = np.maximum(expected[some], far)
    wrong = int((~(np.abs(tree["lengths"] - expected) <= NEAR * expected)).sum())
    parts, _ = connected_components(coo_array((np.ones(len(a)), (a, b)), shape=(n, n)), directed=False)
    return wrong, bool(parts == 1 and len(a) == n - 1)

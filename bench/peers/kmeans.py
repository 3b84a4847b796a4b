"""Milliseconds of one Lloyd iteration: the command `vicinal`, scikit-learn, scikit-learn-intelex, FAISS and SuperKMeans,
in turns (bench/peers/requirements-kmeans.txt).

    kmeans.py --command build/dev/cli/vicinal --rows 1000000 --cols 64 --clusters 64 [--table table.npy] [--threads 2]

All start from the same rows, except SuperKMeans, which draws its own and takes none, and stop by the number of
iterations alone. FAISS and SuperKMeans are told to use all rows. An iteration is the difference between a run of
25 and a run of 5, divided by 20, so that reading, checking and the last assignment do not count; each run is repeated
and the least time of each kind is taken. With --first the first five count instead: bounds help little in those. The
labels of the longest run are compared. The inertia of FAISS and SuperKMeans is that of their labels and centers, in
float64. `wrong_labels` counts rows of ours that a center other than theirs is nearer to in float64. A peer that cannot
be imported has an `error`. One JSON line on stdout, or a file (-o).

With --whole each library chooses its own first centers, and the time is that of a whole run of 25 iterations: k-means++
of vicinal, scikit-learn and scikit-learn-intelex, rows at random of FAISS and of `vicinal_random`, and SuperKMeans'
own. `seeding_seconds` is the part of it that the first centers take: for scikit-learn that of `kmeans_plusplus` alone,
for scikit-learn-intelex that of a run of one iteration. With --clustered the rows are normal about as many centers as
there are clusters, whose columns have a deviation of 2. With --limit another library that takes longer is ended and
has `ended_after_seconds`.
"""

import argparse
import importlib.metadata
import json
import multiprocessing
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np


class Vicinal:
    def __init__(self, options, folder, init="k-means++"):
        self.options, self.folder, self.init = options, folder, init

    def made(self, init, iterations):
        words = [self.options.command, "kmeans", self.folder / "table.npy", "-c", self.options.clusters, "--init",
                 init, "--tolerance", 0, "--max-iterations", iterations, "--threads",
                 self.options.threads, "--device", "cpu", "--json", "-o", self.folder / "found.npz"]
        told = json.loads(subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout)
        self.about = {key: told["stats"][key] / told["stats"]["assigned"] for key in ("skipped", "rechecked")}
        with np.load(self.folder / "found.npz") as found:
            self.labels, self.centres, self.inertia = found["labels"], found["centres"], told["inertia"]
        return told

    def run(self, iterations):
        told = self.made(self.folder / "centres.npy", iterations)
        return told["stats"]["iterate_seconds"], told["iterations"]

    def whole(self, iterations):
        stats = self.made(self.init, iterations)["stats"]
        return stats["seed_seconds"] + stats["iterate_seconds"], stats["seed_seconds"]


class ScikitLearn:
    def __init__(self, options, folder, intelex=False):
        if intelex:
            from sklearnex.cluster import KMeans
        else:
            from sklearn.cluster import KMeans
        version = importlib.metadata.version("scikit-learn-intelex" if intelex else "scikit-learn")
        self.KMeans, self.about = KMeans, {"version": version}
        # oneDAL's threads; scikit-learn's are those of threadpool_limits.
        self.jobs = {"n_jobs": options.threads} if intelex else {}
        self.table, self.centres = np.load(folder / "table.npy"), np.load(folder / "centres.npy")

    def run(self, iterations):
        model = self.KMeans(len(self.centres), init=self.centres, n_init=1, max_iter=iterations, tol=0,
                            algorithm="lloyd", **self.jobs)
        start = time.perf_counter()
        model.fit(self.table)
        seconds = time.perf_counter() - start
        self.labels, self.inertia = model.labels_, float(model.inertia_)
        return seconds, model.n_iter_

    def whole(self, iterations):
        from sklearn.cluster import kmeans_plusplus

        def fit(iterations):
            model = self.KMeans(len(self.centres), init="k-means++", n_init=1, max_iter=iterations, tol=0,
                                algorithm="lloyd", random_state=1, **self.jobs)
            start = time.perf_counter()
            model.fit(self.table)
            return time.perf_counter() - start, float(model.inertia_)

        seconds, self.inertia = fit(iterations)
        start = time.perf_counter()
        if self.jobs:
            fit(1)
        else:
            kmeans_plusplus(self.table, len(self.centres), random_state=1)
        return seconds, time.perf_counter() - start


def inertia_of(table, centres, labels):
    step = 1 << 16
    return float(sum(np.square(table[at:at + step] - centres[labels[at:at + step]].astype("float64")).sum()
                     for at in range(0, len(table), step)))


def wrong_labels(table, centres, labels):
    """Rows to which another center is nearer than theirs. Sums of squares of d columns in two orders differ by at most
    (d + 4) 2^-52 of them."""
    wrong, slack = 0, (table.shape[1] + 4) * 2.0**-52
    step = max(1, (1 << 22) // len(centres))
    for at in range(0, len(table), step):
        rows, own = table[at:at + step].astype("float64"), centres[labels[at:at + step]]
        # The nearest by a product is a center to compare with, not the truth: its distance is added up again.
        nearest = ((centres**2).sum(1) / 2 - rows @ centres.T).argmin(1)
        least = np.square(rows - centres[nearest]).sum(1)
        wrong += int((~(np.square(rows - own).sum(1) <= least * (1 + slack))).sum())
    return wrong


class Faiss:
    def __init__(self, options, folder):
        import faiss

        faiss.omp_set_num_threads(options.threads)
        self.faiss, self.about = faiss, {"version": faiss.__version__}
        self.table, self.centres = np.load(folder / "table.npy"), np.load(folder / "centres.npy")

    def run(self, iterations):
        return self.trained(iterations, self.centres), iterations

    def whole(self, iterations):
        return self.trained(iterations, None), None

    def trained(self, iterations, first):
        k, d = self.centres.shape
        model = self.faiss.Kmeans(d, k, niter=iterations, max_points_per_centroid=len(self.table), seed=1)
        start = time.perf_counter()
        model.train(self.table, init_centroids=first)
        seconds = time.perf_counter() - start
        self.labels = model.index.search(self.table, 1)[1][:, 0]
        self.inertia = inertia_of(self.table, model.centroids, self.labels)
        return seconds


class SuperKMeans:
    def __init__(self, options, folder):
        import superkmeans

        self.SuperKMeans, self.threads = superkmeans.SuperKMeans, options.threads
        self.about = {"version": importlib.metadata.version("superkmeans"), "own_first_centres": True}
        self.table, self.clusters = np.load(folder / "table.npy"), len(np.load(folder / "centres.npy"))

    def run(self, iterations):
        model = self.SuperKMeans(self.clusters, self.table.shape[1], hierarchical=False, iters=iterations,
                                 sampling_fraction=1.0, max_points_per_cluster=len(self.table), n_threads=self.threads,
                                 tol=0.0, early_termination=False)
        start = time.perf_counter()
        centres = model.train(self.table)
        seconds = time.perf_counter() - start
        self.labels = model.assign(self.table, centres).astype(np.int64)
        self.inertia = inertia_of(self.table, centres, self.labels)
        return seconds, iterations

    def whole(self, iterations):
        return self.run(iterations)[0], None


def times_of_iterations(options, all_):
    short, long = (1, 5) if options.first else (5, 25)
    times = {peer: {short: [], long: []} for peer in all_}
    for _ in range(options.repeat):
        for peer, work in all_.items():
            for iterations in (short, long):
                seconds, done = work.run(iterations)
                times[peer][iterations].append((seconds, int(done)))
    found = {}
    for peer, work in all_.items():
        (least, few), (most, many) = min(times[peer][short]), min(times[peer][long])
        found[peer] = {"ms_an_iteration": 1e3 * (most - least) / max(1, many - few), "iterations": many,
                       "run_seconds": most, "inertia": work.inertia,
                       "labels_as_ours": float((work.labels == all_["vicinal"].labels).mean()), **work.about}
    return found


def answer_whole(work, answers):
    seconds, seeding = work.whole(25)
    answers.send({"seconds": seconds, "seeding_seconds": seeding, "inertia": work.inertia, **work.about})


def whole_run(work, limit):
    """In a process of its own, which is ended after `limit` seconds."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    run = multiprocessing.Process(target=answer_whole, args=(work, theirs))
    run.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(limit) else {"ended_after_seconds": limit, **work.about}
    except EOFError:
        return {"error": "the library ended its process", **work.about}
    finally:
        run.kill()
        run.join()


def times_of_whole_runs(options, all_):
    runs = {peer: [] for peer in all_}
    for _ in range(options.repeat):
        for peer, work in all_.items():
            if runs[peer] and "seconds" not in runs[peer][-1]:
                continue
            runs[peer].append(whole_run(work, None if isinstance(work, Vicinal) else options.limit))
    return {peer: min(of_peer, key=lambda run: run.get("seconds", np.inf)) for peer, of_peer in runs.items()}


def clustered(draws, rows, cols, clusters):
    centres = 2 * draws.standard_normal((clusters, cols), np.float32)
    return centres[draws.integers(0, clusters, rows)] + draws.standard_normal((rows, cols), np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", required=True)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--cols", type=int, default=64)
    parser.add_argument("--clusters", type=int, default=64)
    parser.add_argument("--table", type=pathlib.Path, help="rows to read instead of normal draws (.npy)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--first", action="store_true", help="time iterations 2 to 5 instead of 6 to 25")
    parser.add_argument("--whole", action="store_true", help="time whole runs of 25 iterations and their first centers")
    parser.add_argument("--limit", type=float, help="end the whole run of another library after so many seconds")
    parser.add_argument("--clustered", action="store_true", help="rows about as many centers as there are clusters")
    parser.add_argument("--peers", default="sklearn,sklearnex,faiss,superkmeans")
    parser.add_argument("--commit", default="")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="where to write the JSON instead")
    options = parser.parse_args()
    draws = np.random.default_rng(0)
    if options.table:
        table = np.load(options.table)
    elif options.clustered:
        table = clustered(draws, options.rows, options.cols, options.clusters)
    else:
        table = draws.standard_normal((options.rows, options.cols), np.float32)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "table.npy", np.ascontiguousarray(table, np.float32))
        start = draws.choice(len(table), options.clusters, replace=False)
        np.save(folder / "centres.npy", table[start].astype(np.float32))
        from threadpoolctl import threadpool_limits

        all_, missing = {"vicinal": Vicinal(options, folder)}, {}
        if options.whole:
            all_["vicinal_random"] = Vicinal(options, folder, "random")
        for peer in filter(None, options.peers.split(",")):
            try:
                if peer in ("faiss", "superkmeans"):
                    all_[peer] = (Faiss if peer == "faiss" else SuperKMeans)(options, folder)
                else:
                    all_[peer] = ScikitLearn(options, folder, peer == "sklearnex")
            except ImportError as error:
                missing[peer] = {"error": f"{type(error).__name__}: {error}"}
        with threadpool_limits(options.threads):
            found = (times_of_whole_runs if options.whole else times_of_iterations)(options, all_)
    result = {"rows": len(table), "cols": table.shape[1], "clusters": options.clusters, "threads": options.threads,
              "clustered": options.clustered, **found}
    if not options.whole:
        ours = all_["vicinal"]
        result["vicinal"]["wrong_labels"] = wrong_labels(table, ours.centres, ours.labels)
    result |= missing
    machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
    told = json.dumps({"machine": machine, "date": time.strftime("%Y-%m-%d"), "commit": options.commit,
                       "jobs": [result]})
    if options.output:
        options.output.write_text(told + "\n")
    else:
        print(told)


if __name__ == "__main__":
    sys.exit(main())

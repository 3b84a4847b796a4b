"""Another library's exact k nearest neighbors (euclidean), timed in a process of its own.

    knn.py faiss --table table.npy --queries queries.npy -k 10 --threads 2 --output folder --repeat 5
    knn.py --list

Table and queries are read and brought to the element type that the library works in before any clock starts. One whole
call (build, then every query) warms up; each later one is timed, build and queries apart. After every call ids.npy
(int64) and distances.npy (float64) of it are in the output folder.

With --repeat N the result is one JSON line on stdout. With --serve the first line describes the library and its
warm-up call, then every line on stdin asks for one timed call and gets one line: this is how `vicinal-bench knn
--peers` lets it take turns with its own runs. A failure is a line {"error": ...} and exit code 1.
"""

import argparse
import ctypes
import json
import logging
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


class Faiss:
    """IndexFlatL2: a float32 matrix product, tile by tile, and heaps."""

    dtype = "float32"

    def __init__(self, threads):
        # The OpenBLAS in FAISS's wheel is too old to know newer processors, for which it takes SSE3 kernels: twice the
        # time. FAISS is measured with those that fit.
        flags = pathlib.Path("/proc/cpuinfo").read_text().split() if os.path.exists("/proc/cpuinfo") else []
        core = "SkylakeX" if "avx512f" in flags else "Haswell" if "avx2" in flags else None
        if core:
            os.environ.setdefault("OPENBLAS_CORETYPE", core)
        import faiss

        self.note = f"{self.__doc__} OpenBLAS kernels: {os.environ.get('OPENBLAS_CORETYPE', 'its choice')}."
        faiss.omp_set_num_threads(threads)
        self.faiss, self.version = faiss, faiss.__version__

    def build(self, table):
        index = self.faiss.IndexFlatL2(table.shape[1])
        index.add(table)
        return index

    def query(self, index, queries, k):
        squared, ids = index.search(queries, k)
        return ids, squared**0.5


class ScikitLearn:
    """NearestNeighbors with algorithm="brute": float32 rows are widened to float64 chunk by chunk."""

    dtype = "as given"
    algorithm = "brute"

    def __init__(self, threads):
        import sklearn
        from sklearn.neighbors import NearestNeighbors

        self.make, self.version, self.threads = NearestNeighbors, sklearn.__version__, threads

    def build(self, table):
        return self.make(algorithm=self.algorithm, n_jobs=self.threads).fit(table)

    def query(self, index, queries, k):
        distances, ids = index.kneighbors(queries, k)
        return ids, distances


class ScikitLearnTree(ScikitLearn):
    """NearestNeighbors with algorithm="kd_tree"; its threads are Python's."""

    dtype = "float64"
    algorithm = "kd_tree"


class ScikitLearnIntelex(ScikitLearn):
    """scikit-learn-intelex, brute; a silent return to scikit-learn is an error here."""

    def __init__(self, threads):
        from importlib.metadata import version

        from sklearnex.neighbors import NearestNeighbors

        def refuse_fallback(record):
            if "fallback" in record.getMessage():
                raise RuntimeError(f"it fell back to scikit-learn: {record.getMessage()}")
            return False

        log = logging.getLogger("sklearnex")
        log.setLevel(logging.INFO)
        log.addFilter(refuse_fallback)
        self.make, self.version, self.threads = NearestNeighbors, version("scikit-learn-intelex"), threads


class SciPy:
    """cKDTree with its defaults."""

    dtype = "float64"

    def __init__(self, threads):
        import scipy
        from scipy.spatial import cKDTree

        self.make, self.version, self.threads = cKDTree, scipy.__version__, threads

    def build(self, table):
        return self.make(table)

    def query(self, tree, queries, k):
        distances, ids = tree.query(queries, k=range(1, k + 1), workers=self.threads)
        return ids, distances


class PyKDTree:
    """pykdtree with its defaults; OpenMP's threads."""

    dtype = "as given"

    def __init__(self, threads):
        from importlib.metadata import version

        from pykdtree.kdtree import KDTree

        self.make, self.version = KDTree, version("pykdtree")

    def build(self, table):
        return self.make(table)

    def query(self, tree, queries, k):
        distances, ids = tree.query(queries, k=k)
        return ids.reshape(-1, k), distances.reshape(-1, k)


class Native:
    """A C++ tree behind nanoflann_ann.cpp, which build_native.py compiles beside this Python."""

    dtype = "float64"

    def __init__(self, threads):
        library = pathlib.Path(sys.prefix) / "lib" / "libnanoflann_ann.so"
        if not library.exists():
            raise FileNotFoundError(f"{library} is not there: run build_native.py with this Python")
        self.native, self.threads = ctypes.CDLL(str(library)), threads
        for verb, result in (("version", ctypes.c_char_p), ("note", ctypes.c_char_p), ("build", ctypes.c_void_p)):
            self.function(verb).restype = result
        version = self.function("version")()
        if not version:
            raise FileNotFoundError(f"{library} was built without {self.name}")
        self.version, self.note = version.decode(), self.function("note")().decode()

    def function(self, verb):
        return getattr(self.native, f"{self.name}_{verb}")

    def build(self, table):
        class Tree:
            def __init__(self, handle, free):
                self.handle, self.free = handle, free

            def __del__(self):
                self.free(ctypes.c_void_p(self.handle))

        rows, cols = map(ctypes.c_int64, table.shape)
        handle = self.function("build")(ctypes.c_void_p(table.ctypes.data), rows, cols, ctypes.c_int(self.threads))
        return Tree(handle, self.function("free"))

    def query(self, tree, queries, k):
        ids = np.empty((len(queries), k), np.int64)
        distances = np.empty((len(queries), k), np.float64)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (queries, ids, distances)]
        self.function("query")(
            ctypes.c_void_p(tree.handle), pointers[0], ctypes.c_int64(len(queries)), ctypes.c_int64(k),
            ctypes.c_int(self.threads), pointers[1], pointers[2],
        )  # fmt: skip
        return ids, distances


class Nanoflann(Native):
    name = "nanoflann"


class Ann(Native):
    name = "libann"


PEERS = {
    "faiss": Faiss,
    "sklearn": ScikitLearn,
    "sklearnex": ScikitLearnIntelex,
    "sklearn-tree": ScikitLearnTree,
    "scipy": SciPy,
    "pykdtree": PyKDTree,
    "nanoflann": Nanoflann,
    "libann": Ann,
}


def load(path, dtype):
    array = np.load(path)
    if dtype == "as given":
        dtype = "float64" if array.dtype == np.float64 else "float32"
    return np.ascontiguousarray(array, dtype)


def save(folder, **arrays):
    """Each file is whole or not there, whenever this process is ended."""
    for name, array in arrays.items():
        np.save(folder / "part.npy", array)
        os.replace(folder / "part.npy", folder / f"{name}.npy")


def work(options, say):
    peer = PEERS[options.peer](options.threads)
    table, queries = load(options.table, peer.dtype), load(options.queries, peer.dtype)

    def call():
        cpu = time.process_time()
        start = time.perf_counter()
        index = peer.build(table)
        built = time.perf_counter()
        ids, distances = peer.query(index, queries, options.k)
        end = time.perf_counter()
        cpu = time.process_time() - cpu
        if options.output:
            save(options.output, ids=np.asarray(ids, np.int64), distances=np.asarray(distances, np.float64))
        return {"build": built - start, "query": end - built, "total": end - start, "cpu": cpu}

    about = {"name": options.peer, "version": peer.version, "dtype": table.dtype.name, "threads": options.threads}
    about["note"] = getattr(peer, "note", peer.__doc__)
    about["warmup"] = call()
    if options.serve:
        say(about)
        for _ in sys.stdin:
            say(call())
        return
    runs = [call() for _ in range(options.repeat)]
    for part in ("build", "query", "total", "cpu"):
        seconds = [run[part] for run in runs]
        about[part] = {"median": statistics.median(seconds), "min": min(seconds), "max": max(seconds), "runs": seconds}
    say(about)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", nargs="?", choices=PEERS)
    parser.add_argument("--list", action="store_true", help="print the peers' names and stop")
    parser.add_argument("--table", metavar="NPY")
    parser.add_argument("--queries", metavar="NPY")
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeat", type=int, default=5, help="timed calls")
    parser.add_argument("--serve", action="store_true", help="one timed call for every line on stdin")
    parser.add_argument("--output", metavar="DIR", type=pathlib.Path, help="folder for ids.npy and distances.npy")
    options = parser.parse_args()
    if options.list:
        print(*PEERS, sep="\n")
        return 0
    if not (options.peer and options.table and options.queries):
        parser.error("a peer, --table and --queries are needed")
    # Read by OpenMP and the BLAS libraries when they are loaded, so before the first import of any.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(options.threads)
    global np
    # What a library prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(line):
        print(json.dumps(line), file=answers, flush=True)

    try:
        import numpy as np

        work(options, say)
    except Exception as error:
        say({"error": " ".join(f"{type(error).__name__}: {error}".split())})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

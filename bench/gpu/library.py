"""The library in Python, as far as the scripts beside this file need it: a thin cover of resident.cpp.

Rows are torch tensors (on the device or the host), NumPy arrays (host), or `Made`: rows that exist only while they are
asked for. A failure is a RuntimeError with the library's sentence.
"""

import ctypes
import os
import weakref

DTYPES = {"uint8": 0, "float16": 1, "bfloat16": 2, "float32": 3, "float64": 4}
HOST, PINNED, CUDA = 0, 1, 2


class Rows(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("rows", ctypes.c_int64), ("cols", ctypes.c_int64),
                ("dtype", ctypes.c_int32), ("memory", ctypes.c_int32), ("period", ctypes.c_int64),
                ("shifts", ctypes.c_void_p)]


class Done(ctypes.Structure):
    _fields_ = [("survivors", ctypes.c_int64), ("escalated", ctypes.c_int64), ("uncertified", ctypes.c_int64),
                ("distinct_rows", ctypes.c_int64), ("prepare_seconds", ctypes.c_double),
                ("search_seconds", ctypes.c_double), ("selection_seconds", ctypes.c_double),
                ("memory", ctypes.c_uint64), ("device_memory", ctypes.c_uint64), ("method", ctypes.c_char * 32),
                ("screens", ctypes.c_char * 96), ("sentence", ctypes.c_char * 512)]

    def stats(self, queries):
        """What the call told, as figures a query: for a report."""
        return {"method": self.method.decode(), "screens": self.screens.decode(), "reason": self.sentence.decode(),
                "survivors_per_query": self.survivors / queries, "ladder_share": self.escalated / queries,
                "certified_share": 1 - self.uncertified / queries, "distinct_rows": self.distinct_rows,
                "prepare_ms": 1000 * self.prepare_seconds, "search_ms": 1000 * self.search_seconds,
                "planned_memory": self.memory, "planned_device_memory": self.device_memory}


class Made:
    """`rows` float32 rows: row i is base[i % len(base)] + shifts[i // len(base)], added in float32. Host arrays."""

    def __init__(self, base, shifts, rows):
        self.base, self.shifts, self.rows = base, shifts, rows
        self.shape = (rows, base.shape[1])

    def __len__(self):
        return self.rows


def address(array):
    return array.data_ptr() if hasattr(array, "data_ptr") else array.ctypes.data


def memory_of(array):
    return CUDA if getattr(array, "is_cuda", False) else HOST


def rows_of(array):
    if isinstance(array, Made):
        return Rows(address(array.base), array.rows, array.shape[1], DTYPES["float32"], HOST, len(array.base),
                    address(array.shifts))
    contiguous = array.is_contiguous() if hasattr(array, "is_contiguous") else array.flags.c_contiguous
    assert contiguous, "rows must be contiguous"
    dtype = DTYPES[str(array.dtype).removeprefix("torch.")]
    return Rows(address(array), array.shape[0], array.shape[1], dtype, memory_of(array), 0, None)


class Asked:
    """An index; calls of it are as Vicinal.knn_into."""

    def __init__(self, library, index):
        self.library, self.index = library, index

    def __call__(self, queries, k, ids, distances, method="automatic"):
        asked = None if queries is None else ctypes.byref(rows_of(queries))
        library = self.library
        library.check(library.library.vicinal_bench_ask(
            library.context, self.index, asked, ctypes.c_int64(k), method.encode(), ctypes.c_void_p(address(ids)),
            ctypes.c_void_p(address(distances)), ctypes.c_int32(memory_of(ids)), ctypes.byref(library.done)))


class Vicinal:
    """A context on one device. `folder` holds libvicinal_bench.so, the library and its plug-in. `threads` are those of
    the host; 0: all."""

    def __init__(self, folder, device="cuda", device_memory_limit=0, memory_limit=0, threads=0):
        self.library = ctypes.CDLL(os.path.join(folder, "libvicinal_bench.so"))
        self.done = Done()
        self.context = ctypes.c_void_p()
        self.check(self.library.vicinal_bench_open(
            device.encode(), ctypes.c_uint64(device_memory_limit), ctypes.c_uint64(memory_limit),
            ctypes.c_int32(threads), ctypes.byref(self.context), ctypes.byref(self.done)))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.library.vicinal_bench_close(self.context)
        self.context = ctypes.c_void_p()

    def check(self, failed):
        if failed:
            raise RuntimeError(self.done.sentence.decode())

    def knn_into(self, table, queries, k, ids, distances, method="automatic"):
        """ids [m, k] int64 and distances [m, k] float64, both on the device or both on the host."""
        asked = None if queries is None else ctypes.byref(rows_of(queries))
        self.check(self.library.vicinal_bench_knn(
            self.context, ctypes.byref(rows_of(table)), asked, ctypes.c_int64(k), method.encode(),
            ctypes.c_void_p(address(ids)), ctypes.c_void_p(address(distances)), ctypes.c_int32(memory_of(ids)),
            ctypes.byref(self.done)))

    def index(self, table):
        """An index of a table, which must live as long: a function that takes the other arguments of knn_into."""
        made = ctypes.c_void_p()
        self.check(self.library.vicinal_bench_index(self.context, ctypes.byref(rows_of(table)), ctypes.byref(made),
                                                    ctypes.byref(self.done)))
        weakref.finalize(ask := Asked(self, made), self.library.vicinal_bench_drop_index, made)
        return ask

    def knn_on_host(self, table, queries, k, ids, distances, method="automatic"):
        """The same by way of vectors of the library's own, in host memory."""
        asked = None if queries is None else ctypes.byref(rows_of(queries))
        self.check(self.library.vicinal_bench_knn_on_host(
            self.context, ctypes.byref(rows_of(table)), asked, ctypes.c_int64(k), method.encode(),
            ctypes.c_void_p(address(ids)), ctypes.c_void_p(address(distances)), ctypes.byref(self.done)))

    def classify(self, table, queries, k, labels, codes):
        """The k nearest rows' vote. labels [n] int64, codes [m] int32: host arrays; the same labels in every call."""
        self.check(self.library.vicinal_bench_classify(
            self.context, ctypes.byref(rows_of(table)), ctypes.byref(rows_of(queries)), ctypes.c_int64(k),
            ctypes.c_void_p(address(labels)), ctypes.c_void_p(address(codes)), ctypes.byref(self.done)))

    def kmeans(self, table, centres, iterations, labels):
        """From centers [k, d] float64, which become the last ones; labels [n] int32: host arrays."""
        self.check(self.library.vicinal_bench_kmeans(
            self.context, ctypes.byref(rows_of(table)), ctypes.c_int64(len(centres)), ctypes.c_int64(iterations),
            ctypes.c_void_p(address(centres)), ctypes.c_void_p(address(labels)), ctypes.byref(self.done)))

    def lof(self, table, k, scores, k_to=0, score="lof", lists=None):
        """scores [n] float64, host; of lists (ids, distances), host arrays [n, width], where there are some. Returns
        the seconds after the search."""
        seconds = ctypes.c_double()
        what = (ctypes.c_int64(k), ctypes.c_int64(k_to), score.encode(), ctypes.c_void_p(address(scores)),
                ctypes.byref(seconds), ctypes.byref(self.done))
        if lists is None:
            self.check(self.library.vicinal_bench_lof(self.context, ctypes.byref(rows_of(table)), *what))
        else:
            ids, distances = lists
            self.check(self.library.vicinal_bench_lof_of_lists(
                self.context, ctypes.byref(rows_of(table)), ctypes.c_void_p(address(ids)),
                ctypes.c_void_p(address(distances)), ctypes.c_int64(ids.shape[1]), *what))
        return seconds.value

    def spanning_tree(self, table, min_samples, a, b, lengths, method="automatic"):
        """The edges [n - 1], host arrays int64 and float64, of the minimum spanning tree by mutual reachability. Returns
        the seconds after the search."""
        seconds = ctypes.c_double()
        self.check(self.library.vicinal_bench_spanning_tree(
            self.context, ctypes.byref(rows_of(table)), ctypes.c_int64(min_samples), method.encode(),
            ctypes.c_void_p(address(a)), ctypes.c_void_p(address(b)), ctypes.c_void_p(address(lengths)),
            ctypes.byref(seconds), ctypes.byref(self.done)))
        return seconds.value

    def hdbscan(self, table, min_cluster_size, min_samples, labels, method="automatic"):
        """labels [n] int64, host. Returns the seconds of the tree after the search, and of the clusters after it."""
        seconds = (ctypes.c_double * 2)()
        self.check(self.library.vicinal_bench_hdbscan(
            self.context, ctypes.byref(rows_of(table)), ctypes.c_int64(min_cluster_size), ctypes.c_int64(min_samples),
            method.encode(), ctypes.c_void_p(address(labels)), seconds, ctypes.byref(self.done)))
        return tuple(seconds)

    def dbscan(self, table, eps, min_samples, labels, core, method="automatic"):
        """labels [n] int64 and core [n] uint8, host. Returns the seconds after the rows were made ready."""
        seconds = ctypes.c_double()
        self.check(self.library.vicinal_bench_dbscan(
            self.context, ctypes.byref(rows_of(table)), ctypes.c_double(eps), ctypes.c_int64(min_samples),
            method.encode(), ctypes.c_void_p(address(labels)), ctypes.c_void_p(address(core)), ctypes.byref(seconds),
            ctypes.byref(self.done)))
        return seconds.value

    def seed(self, table, clusters, init, seed):
        """The inertia after the first centers; seconds they took in done.search_seconds."""
        inertia = ctypes.c_double()
        self.check(self.library.vicinal_bench_seed(
            self.context, ctypes.byref(rows_of(table)), ctypes.c_int64(clusters), init.encode(), ctypes.c_uint64(seed),
            ctypes.byref(inertia), ctypes.byref(self.done)))
        return inertia.value

    def make(self, made, begin, end, to):
        """Rows [begin, end) of `Made` as the library is given them, into host memory."""
        self.library.vicinal_bench_make(ctypes.byref(rows_of(made)), ctypes.c_int64(begin), ctypes.c_int64(end),
                                        ctypes.c_void_p(address(to)))

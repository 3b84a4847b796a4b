"""One library as a process: the first line it writes says that it is ready, and each line it reads is a call.

    density_worker.py NAME TABLE.npy MIN_CLUSTER_SIZE MIN_SAMPLES THREADS

Lengths of a tree are added up, and labels are saved in TABLE.npy.NAME.npy.
"""

import json
import os
import sys
import time

name, path, size, least, threads = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
for variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(threads)
import numpy as np  # noqa: E402

rows = np.load(path)
if name == "quitefastmst":
    import quitefastmst

    quitefastmst.omp_set_num_threads(threads)

    def call(rows):
        return quitefastmst.mst_euclid(np.ascontiguousarray(rows), M=least)[0]
elif name == "fast_hdbscan":
    import fast_hdbscan

    def call(rows):
        return fast_hdbscan.HDBSCAN(min_cluster_size=size, min_samples=least).fit(rows).labels_
elif name == "hdbscan":
    import hdbscan

    def call(rows):
        return hdbscan.HDBSCAN(size, min_samples=least, approx_min_span_tree=False,
                               core_dist_n_jobs=threads).fit(rows).labels_
elif name in ("vicinal", "vicinal_tree"):
    import vicinal

    options = {"min_samples": least, "count_self": False, "device": "cpu", "threads": threads}

    def call(rows):
        if name == "vicinal_tree":
            return vicinal.minimum_spanning_tree(rows, **options).lengths
        return vicinal.hdbscan(rows, min_cluster_size=size, **options).labels
else:
    from sklearn.cluster import HDBSCAN

    def call(rows):
        return HDBSCAN(size, min_samples=least + 1, n_jobs=threads, copy=True).fit(rows).labels_
start = time.perf_counter()
call(rows[:2000])  # what is compiled at the first call
print(json.dumps({"warm": time.perf_counter() - start}), flush=True)
for line in sys.stdin:
    start, cpu = time.perf_counter(), time.process_time()
    answer = call(rows)
    spent = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}
    if answer.dtype.kind == "f":
        spent["total"] = float(np.sum(answer))
    else:
        np.save(path + "." + name + ".npy", answer)
    print(json.dumps(spent), flush=True)

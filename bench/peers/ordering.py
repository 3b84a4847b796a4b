"""The ordering and factor of `vicinal lle` beside METIS and CHOLMOD on the same graph: time, fill, work, memory.

    ordering.py --command build/release/cli/vicinal [-o result.json] [--rows 100000 1000000] [--data swiss cube]

METIS (serial) orders the graph of M, CHOLMOD's supernodal factor takes its order; both are Debian's (libmetis-dev,
libsuitesparse-dev), called by a program that build_native.py compiles into the Python environment that runs this.
METIS has one thread; --threads is the number of threads of vicinal, CHOLMOD and its BLAS.
Ours is what the command tells of itself; its fill counts the zeros of dense panels, too. A million rows take some
80 seconds and 6 GB on two quiet cores.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import numpy as np
from scipy import sparse
from sklearn import datasets
from sklearn.neighbors import NearestNeighbors

import result

PROGRAM = pathlib.Path(sys.prefix, "bin", "cholmod_order")
K = 12


def rows_of(kind, n):
    if kind == "swiss":
        return datasets.make_swiss_roll(n, random_state=0)[0]
    return np.random.default_rng(0).random((n, 3))


def graph_of(rows, path, threads):
    """Which rows share a block of I - W, as cholmod_order reads it."""
    n = len(rows)
    ids = NearestNeighbors(n_neighbors=K, n_jobs=threads).fit(rows).kneighbors(return_distance=False)
    columns = np.column_stack([np.arange(n), ids]).ravel()
    a = sparse.csr_matrix((np.ones(len(columns), np.float32), columns, np.arange(0, len(columns) + 1, K + 1)), (n, n))
    m = (a.T @ a).tocsr()
    m.setdiag(0)
    m.eliminate_zeros()
    m.sort_indices()
    with open(path, "wb") as file:
        np.array([n, m.nnz], np.int64).tofile(file)
        m.indptr.astype(np.int64).tofile(file)
        m.indices.astype(np.int32).tofile(file)


def ours(command, rows, folder, threads):
    given = pathlib.Path(folder, "rows.npy")
    np.save(given, rows)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [command, "lle", given, "-k", str(K), "-o", given.with_name("made.npy"), "--json", "--quiet"]
    words += ["--threads", str(threads)]
    said = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = {key: value for key, value in said.items() if key.endswith("_seconds")}
    told["cpu_seconds"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    told["fill"] = sum(piece["fill"] for piece in said["pieces"])
    told["flops"] = sum(piece["flops"] for piece in said["pieces"])
    told["residual"] = max(value / piece["norm"] for piece in said["pieces"] for value in piece["residuals"])
    return told


def metis_and_cholmod(path, threads):
    """What cholmod_order tells, or why it tells nothing: our own part is worth keeping without it."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    try:
        said = subprocess.run([PROGRAM, path], capture_output=True, text=True, env=environment)
    except OSError as error:
        return {"error": str(error)}
    if said.returncode != 0:
        return {"error": f"exit code {said.returncode}: {said.stderr.strip()}"}
    return json.loads(said.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", required=True)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--data", nargs="+", choices=["swiss", "cube"], default=["swiss"])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    result.add_options(parser)
    arguments = parser.parse_args()
    command = str(pathlib.Path(arguments.command).resolve())
    results = []
    for kind in arguments.data:
        for n in arguments.rows:
            rows = rows_of(kind, n)
            with tempfile.TemporaryDirectory() as folder:
                told = {"data": kind, "rows": n, "threads": arguments.threads,
                        "vicinal": ours(command, rows, folder, arguments.threads)}
                path = pathlib.Path(folder, "graph.bin")
                graph_of(rows, path, arguments.threads)
                told["metis_cholmod"] = metis_and_cholmod(path, arguments.threads)
            results.append(told)
            print(json.dumps(told), flush=True)
            result.write(arguments, {"results": results})
    return 1 if any("error" in told["metis_cholmod"] for told in results) else 0


if __name__ == "__main__":
    sys.exit(main())

"""LU of I - W beside L D L' of M = (I - W)'(I - W), as a way to the embedding of `vicinal lle`: fill, and are its answers right.

    lu.py --command vicinal [-o result.json] [--rows 10000 100000]

METIS (Debian's libmetis) orders the graph of I - W, grounded at one point; SuperLU (scipy's) factors it in that order, with
pivots on the diagonal where these are at least --threshold of their column's largest entry. Inverse iteration by both of its
solves finds the vectors; their singular values are held against the command's, and residuals against clause 17's bound.
SuperLU is serial and has no dense panels of ours: its seconds say little, its fill and its answers do.
"""

import argparse
import ctypes
import json
import pathlib
import subprocess
import tempfile
import time

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu
from sklearn import datasets

import result

K = 12
REG = 1e-3
WIDTH = 6
STEPS = 8


def asked(command, rows):
    """Neighbors, and what the command tells of its embedding."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(pathlib.Path(folder, "rows.npy"), rows)
        subprocess.run([command, "knn", "rows.npy", "-k", str(K), "-o", "graph.npz", "--quiet"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        said = subprocess.run([command, "lle", "rows.npy", "-k", str(K), "-o", "made.npy", "--json", "--quiet", "--solver",
                               "direct"], cwd=folder, check=True, capture_output=True, text=True).stdout
        return np.load(pathlib.Path(folder, "graph.npz"))["ids"], json.loads(said)


def factor_of(rows, ids):
    """I - W, standard weights."""
    n = len(rows)
    c = rows[ids] - rows[:, None]
    gram = c @ c.transpose(0, 2, 1)
    gram[:, range(K), range(K)] += REG * np.trace(gram, axis1=1, axis2=2)[:, None]
    weights = np.linalg.solve(gram, np.ones((n, K, 1)))[..., 0]
    weights /= weights.sum(1, keepdims=True)
    columns = np.column_stack([np.arange(n), ids])
    values = np.column_stack([np.ones(n), -weights])
    return sparse.csr_matrix((values.ravel(), columns.ravel(), np.arange(0, n * (K + 1) + 1, K + 1)), (n, n))


def metis_order(a):
    graph = (abs(a) + abs(a).T).tocsr()
    graph.setdiag(0)
    graph.eliminate_zeros()
    first, ids = graph.indptr.astype(np.int32), graph.indices.astype(np.int32)
    n = ctypes.c_int32(a.shape[0])
    order, place = np.empty(n.value, np.int32), np.empty(n.value, np.int32)
    at = [ctypes.c_void_p(one.ctypes.data) for one in (first, ids)]
    to = [ctypes.c_void_p(one.ctypes.data) for one in (order, place)]
    if ctypes.CDLL("libmetis.so.5").METIS_NodeND(ctypes.byref(n), *at, None, None, *to) != 1:
        raise RuntimeError("METIS failed")
    return order


def solver_of(lu, n):
    """y of A'A y = x, for x without the constant. A has a left null vector u, too, which what lies between the two solves has
    to be without; then nothing is left of the ground. u is what the transposed solve makes of the ground."""
    u = lu.solve(np.eye(1, n, n - 1)[0], "T")
    u /= np.linalg.norm(u)

    def solve(x):
        between = lu.solve(x, "T")
        return lu.solve(between - np.outer(u, u @ between))

    return solve


def smallest(a, solve):
    """Singular values and vectors by inverse iteration, the constant taken out, values from A V."""
    x = np.random.default_rng(0).standard_normal((a.shape[0], WIDTH))
    for _ in range(STEPS):
        x -= x.mean(0)
        x = np.linalg.qr(x)[0]
        x = solve(x)
    x -= x.mean(0)
    x = np.linalg.qr(x)[0]
    values, turn = np.linalg.svd(np.linalg.qr(a @ x, mode="r"))[1:]
    return values[::-1], x @ turn.T[:, ::-1]


def one_size(command, n, threshold):
    rows = datasets.make_swiss_roll(n, random_state=0)[0]
    ids, said = asked(command, rows)
    piece = said["pieces"][0]
    a = factor_of(rows, ids)
    start = time.perf_counter()
    order = metis_order(a)
    ordered = time.perf_counter()
    grounded = a[order][:, order].tolil()
    grounded[n - 1, n - 1] += 1
    grounded = grounded.tocsc()
    begun = time.perf_counter()
    lu = splu(grounded, permc_spec="NATURAL", diag_pivot_thresh=threshold, options={"SymmetricMode": True})
    factored = time.perf_counter()
    inner = a[order][:, order].tocsr()
    values, vectors = smallest(inner, solver_of(lu, n))
    m = np.array([inner.T @ (inner @ vectors[:, c]) - values[c] ** 2 * vectors[:, c] for c in range(2)])
    norm = abs(inner).sum(1).max() * abs(inner).sum(0).max()
    return {"rows": n, "threshold": threshold, "order_seconds": ordered - start, "factor_seconds": factored - begun,
            "fill": lu.nnz, "off_diagonal_pivots": int((lu.perm_r != np.arange(n)).sum()),
            "singular_values": values[:2].tolist(), "vicinal_singular_values": piece["singular_values"],
            "vicinal_fill": piece["fill"], "vicinal_factor_seconds": said["factor_seconds"],
            "largest_value_error": float(max(abs(v / w - 1) for v, w in zip(values, piece["singular_values"]))),
            "residual_of_norm": float(np.linalg.norm(m, axis=1).max() / norm)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", required=True)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--threshold", type=float, nargs="+", default=[0, 0.1])
    result.add_options(parser)
    arguments = parser.parse_args()
    command = str(pathlib.Path(arguments.command).resolve())
    results = []
    for n in arguments.rows:
        for threshold in arguments.threshold:
            results.append(one_size(command, n, threshold))
            print(json.dumps(results[-1]), flush=True)
            result.write(arguments, {"results": results})


if __name__ == "__main__":
    main()

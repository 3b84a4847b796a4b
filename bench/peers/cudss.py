"""NVIDIA's cuDSS on the matrices of `vicinal lle`, on a CUDA device: its own ordering, its factor, time, fill and memory.

    cudss.py --command vicinal --library libcudss.so.1 [-o result.json] [--rows 100000 1000000] [--matrix m a] [--seconds 150]

m is M = (I - W)'(I - W), grounded at one point, by L L'; a is I - W itself, grounded likewise, by LU. Rows are a Swiss roll,
neighbors come from `vicinal knn`, weights and M from torch on the device. Each size is a process of its own, which ends after
--seconds: what it had told by then is kept, and that it was ended is said. Every phase ends with a synchronization. With
--ours the command's own `lle --device` of the same rows is noted beside. It needs torch, numpy and the package
nvidia-cudss-cu13, and result.py beside it; the library may need the folder of CUDA's others in LD_LIBRARY_PATH.
"""

import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

import result

K = 12
REG = 1e-3
RIGHT_SIDES = 4
CHUNK = 1 << 20
# Of cuDSS 1's headers.
GENERAL, POSITIVE, FULL, UPPER = 0, 3, 0, 2
REORDER, SYMBOLIC, FACTOR, SOLVE = 1, 2, 4, 0x3F << 4
INFO, ENTRIES, CHANGED_PIVOTS, ESTIMATES, FLOPS = 0, 1, 2, 13, 26
REAL64, INT32, INT64 = 1, 10, 24  # cudaDataType_t


def swiss_roll(n):
    draw = np.random.default_rng(0)
    angle = 1.5 * np.pi * (1 + 2 * draw.random(n))
    return np.column_stack([angle * np.cos(angle), 21 * draw.random(n), angle * np.sin(angle)])


def neighbors(command, rows, folder):
    np.save(folder / "rows.npy", rows)
    subprocess.run([command, "knn", "rows.npy", "-k", str(K), "-o", "graph.npz", "--quiet"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    return np.load(folder / "graph.npz")["ids"]


def weights_of(torch, rows, ids):
    """The standard weights [n, K], a part at a time."""
    n = len(rows)
    made = torch.empty((n, K), dtype=torch.float64, device="cuda")
    for begin in range(0, n, CHUNK):
        part = slice(begin, min(n, begin + CHUNK))
        c = rows[ids[part]] - rows[part, None]
        gram = c @ c.transpose(1, 2)
        gram.diagonal(dim1=1, dim2=2).add_(REG * gram.diagonal(dim1=1, dim2=2).sum(1, keepdim=True))
        solved = torch.linalg.solve(gram, torch.ones((len(c), K, 1), dtype=torch.float64, device="cuda"))[..., 0]
        made[part] = solved / solved.sum(1, keepdim=True)
    return made


def compressed(torch, n, keys, values):
    """(first, cols, values) of entries at row * n + col, equal keys added up."""
    keys, order = torch.sort(keys)
    values = values[order]
    del order
    starts = torch.ones(len(keys), dtype=torch.bool, device="cuda")
    starts[1:] = keys[1:] != keys[:-1]
    place = torch.cumsum(starts, 0) - 1
    keys = keys[starts]
    summed = torch.zeros(len(keys), dtype=torch.float64, device="cuda").index_add_(0, place, values)
    del place, values, starts
    rows = torch.div(keys, n, rounding_mode="floor")
    first = torch.zeros(n + 1, dtype=torch.int64, device="cuda")
    first[1:] = torch.cumsum(torch.bincount(rows, minlength=n), 0)
    return first, (keys - rows * n).to(torch.int32), summed


def matrix_of(torch, kind, ids, weights):
    """M's upper triangle, or I - W whole; its last diagonal entry 1 larger, as the constant vector's place is taken."""
    n = len(ids)
    own = torch.arange(n, device="cuda")[:, None]
    cols = torch.cat([own, ids], 1)
    entries = torch.cat([torch.ones((n, 1), dtype=torch.float64, device="cuda"), -weights], 1)
    ground = torch.tensor([n * n - 1], device="cuda")
    one = torch.ones(1, dtype=torch.float64, device="cuda")
    if kind == "a":
        return compressed(torch, n, torch.cat([(own * n + cols).ravel(), ground]), torch.cat([entries.ravel(), one]))
    i, j = torch.triu_indices(K + 1, K + 1, device="cuda").unbind()
    pairs = len(i)
    keys = torch.empty(n * pairs + 1, dtype=torch.int64, device="cuda")
    values = torch.empty(n * pairs + 1, dtype=torch.float64, device="cuda")
    keys[-1:], values[-1:] = ground, one
    for begin in range(0, n, CHUNK):
        end = min(n, begin + CHUNK)
        a, b = cols[begin:end, i], cols[begin:end, j]
        keys[begin * pairs : end * pairs] = (torch.minimum(a, b) * n + torch.maximum(a, b)).ravel()
        values[begin * pairs : end * pairs] = (entries[begin:end, i] * entries[begin:end, j]).ravel()
    return compressed(torch, n, keys, values)


def product(torch, kind, matrix, x):
    """The matrix times x [width, n]."""
    first, cols, values = matrix
    n = len(first) - 1
    rows = torch.repeat_interleave(torch.arange(n, device="cuda"), first[1:] - first[:-1])
    made = torch.zeros_like(x)
    for y, one in zip(made, x):
        y.index_add_(0, rows, values * one[cols])
        if kind == "m":
            off = rows != cols
            y.index_add_(0, cols[off], values[off] * one[rows[off]])
    return made


class Cudss:
    """One matrix, from its ordering to its solves."""

    def __init__(self, path, threads):
        self.library = ctypes.CDLL(path)
        self.handle, self.config, self.data = (ctypes.c_void_p() for _ in range(3))
        self.call("Create", ctypes.byref(self.handle))
        if threads:
            self.call("SetThreadingLayer", self.handle, threads.encode())
        self.call("ConfigCreate", ctypes.byref(self.config))
        self.call("DataCreate", self.handle, ctypes.byref(self.data))

    def call(self, name, *arguments):
        status = getattr(self.library, "cudss" + name)(*arguments)
        if status != 0:
            raise RuntimeError(f"cuDSS: {name}: status {status}")

    def close(self, *matrices):
        for one in matrices:
            self.call("MatrixDestroy", one)
        self.call("DataDestroy", self.handle, self.data)
        self.call("ConfigDestroy", self.config)
        self.call("Destroy", self.handle)

    def version(self):
        part = ctypes.c_int()
        numbers = []
        for which in range(3):
            self.call("GetProperty", which, ctypes.byref(part))
            numbers.append(str(part.value))
        return ".".join(numbers)

    def dense(self, values):
        width, n = values.shape
        made = ctypes.c_void_p()
        self.call("MatrixCreateDn", ctypes.byref(made), *map(ctypes.c_int64, (n, width, n)), pointer(values), REAL64, 0)
        return made

    def sparse(self, kind, matrix):
        first, cols, values = matrix
        n = len(first) - 1
        made = ctypes.c_void_p()
        self.call("MatrixCreateCsr", ctypes.byref(made), *map(ctypes.c_int64, (n, n, len(cols))), pointer(first), None,
                  pointer(cols), pointer(values), INT64, INT32, REAL64, POSITIVE if kind == "m" else GENERAL,
                  UPPER if kind == "m" else FULL, 0)
        return made

    def run(self, phase, matrix, x, b):
        self.call("Execute", self.handle, phase, self.config, self.data, matrix, x, b)

    def get(self, what, count=1, kind=ctypes.c_int64):
        found, written = (kind * count)(), ctypes.c_size_t()
        self.call("DataGet", self.handle, self.data, what, found, ctypes.c_size_t(ctypes.sizeof(found)), ctypes.byref(written))
        return list(found) if count > 1 else found[0]


def pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def measure(torch, arguments, kind, matrix, tell):
    n = len(matrix[0]) - 1
    cudss = Cudss(arguments.library, arguments.threads_library)
    told = {"matrix": kind, "rows": n, "entries": len(matrix[1]), "cudss": cudss.version()}
    # Sides that a smooth answer belongs to: a random one tells nothing of a solve that is nearly singular.
    at = torch.arange(n, dtype=torch.float64, device="cuda") / n
    truth = torch.stack([torch.cos(np.pi * (c + 1) * at) for c in range(RIGHT_SIDES)])
    right = product(torch, kind, matrix, truth)
    x = torch.zeros_like(right)
    given, left, b = cudss.sparse(kind, matrix), cudss.dense(x), cudss.dense(right)
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    for phase, name in ((REORDER, "order"), (SYMBOLIC, "symbolic"), (FACTOR, "factor"), (FACTOR, "factor_again"),
                        (SOLVE, "solve"), (SOLVE, "solve_again")):
        start = time.perf_counter()
        cudss.run(phase, given, left, b)
        torch.cuda.synchronize()
        told[name + "_seconds"] = time.perf_counter() - start
        if name == "symbolic":
            told["fill"] = cudss.get(ENTRIES)
            told["flops"] = cudss.get(FLOPS)
            told["device_bytes_estimated"] = cudss.get(ESTIMATES, 16)[1]
        if name == "factor":
            told["device_bytes"] = free - torch.cuda.mem_get_info()[0]
            told["info"] = cudss.get(INFO, kind=ctypes.c_int32)
            told["changed_pivots"] = cudss.get(CHANGED_PIVOTS, kind=ctypes.c_int32)
        tell(told)
    wrong = product(torch, kind, matrix, x) - right
    scale = matrix[2].abs().max() * x.norm(dim=1) + right.norm(dim=1)
    told["backward_error"] = (wrong.norm(dim=1) / scale).max().item()
    tell(told)
    cudss.close(given, left, b)


def one_size(arguments):
    """What one process does: a line of JSON after every phase."""
    import torch

    with tempfile.TemporaryDirectory() as name:
        rows = swiss_roll(arguments.rows[0])
        ids = torch.from_numpy(neighbors(arguments.command, rows, pathlib.Path(name)).astype(np.int64)).cuda()
        weights = weights_of(torch, torch.from_numpy(rows).cuda(), ids)
        for kind in arguments.matrix:
            matrix = matrix_of(torch, kind, ids, weights)
            torch.cuda.empty_cache()
            measure(torch, arguments, kind, matrix, lambda told: print(json.dumps(told), flush=True))
            del matrix


def ours(arguments, n):
    with tempfile.TemporaryDirectory() as name:
        np.save(pathlib.Path(name, "rows.npy"), swiss_roll(n))
        words = [arguments.command, "lle", "rows.npy", "-k", str(K), "-o", "made.npy", "--json", "--quiet"]
        words += ["--solver", "direct", "--device", arguments.ours, "--threads", str(arguments.threads)]
        said = subprocess.run(words, cwd=name, capture_output=True, text=True, timeout=arguments.seconds)
    if said.returncode != 0:
        return {"refused": said.stderr.strip()}
    found = json.loads(said.stdout)
    told = {key: value for key, value in found.items() if key.endswith("seconds")}
    for key in ("fill", "flops"):
        told[key] = sum(piece[key] for piece in found["pieces"])
    told["residual"] = max(value / piece["norm"] for piece in found["pieces"] for value in piece["residuals"])
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", required=True)
    parser.add_argument("--library", default="libcudss.so.1")
    parser.add_argument("--threads-library", help="cuDSS's threading layer; default: the one beside --library")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--matrix", nargs="+", choices=["m", "a"], default=["m", "a"])
    parser.add_argument("--seconds", type=float, default=150, help="after which the process of a size is ended")
    parser.add_argument("--ours", metavar="DEVICE", help="also times `vicinal lle --device DEVICE`")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)),
                        help="of vicinal, and of OpenMP in cuDSS's threading layer")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    result.add_options(parser)
    arguments = parser.parse_args()
    beside = pathlib.Path(arguments.library).with_name("libcudss_mtlayer_gomp.so.1")
    if arguments.threads_library is None and beside.exists():
        arguments.threads_library = str(beside)
    if arguments.one:
        return one_size(arguments)
    environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads)}
    results = []
    for n in arguments.rows:
        own = [sys.executable, __file__, "--one", "--command", str(pathlib.Path(arguments.command).resolve()), "--library",
               arguments.library, "--rows", str(n), "--matrix", *arguments.matrix]
        if arguments.threads_library:
            own += ["--threads-library", arguments.threads_library]
        told, ended = {}, None
        try:
            done = subprocess.run(own, capture_output=True, text=True, timeout=arguments.seconds, env=environment)
            said = done.stdout
            if done.returncode != 0:
                ended = done.stderr.strip().splitlines()[-1]
        except subprocess.TimeoutExpired as late:
            said = (late.stdout or b"").decode()
            ended = f"ended after {arguments.seconds:g} s"
        for line in said.splitlines():
            one = json.loads(line)
            told[one["matrix"]] = one
        results.append({"rows": n, "results": list(told.values()), **({"ended": ended} if ended else {})})
        if arguments.ours:
            results[-1]["vicinal"] = ours(arguments, n)
        print(json.dumps(results[-1]), flush=True)
        result.write(arguments, {"threads": arguments.threads, "results": results})


if __name__ == "__main__":
    main()

"""Other libraries' k nearest neighbors of rows on the device: functions of a table, queries (None: within itself) and k
that return ids [m, k].

What is inside a call is what a user with float32 rows pays: norms, trees, narrowing to bfloat16, padding. None of them
returns the exact answer; how many rows are right is counted where they are called. A library that is not there has a
sentence instead of a function. bench/gpu/peers.sh brings them to a machine without a network.
"""

import importlib.abc
import importlib.machinery
import os
import sys
import types
import unittest.mock

import torch


def without_self(ids, k):
    """k of the k + 1 neighbors of each row in its own table: not the row, or, where it is not there, not the last."""
    own = ids == torch.arange(len(ids), device=ids.device)[:, None]
    own[~own.any(1), -1] = True
    return ids[~own].view(-1, k)


def torch_knn(tf32):
    """The product of matrices in blocks that fit the memory, and topk."""
    def knn(table, queries, k):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        asked = table if queries is None else queries
        norms = table.square().sum(1)
        step = max(1, 4_000_000_000 // len(table))
        found = []
        for begin in range(0, len(asked), step):
            scores = torch.addmm(norms[None, :], asked[begin:begin + step], table.T, alpha=-2)
            if queries is None:
                scores[torch.arange(len(scores)), torch.arange(begin, begin + len(scores))] = torch.inf
            found.append(scores.topk(k, dim=1, largest=False).indices)
        return torch.cat(found)
    return knn


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands for a package that is not there, so that a module which names it can be imported. Nothing of it works."""

    def __init__(self, package):
        self.package = package

    def find_spec(self, name, path=None, target=None):
        if name != self.package and not name.startswith(self.package + "."):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        def attribute(name):
            if name.startswith("__"):  # those that Python's own machinery asks modules for
                raise AttributeError(name)
            return unittest.mock.MagicMock(name=f"{spec.name}.{name}")
        module = types.ModuleType(spec.name)
        module.__getattr__ = attribute
        return module

    def exec_module(self, module):
        pass


def import_flashlib():
    """flash_knn, and None or why its Hopper path cannot run. FlashLib 0.3.0 looks for a helper of the CuTe compiler
    where releases before 4.6 have it; later ones have it a level up. Its Triton kernels need no compiler but are
    imported beside those that do."""
    missing = None
    try:
        import cutlass._mlir_helpers
        import cutlass._mlir_helpers.arith

        sys.modules.setdefault("cutlass.base_dsl._mlir_helpers", cutlass._mlir_helpers)
        import cutlass.cute.runtime  # noqa: F401
        import cutlass.utils.hopper_helpers  # noqa: F401
        import flashlib.primitives.knn.cutedsl.hopper_impl  # noqa: F401
    except Exception as error:  # whatever it is, the Hopper path cannot run
        missing = f"{type(error).__name__}: {error}"
        for name in [name for name in sys.modules if name.split(".")[0] in ("cutlass", "flashlib")]:
            del sys.modules[name]
        sys.meta_path.insert(0, Absent("cutlass"))
    from flashlib import flash_knn

    return flash_knn, missing


def flashlib_knn(flash_knn, dtype, backend):
    def knn(table, queries, k):
        asked = table if queries is None else queries
        more = k if queries is not None else k + 1
        asked, rows = asked[None].to(dtype), table[None].to(dtype)
        if backend == "cutedsl" and rows.shape[2] % 16:  # its Hopper path takes a multiple of 16 columns
            padding = (0, 16 - rows.shape[2] % 16)
            asked, rows = torch.nn.functional.pad(asked, padding), torch.nn.functional.pad(rows, padding)
        ids = flash_knn(asked, rows, more, backend=backend)[1][0].long()
        return ids if queries is not None else without_self(ids, k)
    return knn


def faiss_knn(dtype):
    """bfKnn of FAISS's GPU part, without cuVS."""
    import faiss

    resources = faiss.StandardGpuResources()
    resources.setDefaultNullStreamAllDevices()
    types_of = {torch.float32: faiss.DistanceDataType_F32, torch.bfloat16: faiss.DistanceDataType_BF16}

    def knn(table, queries, k):
        asked = table if queries is None else queries
        more = k if queries is not None else k + 1
        rows, asked = table.to(dtype), asked.to(dtype)
        ids = torch.empty((len(asked), more), dtype=torch.int64, device="cuda")
        distances = torch.empty((len(asked), more), dtype=torch.float32, device="cuda")
        job = faiss.GpuDistanceParams()
        job.metric, job.k, job.dims = faiss.METRIC_L2, more, rows.shape[1]
        job.vectorType = job.queryType = types_of[dtype]
        job.vectorsRowMajor = job.queriesRowMajor = True
        job.vectors, job.numVectors = faiss.cast_integer_to_void_ptr(rows.data_ptr()), len(rows)
        job.queries, job.numQueries = faiss.cast_integer_to_void_ptr(asked.data_ptr()), len(asked)
        job.outDistances = faiss.cast_integer_to_float_ptr(distances.data_ptr())
        job.outIndices = faiss.cast_integer_to_void_ptr(ids.data_ptr())
        job.outIndicesType = faiss.IndicesDataType_I64
        job.device = torch.cuda.current_device()
        if hasattr(job, "use_cuvs"):
            job.use_cuvs = False
        faiss.bfKnn(resources, job)
        return ids if queries is not None else without_self(ids, k)
    return knn


def cuvs_knn():
    """cuVS's brute force; its index, which holds the rows' norms, is made inside the call, too."""
    from cuvs.common import Resources
    from cuvs.neighbors import brute_force

    resources = Resources()

    def knn(table, queries, k):
        asked = table if queries is None else queries
        more = k if queries is not None else k + 1
        index = brute_force.build(table, metric="sqeuclidean", resources=resources)
        ids = torch.empty((len(asked), more), dtype=torch.int64, device="cuda")
        distances = torch.empty((len(asked), more), dtype=torch.float32, device="cuda")
        brute_force.search(index, asked, more, neighbors=ids, distances=distances, resources=resources)
        resources.sync()
        return ids if queries is not None else without_self(ids, k)
    return knn


def jztree_knn():
    """jz-tree, of two or three float32 columns: its tree is made inside the call, too. It counts the row itself."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or JAX takes most of the memory
    import jax
    import jztree.knn

    def knn(table, queries, k):
        assert queries is None
        _, ids = jztree.knn.knn.jit(jax.dlpack.from_dlpack(table), k + 1, result="rad_globalidx")
        ids.block_until_ready()
        return without_self(torch.from_dlpack(ids), k)
    return knn


def libraries():
    """({name: function}, {name: why it is not there})."""
    found = {"torch float32": torch_knn(False), "torch tf32": torch_knn(True)}
    missing = {}
    for name, make in (("cuvs", cuvs_knn), ("jztree", jztree_knn)):
        try:
            found[name] = make()
        except Exception as error:  # a peer that cannot be imported, for whatever reason, is one that is not there
            missing[name] = f"{type(error).__name__}: {error}"
    try:
        flash_knn, no_hopper = import_flashlib()
        found["flashlib triton tf32"] = flashlib_knn(flash_knn, torch.float32, "triton")
        found["flashlib triton bfloat16"] = flashlib_knn(flash_knn, torch.bfloat16, "triton")
        if no_hopper is None:
            found["flashlib hopper bfloat16"] = flashlib_knn(flash_knn, torch.bfloat16, "cutedsl")
        else:
            missing["flashlib hopper bfloat16"] = no_hopper
    except Exception as error:
        missing["flashlib"] = f"{type(error).__name__}: {error}"
    try:
        found["faiss float32"] = faiss_knn(torch.float32)
        found["faiss bfloat16"] = faiss_knn(torch.bfloat16)
    except Exception as error:
        missing["faiss"] = f"{type(error).__name__}: {error}"
    return found, missing

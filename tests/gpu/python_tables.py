"""Tables of CuPy, PyTorch and JAX on a CUDA device, through the Python package: the bits of the processor, no copy,
right also while the producer's stream is busy, and results of the table's library.

`run.sh python` runs it with pytest. Libraries that are not installed are skipped; arrays that the driver allocates are
always there, so with the fake device (docs/architecture.md) it runs without a device, too, but for streams.
"""

import os
import pathlib
import pickle
import subprocess
import sys
import threading

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np
import pytest

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "python")]
from device_arrays import arrays_on_device, dlpack_arrays_on_device

import vicinal as vc

MISSING = vc.doctor(device="cpu").cuda_missing
pytestmark = pytest.mark.skipif(MISSING != "", reason=MISSING)

DRAW = np.random.default_rng(11)
#: Whole numbers that every type has, some rows equal, few columns.
TABLE = DRAW.integers(0, 100, (600, 5)).astype(np.float64)
TABLE[[7, 300, 500]] = TABLE[3]
QUERIES = DRAW.integers(0, 100, (50, 5)).astype(np.float64)
LABELS = np.arange(600) % 3
#: Large and wide enough for products on tensor cores.
WIDE = DRAW.normal(size=(4096, 64)).astype(np.float32)
ROLL = vc.generate("swiss_roll", rows=800, seed=5).points
TYPES = ["float64", "float32", "float16", "bfloat16", "uint8"]


def same(left, right):
    left, right = np.asarray(left), np.asarray(right)
    assert left.dtype == right.dtype and left.shape == right.shape, (left.dtype, right.dtype, left.shape, right.shape)
    assert left.tobytes() == right.tobytes()


# ---- libraries ------------------------------------------------------------------------------------------------------


class OfInterface:
    """Arrays that have `__cuda_array_interface__` alone."""

    name = "interface"
    types = [kind for kind in TYPES if kind != "bfloat16"]
    lists = False  # whether k lists stay on the device

    def __init__(self):
        self.kind = arrays_on_device()

    def put(self, array, kind="float64"):
        return self.kind(array.astype(kind))


class OfDlpack(OfInterface):
    """Arrays that speak DLPack alone."""

    name = "dlpack"
    types = TYPES

    def __init__(self):
        self.kind = dlpack_arrays_on_device()

    def put(self, array, kind="float64"):
        if kind == "bfloat16":
            return self.kind((array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16), bfloat16=True)
        return self.kind(array.astype(kind))


def warmed(library):
    """A kernel is compiled or loaded at its first use, which may wait for others."""
    library.keep_busy(1)
    for kind in ("int64", "float64", "float32"):
        array = library.empty((40, 40), kind)
        library.assign(array, library.put(np.ones((40, 40)), kind))
        library.fill(array, 5)
    library.finish()


class Cupy:
    name = "cupy"
    types = [kind for kind in TYPES if kind != "bfloat16"]
    lists = True

    def __init__(self):
        self.module = pytest.importorskip("cupy")
        self.spin = self.module.RawKernel(
            'extern "C" __global__ void spin(long long cycles) {'
            "  const long long start = clock64(); while (clock64() - start < cycles) {} }",
            "spin",
        )
        warmed(self)

    def put(self, array, kind="float64"):
        return self.module.asarray(array.astype(kind))

    def host(self, array):
        return array.get()

    def stream(self):
        return self.module.cuda.Stream(non_blocking=True)

    def entered(self, stream):
        return stream

    def on_device(self, number):
        return self.module.cuda.Device(number)

    def keep_busy(self, cycles=600_000_000):
        self.spin((1,), (1,), (np.int64(cycles),))

    def empty(self, shape, kind):
        return self.module.full(shape, -1 if kind == "int64" else np.nan, kind)

    def is_busy(self, stream):
        return not stream.done

    def fill(self, array, value):
        array.fill(value)

    def assign(self, array, source):
        array[...] = source

    def finish(self):
        self.module.cuda.runtime.deviceSynchronize()

    def free_memory(self):
        self.finish()
        return self.module.cuda.runtime.memGetInfo()[0]


class Torch:
    name = "torch"
    types = TYPES
    lists = True

    def __init__(self):
        self.module = pytest.importorskip("torch")
        if not self.module.cuda.is_available():
            pytest.skip("this PyTorch has no CUDA device")
        warmed(self)

    def put(self, array, kind="float64"):
        return self.module.from_numpy(np.ascontiguousarray(array)).to("cuda", getattr(self.module, kind))

    def host(self, array):
        return array.cpu().numpy()

    def stream(self):
        return self.module.cuda.Stream()

    def entered(self, stream):
        return self.module.cuda.stream(stream)

    def on_device(self, number):
        return self.module.cuda.device(number)

    def keep_busy(self, cycles=600_000_000):
        self.module.cuda._sleep(cycles)

    def empty(self, shape, kind):
        value = -1 if kind == "int64" else float("nan")
        return self.module.full(shape, value, dtype=getattr(self.module, kind), device="cuda")

    def is_busy(self, stream):
        return not stream.query()

    def fill(self, array, value):
        array.fill_(value)

    def assign(self, array, source):
        array.copy_(source)

    def finish(self):
        self.module.cuda.synchronize()

    def free_memory(self):
        self.finish()
        return self.module.cuda.mem_get_info()[0]


class Jax:
    name = "jax"
    types = ["float32", "float16", "bfloat16", "uint8"]
    lists = False

    def __init__(self):
        self.module = pytest.importorskip("jax.numpy")
        if pytest.importorskip("jax").default_backend() != "gpu":
            pytest.skip("this JAX has no CUDA device")

    def put(self, array, kind="float32"):
        return self.module.asarray(array, getattr(self.module, kind)).block_until_ready()


@pytest.fixture(scope="module", params=[OfInterface, OfDlpack, Cupy, Torch, Jax], ids=lambda kind: kind.name)
def library(request):
    return request.param()


@pytest.fixture(scope="module", params=[Cupy, Torch], ids=lambda kind: kind.name)
def streaming(request):
    return request.param()


# ---- functions ------------------------------------------------------------------------------------------------------


def lists(graph):
    host = graph.host()
    return [host.ids, host.distances] + ([] if host.offsets is None else [host.offsets])


def steps(table, queries, **where):
    made = vc.KMeansSteps(table, clusters=4, **where)
    made.start(TABLE[:4])
    made.assign()
    made.means()
    return [made.labels(), made.keys(), made.centres(), np.float64(made.inertia())]


def scores(score):
    return lambda table, queries, **where: [vc.lof(table, k=6, score=score, **where).scores]


def novelty(table, queries, **where):
    index = vc.Index(table, **where)
    fitted = vc.lof(index, k=6, novelty=True, **where)
    return [fitted.scores, vc.novelty(index, fitted, queries, **where)]


def clusters(table, queries, **where):
    model = vc.kmeans(table, clusters=4, seed=3, **where)
    return [model.labels, model.centres, model.sizes, vc.predict(model, queries, **where)]


def classified(table, queries, **where):
    found = vc.classify(table, queries, LABELS, k=6, weights="distance", probabilities=True, **where)
    return [found.codes, found.probabilities]


def of_index(table, queries, **where):
    index = vc.Index(table, **where)
    return [*lists(index.knn(queries, k=5, **where)), *lists(index.knn(k=3, metric="manhattan", **where))]


METRICS = ["euclidean", "sqeuclidean", "inner_product", "cosine", "manhattan", "chebyshev", "minkowski", "hamming"]
FUNCTIONS = {
    **{
        f"knn {metric}": lambda table, queries, metric=metric, **where: [
            *lists(vc.knn(table, k=7, metric=metric, p=3, **where)),
            *lists(vc.knn(table, queries, k=7, metric=metric, p=3, **where)),
        ]
        for metric in METRICS
    },
    "knn kdtree": lambda table, queries, **where: lists(vc.knn(table, queries, k=7, method="kdtree", **where)),
    "knn filter": lambda table, queries, **where: lists(vc.knn(table, k=3, filter=LABELS != 1, **where)),
    "radius": lambda table, queries, **where: lists(vc.radius(table, radius=25.0, **where)),
    "radius queries": lambda table, queries, **where: lists(
        vc.radius(table, queries, radius=np.linspace(0, 40, 50), order="id", **where)
    ),
    "count": lambda table, queries, **where: [vc.count(table, queries, radius=30.0, **where).counts],
    "index": of_index,
    "classify": classified,
    "regress": lambda table, queries, **where: [vc.regress(table, queries, TABLE[:, :2], radius=40.0, **where).values],
    "vote": lambda table, queries, **where: [vc.vote(vc.knn(table, queries, k=5, **where), LABELS).codes],
    "average": lambda table, queries, **where: [vc.average(vc.knn(table, queries, k=5, **where), TABLE[:, 0])],
    "cross_validate": lambda table, queries, **where: [
        vc.cross_validate(table, LABELS, k=1, k_to=4, folds=3, seed=2, **where).fold_scores
    ],
    **{f"lof {score}": scores(score) for score in ("lof", "loop", "ldof", "cof", "inflo", "knn")},
    "novelty": novelty,
    "kmeans": clusters,
    "steps": steps,
}
#: LDOF and COF compare rows of a table in host memory.
ON_THE_HOST = ("lof ldof", "lof cof")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_host_tables(name):
    call = FUNCTIONS[name]
    for left, right in zip(call(TABLE, QUERIES, device="cuda"), call(TABLE, QUERIES, device="cpu"), strict=True):
        same(left, right)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", TYPES)
def test_device_tables(library, kind, name):
    if kind not in library.types:
        return
    call = FUNCTIONS[name]
    found = call(library.put(TABLE, kind), library.put(QUERIES, kind))
    for left, right in zip(found, call(TABLE, QUERIES, device="cpu"), strict=True):
        same(left, right)


@pytest.mark.parametrize("kind", TYPES)
def test_nothing_is_copied(library, kind):
    if kind not in library.types:
        return
    table, queries = library.put(TABLE, kind), library.put(QUERIES, kind)
    for result in (
        vc.knn(table, k=3),
        vc.knn(table, queries, k=3),
        vc.radius(table, radius=20.0),
        vc.count(table, radius=20.0),
        vc.Index(table),
        vc.lof(table, k=5),
        vc.kmeans(table, clusters=3),
        vc.KMeansSteps(table, clusters=3),
    ):
        assert result.copied == 0, result
        if hasattr(result, "plan"):
            assert result.plan.device == "cuda:0", result.plan


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16"])
def test_wide_tables(library, kind):
    if kind not in library.types:
        return
    bits = WIDE.view(np.uint32) >> 16 << 16
    rounded = bits.view(np.float32) if kind == "bfloat16" else WIDE.astype(kind).astype(np.float32)
    graph = vc.knn(library.put(rounded, kind), k=10)
    expected = vc.knn(rounded, k=10, device="cpu")
    for left, right in zip(lists(graph), lists(expected), strict=True):
        same(left, right)
    assert graph.copied == 0


@pytest.mark.parametrize("variant", ["standard", "modified", "hessian", "ltsa"])
def test_embeddings(library, variant):
    """Within twice the contract's accuracy, since each may be off by that."""
    if "float64" not in library.types:
        return
    expected = vc.lle(ROLL, k=12, variant=variant, device="cpu")
    for table, where in ((library.put(ROLL), {}), (ROLL, {"device": "cuda"})):
        found = vc.lle(table, k=12, variant=variant, **where)
        assert found.copied == 0 and len(found.pieces) == len(expected.pieces) == 1
        ours, theirs = found.pieces[0], expected.pieces[0]
        bound = 2 * np.maximum(1e-6 * theirs.singular_values, 1e-14 * np.sqrt(theirs.norm))
        assert (np.abs(ours.singular_values - theirs.singular_values) <= bound).all()
        gap = theirs.next_singular_value**2 - theirs.singular_values[-1] ** 2
        across = found.embedding - expected.embedding @ (expected.embedding.T @ found.embedding)
        sine = np.sqrt((across**2).sum(axis=0)).max()
        assert sine <= 2 * max(1e-6, 10 * 2.0**-52 * theirs.norm / gap), sine


# ---- results --------------------------------------------------------------------------------------------------------


def test_lists_are_of_the_tables_library(streaming):
    graph = vc.knn(streaming.put(TABLE, "float32"), streaming.put(QUERIES, "float32"), k=4)
    expected = vc.knn(TABLE, QUERIES, k=4, device="cpu")
    assert isinstance(graph, vc.DeviceGraph)
    for left, right in ((graph.ids, expected.ids), (graph.distances, expected.distances)):
        assert type(left).__module__.partition(".")[0] == streaming.name
        same(streaming.host(left), right)
    again = pickle.loads(pickle.dumps(graph))
    same(again.ids, expected.ids)


def test_lists_come_to_the_host(library):
    if library.lists:
        return
    kind = library.types[0]
    assert type(vc.knn(library.put(TABLE, kind), k=3)) is vc.NeighborGraph


def test_memory_that_a_busy_stream_writes_is_no_result(streaming):
    """PyTorch's and CuPy's pools give memory again that kernels on its stream have yet to write."""
    table, queries = streaming.put(TABLE), streaming.put(QUERIES)
    expected = vc.knn(TABLE, QUERIES, k=64, device="cpu")
    streaming.finish()
    stream = streaming.stream()
    with streaming.entered(stream):
        passing = [streaming.empty((len(QUERIES), 64), kind) for kind in ("int64", "float64")]
        streaming.finish()
        streaming.keep_busy()
        for array in passing:
            streaming.fill(array, 5)
        del array, passing
        assert streaming.is_busy(stream)
        graph = vc.knn(table, queries, k=64)
    streaming.finish()
    same(streaming.host(graph.ids), expected.ids)
    same(streaming.host(graph.distances), expected.distances)


# ---- busy streams ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_producer_that_is_not_ready(streaming, name):
    """On a side stream a slow kernel runs before the table is written; until then it is NaN."""
    call = FUNCTIONS[name]
    expected = call(TABLE, QUERIES, device="cpu")
    source, queries = streaming.put(TABLE, "float32"), streaming.put(QUERIES, "float32")
    late = streaming.empty(TABLE.shape, "float32")
    streaming.finish()
    stream = streaming.stream()
    with streaming.entered(stream):
        streaming.keep_busy()
        streaming.assign(late, source)
        assert streaming.is_busy(stream)
        found = call(late, queries)
    for left, right in zip(found, expected, strict=True):
        same(left, right)


@pytest.mark.parametrize("which", ["handle", "blocking", "per thread", "legacy"])
def test_an_interface_whose_stream_is_busy(which):
    """`__cuda_array_interface__` alone, whose version 3 names the stream."""
    cupy = Cupy()
    streams = cupy.module.cuda.Stream
    stream = {
        "handle": lambda: streams(non_blocking=True),
        "blocking": streams,
        "per thread": lambda: streams.ptds,
        "legacy": lambda: streams.null,
    }[which]()

    class Only:
        def __init__(self, array):
            number = {"per thread": 2, "legacy": 1}.get(which, stream.ptr)
            self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": number}
            self.owner = array

    expected = vc.knn(TABLE, k=5, device="cpu")
    source, late = cupy.put(TABLE), cupy.empty(TABLE.shape, "float64")
    cupy.finish()
    with stream:
        cupy.keep_busy()
        cupy.assign(late, source)
        assert cupy.is_busy(stream)
    same(vc.knn(Only(late), k=5).ids, expected.ids)


def test_threads_with_streams_of_their_own(streaming):
    expected = vc.knn(TABLE, k=5, device="cpu")
    source = streaming.put(TABLE)
    wrong = []

    def work():
        for _ in range(5):
            stream = streaming.stream()
            with streaming.entered(stream):
                late = streaming.empty(TABLE.shape, "float64")
                streaming.keep_busy(20_000_000)
                streaming.assign(late, source)
                graph = vc.knn(late, k=5)
                if not np.array_equal(streaming.host(graph.ids), expected.ids):
                    wrong.append(graph)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- what tables may be ---------------------------------------------------------------------------------------------


def check(table, expected=None, copied=0):
    graph = vc.knn(table, k=5)
    same(graph.host().ids, vc.knn(TABLE if expected is None else expected, k=5, device="cpu").ids)
    assert graph.copied == copied


def test_layouts_of_torch():
    torch = Torch()
    table = torch.put(TABLE)
    check(table.T.contiguous().T)
    wide = torch.module.zeros((1200, 15), dtype=torch.module.float64, device="cuda")
    wide[::2, ::3] = table
    check(wide[::2, ::3])
    check(table[0].expand(40, 5), np.broadcast_to(TABLE[0], (40, 5)))
    check(table[:, :1], TABLE[:, :1])
    check((table > 50), TABLE > 50)


def test_layouts_of_cupy():
    cupy = Cupy()
    table = cupy.put(TABLE)
    check(cupy.module.asfortranarray(table))
    check(cupy.module.ascontiguousarray(table[::-1])[::-1])
    check(cupy.module.ascontiguousarray(table[:, ::-1])[:, ::-1])
    check(cupy.module.broadcast_to(table[0], (40, 5)), np.broadcast_to(TABLE[0], (40, 5)))
    check(table > 50, TABLE > 50)


def test_tables_of_another_device(streaming):
    """While the first device is the current one; needs two."""
    devices = vc.doctor(device="cpu").cuda_devices
    if len(devices) < 2:
        pytest.skip("there is one device")
    expected = vc.knn(TABLE, k=5, device="cpu")
    with streaming.on_device(1):
        source, late = streaming.put(TABLE), streaming.empty(TABLE.shape, "float64")
        streaming.finish()
        stream = streaming.stream()
    with streaming.on_device(1), streaming.entered(stream):
        streaming.keep_busy()
        streaming.assign(late, source)
        with streaming.on_device(0):
            graph = vc.knn(late, k=5)
    assert graph.plan.device == "cuda:1"
    same(streaming.host(graph.ids), expected.ids)


def test_managed_and_pinned_memory():
    cupy = Cupy()
    pool = cupy.module.cuda.MemoryPool(cupy.module.cuda.malloc_managed)
    with cupy.module.cuda.using_allocator(pool.malloc):
        table = cupy.put(TABLE)
    cupy.finish()
    check(table)
    torch = Torch()
    same(vc.knn(torch.put(TABLE).cpu().pin_memory(), k=5, device="cpu").ids, vc.knn(TABLE, k=5, device="cpu").ids)


def test_tensors_that_require_a_gradient():
    torch = Torch()
    table = torch.put(TABLE).requires_grad_()
    for refused in (table, torch.module.nn.Parameter(table.detach()), torch.put(TABLE, "bfloat16").requires_grad_()):
        with pytest.raises(vc.InvalidArgument, match="table: its memory cannot be borrowed by DLPack.*detach"):
            vc.knn(refused, k=3)
    check(table.detach())
    on_host = torch.module.from_numpy(TABLE.copy()).requires_grad_()
    with pytest.raises(vc.InvalidArgument, match="table: its memory cannot be borrowed by DLPack.*detach"):
        vc.knn(on_host, k=3)


def test_what_is_refused(streaming):
    table = streaming.put(TABLE)
    with pytest.raises(vc.InvalidArgument, match="queries: is in host memory, but table is not"):
        vc.knn(table, QUERIES)
    with pytest.raises(vc.InvalidArgument, match="queries: is in device memory, but table is not"):
        vc.knn(TABLE, streaming.put(QUERIES))
    with pytest.raises(vc.InvalidArgument, match="table: is in device memory, but device is 'cpu'"):
        vc.knn(table, device="cpu")
    with pytest.raises(vc.InvalidArgument, match="table: elements of another type on a device"):
        vc.knn(streaming.put(TABLE, "int64"))
    with pytest.raises(vc.InvalidArgument, match="table: 1 dimensions"):
        vc.knn(table[0])
    with pytest.raises(vc.DeviceUnavailable):
        vc.knn(TABLE, device="cuda:99")
    bad = TABLE.copy()
    bad[7, 2] = np.nan
    with pytest.raises(vc.BadData, match="row 7, column 2"):
        vc.knn(streaming.put(bad))


def test_no_device_memory_leaks(streaming):
    def calls(times):
        for _ in range(times):
            table = streaming.put(TABLE)
            vc.knn(table, k=5)
            vc.Index(table).knn(k=3)
            vc.lof(table, k=5)
            vc.kmeans(table, clusters=3)
            with pytest.raises(vc.InvalidArgument):
                vc.knn(table, k=10_000)

    calls(20)
    before = streaming.free_memory()
    calls(250)
    assert before - streaming.free_memory() < 16e6


# ---- scikit-learn ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def classes():
    sklearn = pytest.importorskip("sklearn")
    if not sklearn.__version__.startswith("1.9."):
        pytest.skip(f"scikit-learn 1.9 is needed, there is {sklearn.__version__}")
    return pytest.importorskip("vicinal.sklearn")


def models(classes, rows):
    return {
        "neighbors": classes.NearestNeighbors(n_neighbors=4).fit(rows),
        "classifier": classes.KNeighborsClassifier(6, weights="distance").fit(rows, LABELS),
        "regressor": classes.KNeighborsRegressor(6).fit(rows, TABLE[:, :2]),
        "outliers": classes.LocalOutlierFactor(8, novelty=True).fit(rows),
        "clusters": classes.KMeans(4, random_state=1).fit(rows),
    }


def used(model, queries):
    if hasattr(model, "score_samples"):
        return model.score_samples(queries)
    return model.predict(queries) if hasattr(model, "predict") else model.kneighbors(queries)[1]


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_estimators(classes, library, kind):
    """Scores of float32 rows are float32, as scikit-learn's are."""
    if kind not in library.types:
        return
    rows, queries = library.put(TABLE, kind), library.put(QUERIES, kind)
    on_host = models(classes, TABLE.astype(kind))
    for name, model in models(classes, rows).items():
        if name == "clusters":
            expected = vc.kmeans(TABLE, clusters=4, seed=1, device="cpu")
            same(model.labels_, expected.labels)
            same(used(model, queries), vc.predict(expected, QUERIES, device="cpu").astype(model.labels_.dtype))
        else:
            same(np.asarray(used(model, queries)), np.asarray(used(on_host[name], QUERIES.astype(kind))))


LOADED = """
import pathlib, pickle, sys
sys.path[:0] = sys.argv[2:]
import numpy as np
import vicinal as vc
assert vc.doctor(device="cpu").cuda_missing, "a device is there"
for name, (model, queries, expected) in pickle.loads(pathlib.Path(sys.argv[1]).read_bytes()).items():
    if hasattr(model, "device"):
        model.set_params(device="cpu")
    if name == "kmeans":
        found = model.predict(queries)
    elif hasattr(model, "score_samples"):
        found = model.score_samples(queries)
    else:
        found = model.predict(queries) if hasattr(model, "predict") else model.kneighbors(queries)[1]
    np.testing.assert_array_equal(found, expected, err_msg=name)
"""


def test_models_of_a_device_predict_on_a_processor(classes, tmp_path):
    """vicinal's, scikit-learn's with the patch, and those of vicinal.sklearn."""
    stored = {"kmeans": vc.kmeans(TABLE, clusters=4, seed=1, device="cuda")}
    stored = {name: (model, QUERIES, model.predict(QUERIES)) for name, model in stored.items()}
    from sklearn import neighbors

    with vc.patched_sklearn(device="cuda"):
        patched = {
            "patched classifier": neighbors.KNeighborsClassifier(6).fit(TABLE, LABELS),
            "patched outliers": neighbors.LocalOutlierFactor(8, novelty=True).fit(TABLE),
        }
        stored |= {name: (model, QUERIES, used(model, QUERIES)) for name, model in patched.items()}
    fitted = models(classes, TABLE)
    for model in fitted.values():
        model.set_params(device="cuda")
    stored |= {f"own {name}": (model, QUERIES, used(model, QUERIES)) for name, model in fitted.items()}
    (tmp_path / "models").write_bytes(pickle.dumps(stored))
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "VICINAL_CUDA_PLUGIN": "/nowhere/libvicinal_cuda.so"}
    done = subprocess.run(
        [sys.executable, "-c", LOADED, str(tmp_path / "models"), *sys.path],
        env=environment,
        text=True,
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr

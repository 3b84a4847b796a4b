"""The rows of `vicinal-bench peers`: what each measures, by which script, in which environment, at three sizes.

A size is the words that the row's script gets in addition to those of every run (command.py). `full` is the size that
the pages of docs quote, `short` that of `./dev bench`, `quick` that of tests. A row without a short size is no part of
the short set.
"""

import dataclasses

FASHION = "/usr/share/datasets/fashion-mnist/"


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    group: str
    about: str
    script: str  # a key of adapters.ADAPTERS
    environment: str
    peers: tuple[str, ...]  # as the adapter names them
    full: str
    quick: str
    short: str | None = None
    needs: str = ""  # below $VICINAL_DATA, or an absolute path
    quick_needs: str | None = None  # the same of the quick size, where it differs


BRUTE = ("faiss", "sklearn", "sklearnex")
TREES = ("sklearn-tree", "scipy", "pykdtree", "nanoflann", "libann")
KMEANS = ("sklearn", "sklearnex", "faiss", "superkmeans")
DENSITY = ("quitefastmst", "fast_hdbscan", "hdbscan", "sklearn")
SHORT_READY = "--scale 0.1 --turns 5 --queries 1,16,64 -k 10 --tables-only"
READY = ("faiss", "panorama", "pdx")
KDD = "kddcup99/kddcup.data_10_percent.gz"
NYC = "spatial/nyc_tracts"
GPU_KNN = ("torch float32", "torch tf32", "cuvs", "flashlib triton tf32", "flashlib triton bfloat16",
           "flashlib hopper bfloat16", "faiss float32", "faiss bfloat16")
GPU_KMEANS = ("torch float32", "torch TF32", "flash-kmeans", "cuml")


def knn(name, about, peers, full, quick, short=None, needs=""):
    return Row(f"knn-{name}", "knn", about, "knn", "knn", peers, full, quick, short, needs)


def made(rows, queries, dims, k, kind="gaussian", dtype="float32"):
    return f"--rows {rows} --queries {queries} --dims {dims} -k {k} --data {kind} --dtype {dtype}"


def knn_made(name, about, peers, dims, k, rows, queries, kind="gaussian", dtype="float32", short=None):
    return knn(name, f"{rows:,} x {dims} {about}, {queries:,} queries, k = {k}", peers,
               made(rows, queries, dims, k, kind, dtype), made(2000, 200, dims, k, kind, dtype) + " --repeat 1",
               short and made(*short, dims, k, kind, dtype) + " --repeat 3")


def kmeans(name, rows, cols, clusters, short=None, about="an iteration", words=""):
    return Row(f"kmeans-{name}", "kmeans", f"{about} of Lloyd's algorithm, {rows:,} x {cols}, {clusters} clusters",
               "kmeans", "kmeans", KMEANS, f"--rows {rows} --cols {cols} --clusters {clusters}{words}",
               f"--rows 20000 --cols {min(cols, 32)} --clusters {min(clusters, 32)} --repeat 1", short)


def kmeans_first(name, rows, cols, clusters):
    """Of so many clusters 25 iterations of all libraries take an hour."""
    return kmeans(name, rows, cols, clusters, None, "an iteration (2 to 5)", " --first --repeat 1")


def density(name, table, short=None, words=""):
    return Row(f"density-{name}", "density", f"HDBSCAN and spanning tree of {table}", "density", "density", DENSITY,
               f"time --only '{table}'{words}", f"time --only '{table}' --scale 0.003 --repeat 1 --timeout 60", short,
               FASHION if table == "fashion" else "")


def ready(name, about, short=None):
    quick = "--scale 0.01 --pool 64 --turns 1 --queries 1,16 -k 10 --tables-only"
    return Row(f"ready-{name}", "ready", f"searches of few queries on a ready index, {about}", "ready", "knn", READY,
               f"--data {name}", f"--data {name} {quick}", short and f"--data {name} {short}",
               FASHION if name == "fashion" else "")


ROWS = (
    knn("fashion", "Fashion-MNIST, 60,000 x 784, 10,000 queries, k = 5", BRUTE,
        f"--table-file {FASHION}train-images-idx3-ubyte.gz --queries-file {FASHION}t10k-images-idx3-ubyte.gz -k 5",
        f"--table-file {FASHION}t10k-images-idx3-ubyte.gz --queries-file {FASHION}t10k-images-idx3-ubyte.gz -k 5 "
        "--repeat 1", needs=FASHION),
    knn_made("gaussian128", "normal", BRUTE, 128, 32, 100_000, 10_000, short=(50_000, 5000)),
    knn_made("gaussian41", "normal", BRUTE, 41, 20, 100_000, 10_000),
    knn("kdd", "KDD Cup 99, 100,000 x 41, 10,000 queries, k = 20", BRUTE + TREES,
        "--table-file {work}/kdd-table.npy --queries-file {work}/kdd-queries.npy -k 20",
        "--table-file {work}/kdd-table.npy --queries-file {work}/kdd-queries.npy -k 20 --repeat 1 --warmup 0",
        needs=KDD),
    knn_made("uniform3", "uniform", TREES, 3, 10, 1_000_000, 200_000, "uniform", "float64", short=(300_000, 60_000)),
    knn_made("uniform8", "uniform", TREES, 8, 10, 1_000_000, 200_000, "uniform", "float64"),
    knn_made("clusters3", "clustered", TREES, 3, 10, 1_000_000, 200_000, "clusters", "float64"),
    knn_made("duplicates3", "with many equal rows", TREES, 3, 10, 1_000_000, 200_000, "duplicates", "float64"),
    kmeans("500k", 500_000, 18, 64),
    kmeans("1m", 1_000_000, 64, 64),
    kmeans("600k", 600_000, 77, 333, "--rows 60000 --cols 77 --clusters 333"),
    kmeans("1m-1024", 1_000_000, 128, 1024, words=" --repeat 1"),
    kmeans("300k-768", 300_000, 768, 1024, words=" --repeat 1"),
    kmeans_first("1m-4096", 1_000_000, 128, 4096),
    kmeans_first("1m-10000", 1_000_000, 128, 10_000),
    Row("lof-100k", "lof", "LOF of 100,000 x 16 normal, k = 20", "lof", "knn", ("sklearn_brute", "sklearnex_float32"),
        "time", "time --rows 3000 --repeat 1", "time --rows 30000 --repeat 3"),
    Row("lof-kdd", "lof", "LOF of 100,000 rows of KDD Cup 99, k = 20", "lof", "knn",
        ("sklearn_brute", "sklearnex_float32"), "time --table {work}/kdd-table.npy",
        "time --table {work}/kdd-table.npy --rows 3000 --repeat 1", needs=KDD),
    Row("lof-packages", "lof", "LOF, kNN, COF and LoOP beside PyOD and PyNomaly", "lof_packages", "outliers",
        ("pyod lof", "pyod knn", "pyod cof", "pynomaly loop"), "packages", "packages --rows 2000 --repeat 1",
        "packages --rows 5000 --repeat 3"),
    Row("lle-10k", "lle", "LLE of a Swiss roll of 10,000 rows, k = 12", "lle", "lle", ("sklearn", "tapkee"),
        "paired --rows 10000", "paired --rows 2000 --repeat 1", "paired --rows 10000"),
    Row("lle-30k", "lle", "LLE of a Swiss roll of 30,000 rows, k = 12", "lle", "lle", ("sklearn", "tapkee"),
        "paired --rows 30000", "paired --rows 3000 --repeat 1"),
    Row("lle-ordering", "lle", "ordering and factor of LLE's matrix of 100,000 rows", "ordering", "lle",
        ("METIS", "CHOLMOD"), "--rows 100000", "--rows 3000", "--rows 30000"),
    density("250k-2", "250,000 x 2", "time --only '250,000 x 2' --scale 0.06 --repeat 2 --timeout 60", " --repeat 9"),
    density("1m-3", "1,000,000 x 3"),
    density("1m-16", "1,000,000 x 16"),
    density("100k-128", "100,000 x 128"),
    density("fashion", "fashion"),
    Row("density-optics", "density", "OPTICS of 10,000 x 3 normal", "optics", "density", ("sklearn",),
        "optics --only 'normal 3'", "optics --only 'normal 3' --scale 0.2", "optics --only 'normal 3' --scale 0.3"),
    Row("match-nyc", "match", "census tracts of New York, 2010 and 2020, file to file", "match", "match",
        ("geopandas", "topo-tools"), "{data}/spatial/nyc_tracts/nyc_tracts_2010.gpkg "
        "{data}/spatial/nyc_tracts/nyc_tracts_2020.gpkg",
        "{work}/squares-900-old.geojson {work}/squares-900-new.geojson --repeat 1",
        "{work}/squares-10000-old.geojson {work}/squares-10000-new.geojson",
        NYC, ""),
    ready("gaussian", "1,000,000 x 128 normal", SHORT_READY),
    ready("sift", "1,000,000 x 128 whole numbers", SHORT_READY),
    ready("gist", "1,000,000 x 960 with a decaying spectrum"),
    ready("fashion", "Fashion-MNIST, 60,000 x 784"),
    Row("read-csv", "read", "a CSV file of 1 GB, 41 columns", "read", "csv", ("pandas", "pyarrow"), "--bytes 1e9",
        "--bytes 3e6 --repeat 1", "--bytes 1e8 --repeat 3"),
    Row("missing-100k", "missing", "100,000 x 20 with 5 % of the values missing, filled", "missing", "knn",
        ("sklearn",), "--repeat 1", "--rows 2000 --repeat 1", "--rows 4000 --repeat 2"),
    Row("gpu-knn", "gpu", "1,000,000 x 128 in device memory, 10,000 queries, k = 32", "gpu_knn", "gpu", GPU_KNN,
        "1Mx10k-d128", "1Mx10k-d128 --scale 100 --seconds 5"),
    Row("gpu-knn-3", "gpu", "10,000,000 x 3 within itself in device memory, k = 16", "gpu_knn", "gpu",
        (*GPU_KNN, "jztree"), "10M-self-d3", "10M-self-d3 --scale 100 --seconds 5"),
    Row("gpu-kmeans", "gpu", "an iteration of Lloyd's algorithm, 1,000,000 x 128 in device memory, 1000 clusters",
        "gpu_kmeans", "gpu", GPU_KMEANS, "1M-d128-k1000", "1M-d128-k1000 --scale 100"),
    Row("gpu-cudss", "gpu", "ordering and factor of LLE's matrix of 100,000 rows on the device", "cudss", "gpu",
        ("cuDSS",), "--rows 100000 --matrix m", "--rows 3000 --matrix m"),
)
GROUPS = tuple(dict.fromkeys(row.group for row in ROWS))
SIZES = ("full", "short", "quick")


def chosen(names):
    """Rows of these names and groups, each once, in the order of ROWS; all where none is named. Raises KeyError."""
    if not names:
        return list(ROWS)
    known = {row.name for row in ROWS} | set(GROUPS)
    for name in names:
        if name not in known:
            raise KeyError(name)
    return [row for row in ROWS if row.name in names or row.group in names]


def words(row, size):
    return {"full": row.full, "short": row.short, "quick": row.quick}[size]


def planner_rows():
    """{name: words} of the data sets of bench/planner.py."""
    return {row.name.removeprefix("knn-"): row.full for row in ROWS if row.group == "knn"}

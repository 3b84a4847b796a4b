"""What the tests of the command share: where it is, how it is run, and small tables to run it on.

VICINAL_COMMAND is the command's path; VICINAL_DATA, where set, a folder with real data. Tests that need the data are
skipped with a reason where it is not there.
"""

import gzip
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from small_disk import small_disk  # noqa: E402, F401

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")


def command_path():
    path = os.environ.get("VICINAL_COMMAND") or shutil.which("vicinal")
    if not path:
        raise pytest.UsageError("VICINAL_COMMAND must name the vicinal command")
    return str(pathlib.Path(path).resolve())


@pytest.fixture(scope="session")
def command():
    return command_path()


@pytest.fixture
def vicinal(tmp_path, command):
    """Runs the command in the test's own folder; returns the finished process, text decoded."""

    def run(*arguments, cwd=tmp_path, timeout=300, **options):
        return subprocess.run(
            [command, *map(str, arguments)], cwd=cwd, timeout=timeout, text=True, capture_output=True, **options
        )

    return run


@pytest.fixture
def ok(vicinal):
    """As `vicinal`, for runs that must succeed; returns stdout."""

    def run(*arguments, **options):
        done = vicinal(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def ok_json(ok):
    return lambda *arguments, **options: json.loads(ok(*arguments, "--json", **options))


@pytest.fixture
def run_examples(command, vicinal, tmp_path):
    """Runs the examples in the help of a subcommand."""

    def run(*words):
        done = vicinal(*words, "--help")
        assert done.returncode == 0 and done.stderr == ""
        name = pathlib.Path(command).name
        lines = [line.strip() for line in done.stdout.split("EXAMPLES", 1)[1].splitlines()]
        examples = [line for line in lines if line.startswith(f"{name} ")]
        assert 2 <= len(examples) <= 4
        path = f'PATH="{pathlib.Path(command).parent}:$PATH"'
        for example in examples:
            ran = subprocess.run(["bash", "-c", f"{path}; {example}"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
            if ran.returncode == 5 and "libvicinal_geo.so" in ran.stderr:
                pytest.skip(ran.stderr.strip())
            assert ran.returncode == 0, f"{example}: {ran.stderr}"

    return run


@pytest.fixture
def model_texts(tmp_path):
    """The texts in a model file's header."""

    def read(name):
        content = (tmp_path / name).read_bytes()
        return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]

    return read


@pytest.fixture(scope="session")
def data_folder():
    folder = os.environ.get("VICINAL_DATA")
    if not folder or not pathlib.Path(folder).is_dir():
        pytest.skip("VICINAL_DATA is not set to a folder of real data")
    return pathlib.Path(folder)


def write_csv(path, table, labels=None, header=True):
    lines = []
    if header:
        lines.append(",".join([f"x{j}" for j in range(table.shape[1])] + (["class"] if labels is not None else [])))
    for i, row in enumerate(table):
        lines.append(",".join([repr(float(v)) for v in row] + ([str(labels[i])] if labels is not None else [])))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def small_files(tmp_path):
    """train and test as .npy and .csv with text classes, the same tables in both; edges.csv, pairs of ids; and old and
    new.geojson, maps of squares."""
    generator = np.random.default_rng(5)
    centers = generator.normal(scale=2.5, size=(3, 4))
    names = np.array(["ash", "birch", "cedar"])
    made = {}
    for name, rows in (("train", 120), ("test", 30)):
        codes = generator.integers(0, 3, rows)
        table = centers[codes] + generator.normal(size=(rows, 4))
        made[name] = (table, names[codes])
        np.save(tmp_path / f"{name}.npy", table)
        np.save(tmp_path / f"{name}_labels.npy", codes)
        write_csv(tmp_path / f"{name}.csv", table, names[codes])
    pairs = generator.integers(0, 40, (60, 2))
    edges = [f"p{a},q{b},{weight:.3f}\n" for (a, b), weight in zip(pairs, generator.random(60))]
    (tmp_path / "edges.csv").write_text("old,new,share\n" + "".join(edges))
    write_map(tmp_path / "old.geojson", [(0, 0, 2), (2, 0, 2), (4, 0, 1)])
    write_map(tmp_path / "new.geojson", [(0, 0, 2), (2, 0, 1), (3, 0, 1), (4.5, 0, 1)])
    return made


def write_map(path, squares):
    """GeoJSON of squares (x, y, side) in tenths of a degree, with a column GEOID."""
    corners = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)]
    features = [
        {"type": "Feature", "properties": {"GEOID": f"{i:03d}"}, "geometry": {
            "type": "Polygon", "coordinates": [[[(x + a * s) / 10, (y + b * s) / 10] for a, b in corners]]}}
        for i, (x, y, s) in enumerate(squares)]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


def brute_force(table, queries=None, k=5):
    """Ids and euclidean distances in (distance, id) order, in float64."""
    self_mode = queries is None
    queries = table if self_mode else queries
    table = table.astype(np.float64)
    ids = np.empty((len(queries), k), np.int64)
    distances = np.empty((len(queries), k))
    for i, query in enumerate(queries.astype(np.float64)):
        squared = ((table - query) ** 2).sum(axis=1)
        if self_mode:
            squared[i] = np.inf
        order = np.argsort(squared, kind="stable")[:k]
        ids[i] = order
        distances[i] = np.sqrt(squared[order])
    return ids, distances


def read_idx(path):
    raw = gzip.decompress(path.read_bytes())
    dimensions = raw[3]
    shape = struct.unpack(f">{dimensions}I", raw[4 : 4 + 4 * dimensions])
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


@pytest.fixture(scope="session")
def fashion():
    if not FASHION.is_dir():
        pytest.skip(f"{FASHION} is not there (Debian package dataset-fashion-mnist)")
    return [
        read_idx(FASHION / f"{name}-ubyte.gz")[:rows]
        for name, rows in (
            ("train-images-idx3", 2000),
            ("train-labels-idx1", 2000),
            ("t10k-images-idx3", 300),
            ("t10k-labels-idx1", 300),
        )
    ]

"""Answers from file to file, against NumPy and scikit-learn in float64."""

import csv
import gzip
import lzma
import struct

import numpy as np
import pytest
from conftest import brute_force, write_csv
from sklearn.neighbors import KNeighborsClassifier

DTYPES = ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "?", "<f2", "<f4", "<f8", ">f4", ">f8", ">i4"]


def check_graph(path, table, queries, k):
    ids, distances = brute_force(table, queries, k)
    graph = np.load(path)
    assert graph["ids"].dtype == np.int64 and graph["distances"].dtype == np.float64
    np.testing.assert_array_equal(graph["ids"], ids)
    np.testing.assert_allclose(graph["distances"], distances, rtol=1e-13)


def make_table(dtype, rows, generator):
    if np.dtype(dtype).kind == "f":
        return generator.normal(size=(rows, 5)).astype(dtype)
    return generator.integers(0, 2 if dtype == "?" else 100, (rows, 5)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(ok, tmp_path, dtype):
    generator = np.random.default_rng(3)
    table, queries = make_table(dtype, 90, generator), make_table(dtype, 13, generator)
    np.save(tmp_path / "table.npy", table)
    np.save(tmp_path / "queries.npy", np.asfortranarray(queries))
    np.savez(tmp_path / "table.npz", table=table, other=np.arange(3))
    np.savez_compressed(tmp_path / "packed.npz", table=table)
    (tmp_path / "table.npy.gz").write_bytes(gzip.compress((tmp_path / "table.npy").read_bytes()))
    for name in ("table.npy", "table.npz", "packed.npz", "table.npy.gz"):
        ok("knn", name, "queries.npy", "-k", 7, "-o", "graph.npz")
        check_graph(tmp_path / "graph.npz", table, queries, 7)
    ok("knn", "table.npy", "-k", 4, "-o", "graph.npz")
    check_graph(tmp_path / "graph.npz", table, None, 4)


METHODS = ["automatic", "fused", "direct", "kdtree"]
METHODS += ["product_kmin", "product_bitonic", "product_timed", "direct_filter", "tiled_insertion", "insertion", "block_heap"]


@pytest.mark.parametrize("method", METHODS)
def test_every_method(ok, tmp_path, method):
    generator = np.random.default_rng(11)
    table, queries = generator.normal(size=(3000, 3)), generator.normal(size=(40, 3))
    np.save(tmp_path / "table.npy", table)
    np.save(tmp_path / "queries.npy", queries)
    ok("knn", "table.npy", "queries.npy", "-k", 6, "--method", method, "-o", "graph.npz")
    check_graph(tmp_path / "graph.npz", table, queries, 6)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv(ok, tmp_path, delimiter):
    generator = np.random.default_rng(4)
    table = generator.normal(size=(60, 3))
    write_csv(tmp_path / "plain.csv", table)
    text = (tmp_path / "plain.csv").read_text().replace(",", delimiter)
    (tmp_path / "table.csv").write_text(text)
    (tmp_path / "bare.csv.gz").write_bytes(gzip.compress(text.split("\n", 1)[1].encode()))
    for name in ("table.csv", "bare.csv.gz"):
        ok("knn", name, "-k", 3, "-o", "graph.npz")
        check_graph(tmp_path / "graph.npz", table, None, 3)


def test_idx_images(ok, tmp_path):
    images = np.random.default_rng(5).integers(0, 256, (40, 4, 6), dtype=np.uint8)
    (tmp_path / "images").write_bytes(struct.pack(">BBBBIII", 0, 0, 8, 3, 40, 4, 6) + images.tobytes())
    ok("knn", "images", "-k", 3, "-o", "graph.npz")
    check_graph(tmp_path / "graph.npz", images.reshape(40, 24), None, 3)


def test_graph_as_csv(ok, tmp_path, small_files):
    ok("knn", "train.npy", "test.npy", "-k", 4, "-o", "graph.csv")
    with open(tmp_path / "graph.csv") as file:
        lines = list(csv.DictReader(file))
    ids, distances = brute_force(small_files["train"][0], small_files["test"][0], 4)
    assert [int(line["id"]) for line in lines] == ids.ravel().tolist()
    np.testing.assert_allclose([float(line["distance"]) for line in lines], distances.ravel(), rtol=1e-13)


def test_filter(ok, tmp_path, small_files):
    train, test = small_files["train"][0], small_files["test"][0]
    allowed = np.random.default_rng(0).random(len(train)) < 0.3
    np.save(tmp_path / "bools.npy", allowed)
    np.save(tmp_path / "bytes.npy", allowed.astype(np.uint8))
    ids, _ = brute_force(train[allowed], test, 5)
    for name in ("bools.npy", "bytes.npy"):
        ok("knn", "train.npy", "test.npy", "--filter", name, "-o", "graph.npz")
        np.testing.assert_array_equal(np.load(tmp_path / "graph.npz")["ids"], np.flatnonzero(allowed)[ids])


def test_radius_and_count(ok, tmp_path, small_files):
    train, test = small_files["train"][0], small_files["test"][0]
    distances = np.sqrt(((test[:, None] - train[None]) ** 2).sum(axis=2))
    ok("radius", "train.npy", "test.npy", "-r", 2.5, "-o", "near.npz")
    near = np.load(tmp_path / "near.npz")
    for i in range(len(test)):
        ids = near["ids"][near["offsets"][i] : near["offsets"][i + 1]]
        expected = np.flatnonzero(distances[i] <= 2.5)
        assert sorted(ids) == expected.tolist()
        assert list(ids) == expected[np.argsort(distances[i][expected], kind="stable")].tolist()
    ok("radius", "train.npy", "test.npy", "-r", 2.5, "--count", "-o", "counts.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "counts.npy"), (distances <= 2.5).sum(axis=1))
    ok("radius", "train.npy", "test.npy", "-r", 2.5, "--count", "-o", "counts.csv")
    lines = (tmp_path / "counts.csv").read_text().splitlines()
    assert lines[0] == "row,count" and lines[1] == f"0,{(distances[0] <= 2.5).sum()}"


def read_labels_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_classify(ok_json, tmp_path, small_files, weights):
    (train, names), (test, truth) = small_files["train"], small_files["test"]
    model = KNeighborsClassifier(5, algorithm="brute", weights=weights).fit(train, names)
    result = ok_json(
        "classify", "train.csv", "test.csv", "--label", "class", "--weights", weights, "--proba", "-o", "labels.csv"
    )
    rows = read_labels_csv(tmp_path / "labels.csv")
    assert [row["row"] for row in rows] == [str(i) for i in range(len(test))]
    assert [row["label"] for row in rows] == model.predict(test).tolist()
    shares = [[float(row[f"p_{name}"]) for name in model.classes_] for row in rows]
    np.testing.assert_allclose(shares, model.predict_proba(test), atol=1e-12)
    assert result["outputs"][0]["accuracy"] == pytest.approx(model.score(test, truth))


def test_classify_without_test_labels(ok, tmp_path, small_files):
    write_csv(tmp_path / "bare.csv", small_files["test"][0])
    ok("classify", "train.csv", "bare.csv", "--label", "class", "-o", "bare_labels.csv")
    ok("classify", "train.csv", "test.csv", "--label", "class", "-o", "labels.csv")
    assert (tmp_path / "bare_labels.csv").read_text() == (tmp_path / "labels.csv").read_text()


def test_classify_several_outputs(ok, ok_json, tmp_path):
    generator = np.random.default_rng(8)
    for name, rows in (("train", 80), ("test", 20)):
        table = generator.normal(size=(rows, 2))
        lines = ["x,y,side,half"]
        lines += [f"{x!r},{y!r},{'left, far' if x < 0 else 'right'},{int(y > 0)}" for x, y in table.tolist()]
        (tmp_path / f"{name}.csv").write_text("\n".join(line if i == 0 else quote(line) for i, line in enumerate(lines)) + "\n")
    both = ok_json("classify", "train.csv", "test.csv", "--label", "side", "--label", "half", "-o", "both.csv")
    assert [output["name"] for output in both["outputs"]] == ["side", "half"]
    rows = read_labels_csv(tmp_path / "both.csv")
    ok("classify", "train.csv", "test.csv", "--label", "side", "--drop", "half", "-o", "side.csv")
    assert [row["label_side"] for row in rows] == [row["label"] for row in read_labels_csv(tmp_path / "side.csv")]
    assert {row["label_half"] for row in rows} == {"0", "1"}


def quote(line):
    x, y, rest = line.split(",", 2)
    side, half = rest.rsplit(",", 1)
    return f'{x},{y},"{side}",{half}'


def test_generate(ok, tmp_path):
    ok("generate", "swiss-roll", "-n", 50, "--seed", 3, "-o", "roll.npz", "--parameters", "t.npy")
    roll = np.load(tmp_path / "roll.npz")
    assert roll["points"].shape == (50, 3)
    np.testing.assert_array_equal(roll["parameters"], np.load(tmp_path / "t.npy"))
    ok("generate", "blobs", "-n", 40, "-d", 6, "--centers", 4, "-o", "blobs.npy", "--labels", "labels.npy")
    assert np.load(tmp_path / "blobs.npy").shape == (40, 6)
    assert set(np.load(tmp_path / "labels.npy")) <= set(range(4))
    ok("generate", "moons", "-n", 30, "--seed", 9, "-o", "moons.csv")
    ok("generate", "moons", "-n", 30, "--seed", 9, "-o", "moons.npy")
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "moons.csv", delimiter=",", skiprows=1), np.load(tmp_path / "moons.npy"))
    assert ok("generate", "moons", "-n", 30, "--seed", 9) == (tmp_path / "moons.csv").read_text()


def test_info(ok_json, tmp_path):
    table = np.random.default_rng(1).normal(size=(30, 2))
    table[3, 1] = np.nan
    np.save(tmp_path / "table.npy", table)
    info = ok_json("info", "table.npy")
    assert (info["format"], info["arrays"][0]["shape"]) == ("npy", [30, 2])
    first, second = info["summary"]["columns"]
    assert (first["nan"], second["nan"]) == (0, 1)
    assert first["min"] == table[:, 0].min() and second["max"] == np.nanmax(table[:, 1])
    assert first["mean"] == pytest.approx(table[:, 0].mean())


def test_fashion_subset(ok, tmp_path, fashion):
    for name, array in zip(("train", "train_labels", "test", "test_labels"), fashion):
        np.save(tmp_path / f"{name}.npy", array.reshape(len(array), -1) if array.ndim == 3 else array)
    ok("classify", "train.npy", "test.npy", "--labels", "train_labels.npy", "-o", "labels.csv")
    train, labels, test, _ = fashion
    model = KNeighborsClassifier(5, algorithm="brute").fit(train.reshape(len(train), -1).astype(float), labels)
    expected = model.predict(test.reshape(len(test), -1).astype(float))
    assert [int(row["label"]) for row in read_labels_csv(tmp_path / "labels.csv")] == expected.tolist()


def read_vecs(raw, dtype):
    columns = struct.unpack("<i", raw[:4])[0]
    return np.frombuffer(raw, np.int32).reshape(-1, columns + 1)[:, 1:].copy().view(dtype)


def test_siftsmall(ok, tmp_path, data_folder):
    folder = data_folder / "sift"
    if not (folder / "siftsmall_base.fvecs.xz").is_file():
        pytest.skip(f"{folder} has no siftsmall_base.fvecs.xz")
    base = read_vecs(lzma.decompress((folder / "siftsmall_base.fvecs.xz").read_bytes()), np.float32)
    queries = read_vecs((folder / "siftsmall_query.fvecs").read_bytes(), np.float32)
    truth = read_vecs((folder / "siftsmall_groundtruth.ivecs").read_bytes(), np.int32)
    assert base.shape == (10000, 128) and queries.shape == (100, 128) and truth.shape == (100, 100)
    np.save(tmp_path / "base.npy", base)
    np.save(tmp_path / "query.npy", queries)
    ok("knn", "base.npy", "query.npy", "-k", 100, "-o", "graph.npz")
    ids = np.load(tmp_path / "graph.npz")["ids"]
    # SIFT values are integers: squared distances are exact, and the published order may differ from ours in exact ties only.
    base, queries = base.astype(np.int64), queries.astype(np.int64)
    for i in range(100):
        ours = ((base[ids[i]] - queries[i]) ** 2).sum(axis=1)
        published = ((base[truth[i]] - queries[i]) ** 2).sum(axis=1)
        np.testing.assert_array_equal(ours, published)
        assert len(set(ids[i])) == 100
        every = ((base - queries[i]) ** 2).sum(axis=1)
        assert ids[i].tolist() == np.argsort(every, kind="stable")[:100].tolist()

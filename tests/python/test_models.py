"""Models: made in Python or by the command, saved, loaded and pickled, also of scaled and coded columns."""

import csv
import pickle

import numpy as np
import pytest
from conftest import same

import vicinal as vc


@pytest.fixture
def files(tmp_path, rows, queries):
    np.save(tmp_path / "table.npy", rows)
    np.save(tmp_path / "queries.npy", queries)
    np.save(tmp_path / "labels.npy", np.arange(len(rows)) % 3)
    np.save(tmp_path / "targets.npy", rows[:, :2] * 3)
    return tmp_path


@pytest.fixture
def named(tmp_path):
    """A table of numbers of different size and a column of text, and queries whose columns are in another order."""
    draw = np.random.default_rng(8)
    kinds = np.array(["tcp", "udp", "icmp"])
    for name, rows, order in (("train", 90, ["bytes", "kind", "rate"]), ("test", 12, ["rate", "bytes", "kind"])):
        columns = {
            "bytes": draw.integers(1, 10_000, rows),
            "kind": kinds[draw.integers(0, 3, rows)],
            "rate": draw.random(rows).round(6),
        }
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(order)
            writer.writerows(zip(*(columns[one] for one in order)))
    np.save(tmp_path / "labels.npy", draw.integers(0, 3, 90))
    np.save(tmp_path / "targets.npy", draw.random((90, 2)))
    return tmp_path


def labels_in(path):
    with path.open(newline="") as file:
        return [int(line["label"]) for line in csv.DictReader(file)]


@pytest.mark.parametrize("near", [{"k": 7}, {"radius": 6.0}])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_classify(rows, queries, tmp_path, near, weights):
    labels = np.array(["bee", "ant", "cat"])[np.arange(len(rows)) % 3]
    expected = vc.classify(rows, queries, labels, weights=weights, probabilities=True, **near)
    model = vc.NeighborModel.fit(rows, labels, weights=weights, **near)
    assert (model.rows, model.outputs, model.k, model.radius) == (300, 1, near.get("k"), near.get("radius"))
    assert model.classes[0].tolist() == ["ant", "bee", "cat"] and model.weights == weights and model.copied == 0
    model.save(tmp_path / "model.vnm")
    for one in (model, vc.NeighborModel.load(tmp_path / "model.vnm"), pickle.loads(pickle.dumps(model))):
        found = one.classify(queries, probabilities=True)
        same(found.codes, expected.codes)
        same(found.probabilities, expected.probabilities)
        assert one.predict(queries).tolist() == expected.labels.tolist()
        assert found.plan.device == expected.plan.device


@pytest.mark.parametrize("near", [{"k": 7}, {"radius": 6.0}])
def test_regress(rows, queries, tmp_path, near):
    targets = rows[:, :2] * 3
    expected = vc.regress(rows, queries, targets, weights="distance", outlier=-1.0, **near)
    model = vc.NeighborModel.fit(rows, targets=targets, weights="distance", **near)
    assert model.outputs == 2 and model.classes == []
    model.save(tmp_path / "model.vnm")
    for one in (model, vc.NeighborModel.load(tmp_path / "model.vnm"), pickle.loads(pickle.dumps(model))):
        same(one.regress(queries, outlier=-1.0).values, expected.values)
    one_output = vc.NeighborModel.fit(rows, targets=targets[:, 0], k=3)
    same(one_output.predict(queries), vc.regress(rows, queries, targets[:, 0], k=3).values)


def test_the_command_takes_models_of_python(files, run, rows, queries):
    model = vc.NeighborModel.fit(rows, np.arange(len(rows)) % 3, k=4, metric="manhattan", scaling="standard")
    model.save(files / "model.vnm")
    run("classify", "queries.npy", "--model", "model.vnm", "-o", "out.csv")
    assert labels_in(files / "out.csv") == model.predict(queries).tolist()
    model = vc.NeighborModel.fit(rows, targets=rows[:, :2], radius=5.0, scaling="minmax")
    model.save(files / "model.vnm")
    run("regress", "queries.npy", "--model", "model.vnm", "-o", "out.npy")
    same(model.predict(queries), np.load(files / "out.npy"))


@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
@pytest.mark.parametrize("categories", ["ordinal", "onehot"])
def test_models_of_the_command_with_scaled_and_coded_columns(named, run, scale, categories):
    words = ["--scale", scale, "--categories", categories, "--save-model", "model.vnm"]
    run("classify", "train.csv", "--labels", "labels.npy", "-k", 4, *words)
    run("classify", "test.csv", "--model", "model.vnm", "-o", "out.csv")
    model = vc.NeighborModel.load(named / "model.vnm")
    assert model.scaling == scale and model.columns == ["bytes", "kind", "rate"]
    assert model.predict(named / "test.csv").tolist() == labels_in(named / "out.csv")
    # Python makes the same model of the same table.
    own = vc.NeighborModel.fit(
        vc.read(named / "train.csv", text=["kind"]),
        np.load(named / "labels.npy"),
        k=4,
        scaling=scale,
        texts=categories,
    )
    same(own.classify(named / "test.csv").codes, model.classify(named / "test.csv").codes)
    again = pickle.loads(pickle.dumps(own))
    same(again.predict(str(named / "test.csv")), model.predict(named / "test.csv"))
    with pytest.raises(vc.InvalidArgument, match="kind"):
        model.predict(np.zeros((3, 3)))


def test_a_table_of_other_columns(named, run):
    run("classify", "train.csv", "--labels", "labels.npy", "--categories", "ordinal", "--save-model", "model.vnm")
    model = vc.NeighborModel.load(named / "model.vnm")
    (named / "other.csv").write_text("bytes,sort,rate\n1,tcp,0.5\n")
    with pytest.raises(vc.BadData, match="kind"):
        model.predict(named / "other.csv")


def test_lof_of_scaled_columns(files, run, rows, queries):
    scaled = rows * [1, 10, 100, 1000, 10000]
    np.save(files / "table.npy", scaled)
    np.save(files / "queries.npy", queries * [1, 10, 100, 1000, 10000])
    run("lof", "table.npy", "-k", 8, "--scale", "standard", "--save-model", "model.vlof")
    run("lof", "queries.npy", "--model", "model.vlof", "-o", "scores.npy")
    model = vc.LofModel.load(files / "model.vlof")
    given = np.load(files / "queries.npy")
    same(model.novelty(given), np.load(files / "scores.npy"))
    same(pickle.loads(pickle.dumps(model)).novelty(given), model.novelty(given))
    same(model.novelty(files / "queries.npy"), model.novelty(given))


def test_lle_of_filled_columns(files, run, rows, queries):
    """The command fills missing values; Python fills those of queries alike."""

    def write(name, values):
        lines = [
            ",".join("NA" if (i, j) in ((2, 1), (5, 3)) else repr(float(x)) for j, x in enumerate(row))
            for i, row in enumerate(values)
        ]
        (files / name).write_text("\n".join(["a,b,c,d,e", *lines]) + "\n")

    write("table.csv", rows)
    write("queries.csv", queries)
    run("lle", "table.csv", "-k", 8, "--missing", "mean", "--save-model", "model.vlle", "-o", "embedded.npy")
    run("lle", "queries.csv", "--model", "model.vlle", "-o", "placed.npy")
    model = vc.LleModel.load(files / "model.vlle")
    assert model.columns == list("abcde")
    same(model.fitted.embedding, np.load(files / "embedded.npy"))
    placed = model.transform(files / "queries.csv")
    same(placed, np.load(files / "placed.npy"))
    holes = queries.copy()
    holes[2, 1] = holes[5, 3] = np.nan
    same(model.transform(holes), placed)
    same(pickle.loads(pickle.dumps(model)).transform(holes), placed)


def test_kmeans_of_scaled_columns(files, run, rows, queries):
    run("kmeans", "table.npy", "-c", 3, "--scale", "standard", "--save-model", "scaled.vkm")
    run("kmeans", "queries.npy", "--model", "scaled.vkm", "-o", "found.npz")
    model = vc.KMeans.load(files / "scaled.vkm")
    told = np.load(files / "found.npz")["labels"]
    same(model.predict(queries).astype(told.dtype), told)
    assert model.transform(queries).argmin(axis=1).tolist() == told.tolist()
    again = pickle.loads(pickle.dumps(model))
    same(again.predict(queries), model.predict(queries))
    assert again.score(queries) == model.score(queries)


def test_pickles_of_results(rows, queries):
    index = vc.Index(rows)
    for made in (vc.lof(index, k=8, novelty=True), vc.lof(index, k=5, k_to=7, novelty=True, duplicates="cap")):
        again = pickle.loads(pickle.dumps(made))
        same(again.scores, made.scores)
        same(vc.novelty(index, again, queries), vc.novelty(index, made, queries))
        assert (again.threshold, again.outliers, again.duplicates) == (made.threshold, made.outliers, made.duplicates)
    plain = vc.lof(rows, k=4, score="loop")
    same(pickle.loads(pickle.dumps(plain)).scores, plain.scores)
    made = vc.lle(rows, k=8)
    again = pickle.loads(pickle.dumps(made))
    for name in ("embedding", "piece", "placed"):
        same(getattr(again, name), getattr(made, name))
    assert again.eigenvalue_sum == made.eigenvalue_sum and again.warning == made.warning
    assert [repr(piece) for piece in again.pieces] == [repr(piece) for piece in made.pieces]
    same(again.pieces[0].residuals, made.pieces[0].residuals)
    same(vc.transform(index, again, queries), vc.transform(index, made, queries))
    of_centres = vc.KMeans.of(rows[:3])
    same(pickle.loads(pickle.dumps(of_centres)).predict(queries), of_centres.predict(queries))


def test_models_of_an_index(rows, queries):
    index = vc.Index(rows)
    fitted = vc.lof(index, k=8, novelty=True)
    model = vc.LofModel(index, fitted)
    same(model.novelty(queries), vc.novelty(index, fitted, queries))
    assert model.index.rows == 300 and model.columns == []
    same(model.fitted.scores, fitted.scores)
    embedded = vc.lle(rows, k=8)
    same(vc.LleModel(index, embedded).transform(queries), vc.transform(index, embedded, queries))


SMALL = np.random.default_rng(0).normal(size=(30, 3))


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda: vc.NeighborModel.fit(SMALL), vc.InvalidArgument, "labels: expected either labels .* or targets"),
        (
            lambda: vc.NeighborModel.fit(SMALL, [1] * 30, targets=SMALL),
            vc.InvalidArgument,
            "labels: expected either labels .* or targets",
        ),
        (lambda: vc.NeighborModel.fit(SMALL, [1] * 29), vc.InvalidArgument, "labels: 29 rows for a table of 30 rows"),
        (
            lambda: vc.NeighborModel.fit(SMALL, targets=SMALL[:4]),
            vc.InvalidArgument,
            "targets: 4 rows for a table of 30 rows",
        ),
        (lambda: vc.NeighborModel.fit(SMALL, [1] * 30, k=0), vc.InvalidArgument, "k: 0 is not allowed; expected 1 to"),
        (
            lambda: vc.NeighborModel.fit(SMALL, [1] * 30, k=31),
            vc.InvalidArgument,
            "k: 31 is not allowed; expected 1 to",
        ),
        (lambda: vc.NeighborModel.fit(SMALL, [1] * 30, radius=-1.0), vc.InvalidArgument, "radius: -1"),
        (
            lambda: vc.NeighborModel.fit(SMALL, [1] * 30, k=2, radius=1.0),
            vc.InvalidArgument,
            "radius: expected either k or radius",
        ),
        (
            lambda: vc.NeighborModel.fit(SMALL, [1] * 30, weights=lambda d: d),
            vc.InvalidArgument,
            "weights: .*expected a text",
        ),
        (lambda: vc.NeighborModel.fit(SMALL, [1] * 30, scaling="log"), vc.InvalidArgument, "log.*standard"),
        (
            lambda: vc.NeighborModel.fit(SMALL, [1] * 30).predict(SMALL[:, :2]),
            vc.InvalidArgument,
            "2.*3|3.*2",
        ),
        (lambda: vc.NeighborModel.fit(SMALL, [1] * 30).regress(SMALL), vc.InvalidArgument, "targets"),
        (lambda: vc.NeighborModel.fit(SMALL, targets=SMALL).classify(SMALL), vc.InvalidArgument, "labels"),
        (
            lambda: vc.NeighborModel.fit(SMALL, [1] * 30).classify(SMALL, output=1),
            vc.InvalidArgument,
            "output: 1 is not allowed; expected 0 to 0",
        ),
        (
            lambda: vc.LofModel(vc.Index(SMALL), vc.lof(SMALL, k=3)),
            vc.InvalidArgument,
            "fitted: expected a result of lof with novelty=True",
        ),
        (
            lambda: vc.LofModel(vc.Index(SMALL[:20]), vc.lof(SMALL, k=3, novelty=True)),
            vc.InvalidArgument,
            "fitted: .*20 rows",
        ),
        (lambda: vc.LofModel(SMALL, vc.lof(SMALL, k=3)), vc.InvalidArgument, "index: .*expected the Index"),
        (
            lambda: vc.LleModel(vc.Index(SMALL[:20]), vc.lle(SMALL, k=5)),
            vc.InvalidArgument,
            "fitted: an embedding of 30 rows, but the index has 20",
        ),
    ],
)
def test_errors(call, kind, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value) and list(tmp_path.iterdir()) == []


KINDS = [vc.Index, vc.KMeans, vc.LofModel, vc.LleModel, vc.NeighborModel]


def made(kind):
    index = vc.Index(SMALL)
    return {
        vc.Index: lambda: index,
        vc.KMeans: lambda: vc.kmeans(SMALL, clusters=2),
        vc.LofModel: lambda: vc.LofModel(index, vc.lof(index, k=3, novelty=True)),
        vc.LleModel: lambda: vc.LleModel(index, vc.lle(SMALL, k=5)),
        vc.NeighborModel: lambda: vc.NeighborModel.fit(SMALL, [1, 2, 3] * 10),
    }[kind]()


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_another_kind_and_damaged_ones(kind, tmp_path):
    path = tmp_path / "model"
    for other in KINDS:
        made(other).save(path)
        if other is kind or kind is vc.Index:  # an index is in each of them
            continue
        with pytest.raises(vc.BadData):
            kind.load(path)
    made(kind).save(path)
    content = path.read_bytes()
    for damaged in (content[:-9], content[: len(content) // 2], b"", b"not a model"):
        path.write_bytes(damaged)
        with pytest.raises(vc.BadData):
            kind.load(path)
    with pytest.raises(vc.FileError):
        kind.load(tmp_path / "none")
    with pytest.raises(vc.FileError):
        made(kind).save(tmp_path / "no folder" / "model")
    whole = pickle.dumps(made(kind))
    with pytest.raises((pickle.UnpicklingError, EOFError)):
        pickle.loads(whole[: len(whole) // 2])

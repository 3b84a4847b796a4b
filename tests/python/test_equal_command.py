"""Python's answers are the command's, bit for bit."""

import csv
import json
import subprocess

import numpy as np
import pytest
from conftest import same

import vicinal as vc

METRICS = ["euclidean", "sqeuclidean", "inner_product", "cosine", "manhattan", "chebyshev", "minkowski", "hamming"]


@pytest.fixture
def files(tmp_path, rows, queries):
    np.save(tmp_path / "table.npy", rows)
    np.save(tmp_path / "queries.npy", queries)
    return tmp_path


def lines_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("metric", METRICS)
def test_knn(files, run, rows, queries, metric):
    words = ["-k", 4, "--metric", metric, "--p", 3]
    for name, given in (("within", []), ("queries", ["queries.npy"])):
        run("knn", "table.npy", *given, *words, "-o", f"{name}.npz")
        graph = vc.knn(rows, queries if given else None, k=4, metric=metric, p=3)
        told = np.load(files / f"{name}.npz")
        same(graph.ids, told["ids"])
        same(graph.distances, told["distances"])
        again = vc.Index(rows).knn(queries if given else None, k=4, metric=metric, p=3)
        same(again.ids, told["ids"])


def test_knn_defaults(files, run, rows):
    run("knn", "table.npy", "-o", "graph.npz")
    same(vc.knn(rows).ids, np.load(files / "graph.npz")["ids"])


def test_filter_and_exclude(files, run, rows, queries):
    kept = np.arange(len(rows)) % 4 != 1
    np.save(files / "kept.npy", kept)
    run("knn", "table.npy", "queries.npy", "-k", 3, "--filter", "kept.npy", "-o", "graph.npz")
    same(vc.knn(rows, queries, k=3, filter=kept).ids, np.load(files / "graph.npz")["ids"])
    first = vc.knn(rows, queries, k=2).ids
    same(vc.knn(rows, queries, k=1, exclude=first[:, 0]).ids, np.ascontiguousarray(first[:, 1:]))


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "chebyshev"])
def test_radius_and_count(files, run, rows, queries, metric):
    near = {"euclidean": 2.5, "cosine": 0.2, "chebyshev": 1.5}[metric]
    for given in ([], ["queries.npy"]):
        run("radius", "table.npy", *given, "-r", near, "--metric", metric, "-o", "graph.npz")
        run("radius", "table.npy", *given, "-r", near, "--metric", metric, "--count", "-o", "counts.npy")
        graph = vc.radius(rows, queries if given else None, radius=near, metric=metric)
        told = np.load(files / "graph.npz")
        for name in ("ids", "distances", "offsets"):
            same(getattr(graph, name), told[name])
        counts = vc.count(rows, queries if given else None, radius=near, metric=metric).counts
        same(counts, np.load(files / "counts.npy"))
        same(counts, np.diff(graph.offsets))


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("near", [{"k": 7}, {"radius": 6.0}])
def test_classify(files, run, rows, queries, weights, near):
    labels = np.array(["bee", "ant", "cat"])[np.arange(len(rows)) % 3]
    (files / "labels.txt").write_text("\n".join(labels) + "\n")
    words = ["-k", near["k"]] if "k" in near else ["-r", near["radius"]]
    run(
        *("classify", "table.npy", "queries.npy", "--labels", "labels.txt", *words),
        *("--weights", weights, "--proba", "-o", "out.csv"),
    )
    told = lines_of(files / "out.csv")
    found = vc.classify(rows, queries, labels, weights=weights, probabilities=True, **near)
    assert [line["label"] for line in told] == found.labels.tolist()
    for column, name in enumerate(found.classes):
        same(found.probabilities[:, column], np.array([float(line[f"p_{name}"]) for line in told]))
    graph = vc.knn(rows, queries, **near) if "k" in near else vc.radius(rows, queries, **near)
    same(vc.vote(graph, labels, weights=weights).codes, found.codes)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("near", [{"k": 7}, {"radius": 6.0}])
def test_regress(files, run, rows, queries, weights, near):
    targets = rows[:, :2] * 3
    np.save(files / "targets.npy", targets)
    words = ["-k", near["k"]] if "k" in near else ["-r", near["radius"]]
    run(
        *("regress", "table.npy", "queries.npy", "--targets", "targets.npy", *words),
        *("--weights", weights, "-o", "out.npy"),
    )
    found = vc.regress(rows, queries, targets, weights=weights, **near)
    same(found.values, np.load(files / "out.npy"))
    graph = vc.knn(rows, queries, **near) if "k" in near else vc.radius(rows, queries, **near)
    same(vc.average(graph, targets, weights=weights), found.values)
    same(vc.average(graph, targets[:, 0], weights=weights)[:, 0], np.ascontiguousarray(found.values[:, 0]))


def test_weights_by_a_function(rows, queries):
    labels = np.arange(len(rows)) % 3
    by_word = vc.classify(rows, queries, labels, k=6, weights="distance", probabilities=True)
    by_function = vc.classify(rows, queries, labels, k=6, weights=lambda d: 1 / d, probabilities=True)
    same(by_word.codes, by_function.codes)
    same(by_word.probabilities, by_function.probabilities)


def test_cross_validate(files, run, rows):
    labels = np.arange(len(rows)) % 3
    np.save(files / "labels.npy", labels)
    words = ["-k", "1..6", "--cv", 4, "--seed", 5, "--json"]
    told = json.loads(run("classify", "table.npy", "--labels", "labels.npy", *words))
    found = vc.cross_validate(rows, labels, k=1, k_to=6, folds=4, seed=5)
    assert found.k == told["cross_validation"]["k"]
    assert found.scores.tolist() == told["cross_validation"]["scores"]
    np.save(files / "targets.npy", rows[:, 0])
    told = json.loads(run("regress", "table.npy", "--targets", "targets.npy", *words))["cross_validation"]
    by_targets = vc.cross_validate(rows, targets=rows[:, 0], k=1, k_to=6, folds=4, seed=5)
    assert by_targets.k == told["k"] and by_targets.scores.tolist() == told["scores"]
    assert by_targets.scores.shape == (6,) and by_targets.fold_scores.shape == (6, 4)


@pytest.mark.parametrize("score", ["lof", "loop", "ldof", "cof", "inflo", "knn"])
def test_lof(files, run, rows, score):
    run("lof", "table.npy", "-k", 8, "--score", score, "-o", "scores.npy")
    told = np.load(files / "scores.npy")
    same(vc.lof(rows, k=8, score=score).scores, told)
    graph = vc.knn(rows, k=8)
    of_graph = vc.lof(graph, rows, k=8, score=score) if score in ("ldof", "cof") else vc.lof(graph, k=8, score=score)
    same(of_graph.scores, told)


def test_novelty(files, run, rows, queries):
    run("lof", "table.npy", "queries.npy", "-k", 8, "-o", "scores.npy")
    index = vc.Index(rows)
    same(vc.novelty(index, vc.lof(index, k=8, novelty=True), queries), np.load(files / "scores.npy"))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_kmeans(files, run, rows, queries, metric):
    run("kmeans", "table.npy", "-c", 4, "--seed", 7, "--runs", 2, "--metric", metric, "-o", "found.npz")
    told = np.load(files / "found.npz")
    model = vc.kmeans(rows, clusters=4, seed=7, runs=2, metric=metric)
    same(model.labels.astype(told["labels"].dtype), told["labels"])
    same(model.centres, told["centres"])
    same(vc.predict(model, rows), model.labels)
    assert model.transform(queries).argmin(axis=1).tolist() == vc.predict(model, queries).tolist()
    assert model.score(rows) == -model.inertia
    assert model.sizes.sum() == len(rows)
    same(vc.KMeans.of(model.centres, metric=metric).predict(queries), model.predict(queries))


def test_kmeans_from_centres_and_weights(files, run, rows):
    weights = np.linspace(0.5, 2, len(rows))
    np.save(files / "centres.npy", rows[:3])
    np.save(files / "weights.npy", weights)
    run("kmeans", "table.npy", "-c", 3, "--init", "centres.npy", "--weights", "weights.npy", "-o", "found.npz")
    same(vc.kmeans(rows, centres=rows[:3], weights=weights).centres, np.load(files / "found.npz")["centres"])


@pytest.mark.parametrize("variant", ["standard", "modified", "hessian", "ltsa"])
def test_lle(files, run, variant):
    run("generate", "swiss-roll", "-n", 500, "--seed", 3, "-o", "roll.npy")
    roll = np.load(files / "roll.npy")
    same(vc.generate("swiss_roll", rows=500, seed=3).points, roll)
    run("lle", "roll.npy", "-k", 10, "--variant", variant, "-o", "points.npy")
    found = vc.lle(roll, k=10, variant=variant)
    same(found.embedding, np.load(files / "points.npy"))
    same(vc.lle(roll, vc.knn(roll, k=10), k=10, variant=variant).embedding, found.embedding)
    assert sum(piece.rows for piece in found.pieces) == 500 and found.eigenvalue_sum >= 0


def test_transform(files, run):
    roll = vc.generate("swiss_roll", rows=400, seed=3).points
    others = vc.generate("swiss_roll", rows=20, seed=4).points
    np.save(files / "roll.npy", roll)
    np.save(files / "others.npy", others)
    run("lle", "roll.npy", "others.npy", "-k", 10, "-o", "placed.npy")
    same(vc.transform(vc.Index(roll), vc.lle(roll, k=10), others), np.load(files / "placed.npy"))


def together_in(path):
    """Who is together by a table of the command, which names groups by numbers of its own."""
    groups = {}
    for line in lines_of(path):
        groups.setdefault(line["group"], set()).add((line["side"], int(line["id"])))
    return sorted(map(sorted, groups.values()))


def together(found, a, b):
    groups = {}
    for side, labels, ids in (("a", found.labels_a, a), ("b", found.labels_b, b)):
        for one in set(ids.tolist()):
            groups.setdefault(labels[one], set()).add((side, one))
    return sorted(map(sorted, groups.values()))


def test_cocluster(files, run):
    draw = np.random.default_rng(1)
    a, b = draw.integers(0, 60, 50), draw.integers(0, 60, 50)
    (files / "edges.csv").write_text("".join(f"{i},{j}\n" for i, j in zip(a, b)))
    run("cocluster", "edges.csv", "--no-header", "-o", "groups.csv")
    found = vc.cocluster(a, b)
    assert together_in(files / "groups.csv") == together(found, a, b)
    assert found.counts_a.sum() == len(found.labels_a) and len(found.relations) == len(found.group_labels)
    relation = np.zeros((60, 60))
    relation[a, b] = 1
    same(vc.cocluster(relation).labels_a, vc.cocluster(a, b, n_a=60, n_b=60).labels_a)


def test_spectral_cocluster(files, run):
    draw = np.random.default_rng(6)
    relation = np.kron(np.eye(3), np.ones((8, 6))) + (draw.random((24, 18)) < 0.1)
    a, b = np.nonzero(relation)
    (files / "edges.csv").write_text("".join(f"{i},{j}\n" for i, j in zip(a, b)))
    run(
        *("cocluster", "edges.csv", "--no-header", "--method", "spectral", "-c", 3),
        *("--seed", 4, "-o", "groups.csv"),
    )
    found = vc.spectral_cocluster(a, b, clusters=3, seed=4)
    assert together_in(files / "groups.csv") == together(found, a, b)
    spectral = vc.spectral_cocluster(*np.nonzero(np.kron(np.eye(3), np.ones((4, 5)))), clusters=3)
    assert sorted(np.bincount(spectral.labels_a)) == [4, 4, 4] and sorted(np.bincount(spectral.labels_b)) == [5, 5, 5]


def squares(*corners):
    return [[[[(x, y), (x + s, y), (x + s, y + s), (x, y + s)]]] for x, y, s in corners]


def test_maps(files, run):
    old, new = squares((0, 0, 2), (2, 0, 2), (4, 0, 1)), squares((0, 0, 2), (2, 0, 1), (3, 0, 1), (9, 9, 1))
    a, b = vc.Polygons.of(old), vc.Polygons.of(new)
    found = vc.overlaps(a, b)
    assert found.areas_a.tolist() == [4, 4, 1] and found.areas_b.tolist() == [4, 1, 1, 1]
    shared = {(i, j): area for i, j, area in zip(found.a, found.b, found.area) if area > 0}
    assert shared == {(0, 0): 4, (1, 1): 1, (1, 2): 1}
    matched = vc.match(a, b)
    assert sorted(matched.groups.change) == ["created", "removed", "split", "unchanged"]
    assert matched.pairs.kept.dtype == bool and matched.a.group.shape == (3,) and matched.b.best.tolist()[3] == -1
    for name in ("a", "b", "area"):
        same(getattr(matched.pairs, name), np.ascontiguousarray(getattr(found, name)))


RULES = {
    "standard": {},
    "touch": {"rule": "touch"},
    "area": {"rule": "area", "sliver_width": 0.3},
    "iou": {"rule": "iou", "threshold": 0.2},
    "split": {"rule": "area", "max_members": 4},
}
WORDS = {"max_members": "max-group"}  # that are others in the command


@pytest.mark.parametrize("name", RULES)
def test_maps_of_files(files, command, name):
    """Pairs of the command, which reads the maps by GDAL, and of Python."""
    options = RULES[name]
    draw = np.random.default_rng(2)
    maps = [squares(*np.round(draw.uniform(0, 8, (30, 3)) % [8, 8, 2] + [0, 0, 0.5], 3).tolist()) for _ in range(2)]
    for side, features in zip("ab", maps):
        rings = lambda polygon: [[*ring, ring[0]] for ring in polygon]
        described = [
            {
                "type": "Feature",
                "properties": {"id": str(row)},
                "geometry": {"type": "MultiPolygon", "coordinates": [rings(polygon) for polygon in feature]},
            }
            for row, feature in enumerate(features)
        ]
        crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::25832"}}
        text = json.dumps({"type": "FeatureCollection", "crs": crs, "features": described})
        (files / f"{side}.geojson").write_text(text)
    named = {"--" + WORDS.get(key, key.replace("_", "-")): str(value) for key, value in options.items()}
    words = [word for option in named.items() for word in option]
    line = [command, "match", "a.geojson", "b.geojson", "--planar", "--id", "id", *words, "-q", "-o", "pairs.csv"]
    done = subprocess.run(line, cwd=files, text=True, capture_output=True, timeout=120)
    if done.returncode == 5:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    lines = lines_of(files / "pairs.csv")
    a, b = (vc.Polygons.of(features) for features in maps)
    pairs = vc.match(a, b, widths=True, **options).pairs  # as the command, whose table has them
    numbers = lambda key, kind=float: np.array([kind(line[key] or -1) for line in lines])
    assert len(lines) > 30
    for key, column in (("a", "a_id"), ("b", "b_id"), ("group", "group")):
        same(getattr(pairs, key), numbers(column, int))
    for key in ("area", "width", "share_a", "share_b", "iou"):
        same(getattr(pairs, key), numbers(key))
    for key in ("kept", "doubtful", "cut", "sliver"):
        same(getattr(pairs, key), numbers(key, int) == 1)
    found = vc.overlaps(a, b)
    same(found.area, numbers("area"))
    assert found.relation == [line["relation"] for line in lines]


@pytest.mark.parametrize("symmetry", ["union", "mutual"])
def test_symmetric_graphs(files, run, rows, symmetry):
    run("knn", "table.npy", "-k", 4, "--symmetric", symmetry, "-o", "graph.npz")
    told = np.load(files / "graph.npz")
    found = vc.symmetrize(vc.knn(rows, k=4), symmetry=symmetry)
    for name in ("ids", "distances", "offsets"):
        same(getattr(found, name), told[name])
    run("radius", "table.npy", "-r", 2.0, "--include-self", "-o", "graph.npz")
    told = np.load(files / "graph.npz")
    found = vc.with_self(vc.radius(rows, radius=2.0))
    for name in ("ids", "distances", "offsets"):
        same(getattr(found, name), told[name])


@pytest.mark.parametrize("shape", ["blobs", "moons", "s_curve", "swiss_roll"])
def test_generate(files, run, shape):
    run("generate", shape.replace("_", "-"), "-n", 50, "--seed", 9, "-o", "made.npy")
    made = vc.generate(shape, rows=50, seed=9)
    same(made.points, np.load(files / "made.npy"))


def test_read_and_write(files, run, rows):
    run("convert", "table.npy", "table.csv")
    table = vc.read(files / "table.csv")
    same(np.asarray(table), rows)
    same(vc.knn(table, k=3).ids, vc.knn(rows, k=3).ids)
    same(vc.knn(files / "table.npy", k=3).ids, vc.knn(rows, k=3).ids)
    vc.write(files / "written.csv", rows)
    assert (files / "written.csv").read_bytes() == (files / "table.csv").read_bytes()
    run("convert", "table.csv", "told.npy")
    vc.write(files / "written.npy", rows)
    assert (files / "written.npy").read_bytes() == (files / "told.npy").read_bytes()
    vc.write(files / "again.npy", rows.astype(np.float32))
    same(np.load(files / "again.npy"), rows.astype(np.float32))
    (files / "named.csv").write_text("x,y,kind\n1,2,b\n3,4.5,a\n")
    named = vc.read(files / "named.csv", label="kind")
    assert named.columns == ["x", "y"] and named.labels.tolist() == ["b", "a"]
    vc.write(files / "graph.npz", vc.knn(rows, k=3))
    run("knn", "table.npy", "-k", 3, "-o", "told.npz")
    assert (files / "graph.npz").read_bytes() == (files / "told.npz").read_bytes()


def test_index_file(files, rows, queries):
    vc.Index(rows, tree=True).save(files / "index.vidx")
    index = vc.Index.load(files / "index.vidx")
    assert (index.rows, index.cols, index.dtype) == (300, 5, "float64")
    same(index.knn(queries, k=3).ids, vc.knn(rows, queries, k=3).ids)
    assert vc.doctor().self_test


def test_model_files(files, run, rows, queries):
    """Models of Python serve the command, and the command's serve Python."""
    model = vc.kmeans(rows, clusters=4, seed=7)
    model.save(files / "model.vkm")
    run("kmeans", "queries.npy", "--model", "model.vkm", "-o", "labels.npz")
    told = np.load(files / "labels.npz")["labels"]
    same(model.predict(queries).astype(told.dtype), told)
    same(vc.KMeans.load(files / "model.vkm").predict(queries), model.predict(queries))

    run("lof", "table.npy", "-k", 8, "--save-model", "model.vlof")
    scores = vc.LofModel.load(files / "model.vlof").novelty(queries)
    own = vc.Index(rows)
    vc.LofModel(own, vc.lof(own, k=8, novelty=True)).save(files / "own.vlof")
    run("lof", "queries.npy", "--model", "own.vlof", "-o", "scores.npy")
    same(scores, np.load(files / "scores.npy"))

    made = vc.lle(rows, k=8)
    vc.LleModel(own, made).save(files / "own.vlle")
    again = vc.LleModel.load(files / "own.vlle")
    same(again.fitted.embedding, made.embedding)
    run("lle", "queries.npy", "--model", "own.vlle", "-o", "placed.npy")
    same(again.transform(queries), np.load(files / "placed.npy"))

"""`vicinal dbscan`, `hdbscan`, `optics` and `spanning-tree`: labels against scikit-learn's, files, JSON, errors."""

import csv
import re

import numpy as np
import pytest
from sklearn.cluster import DBSCAN, HDBSCAN, OPTICS, cluster_optics_dbscan, cluster_optics_xi
from sklearn.datasets import load_iris, load_wine, make_moons


def data_sets():
    generator = np.random.default_rng(1)
    blobs = np.concatenate([generator.normal(size=(120, 3)) * s + 6 * i for i, s in enumerate([0.4, 0.8, 1.5])])
    return {
        "iris": load_iris().data,
        "wine": load_wine().data,
        "moons": make_moons(300, noise=0.06, random_state=2)[0],
        "blobs": generator.permutation(blobs),
        "grid": np.stack(np.meshgrid(np.arange(15.0), np.arange(15.0)), -1).reshape(-1, 2),
        "duplicates": generator.integers(0, 4, (250, 2)).astype(float),
        "wide": generator.normal(size=(200, 40)),
    }


def eps_of(rows):
    """Ten radii from hardly any neighbor to all of them, none of them a distance of two rows but for rounding."""
    distances = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(-1))[np.triu_indices(len(rows), 1)]
    distances = np.unique(distances.round(9))
    at = np.unique(np.linspace(0, len(distances) - 2, 10).astype(int))
    middles = (distances[at] + distances[at + 1]) / 2
    return [float(x) for x in middles if x > 0] + [float(2 * distances[-1])]


@pytest.mark.parametrize("name", data_sets())
def test_dbscan_has_the_labels_of_scikit_learn(ok_json, tmp_path, name):
    rows = data_sets()[name]
    np.save(tmp_path / "rows.npy", rows)
    weights = np.random.default_rng(5).integers(-2, 5, len(rows)).astype(float)
    np.save(tmp_path / "weights.npy", weights)
    for turn, eps in enumerate(eps_of(rows)):
        for weighted in (False, True):
            least = 2 + turn % 7
            theirs = DBSCAN(eps=eps, min_samples=least).fit(rows, sample_weight=weights if weighted else None)
            method = ["automatic", "kdtree", "direct", "fused"][turn % 4]
            told = ok_json("dbscan", "rows.npy", "--eps", eps, "--min-samples", least, "--method", method, "-o", "o.npz",
                           *(["--weights", "weights.npy"] if weighted else []))  # fmt: skip
            found = np.load(tmp_path / "o.npz")
            assert (found["labels"] == theirs.labels_).all(), (eps, least, weighted)
            assert np.flatnonzero(found["core"]).tolist() == theirs.core_sample_indices_.tolist()
            assert told["noise"] == (theirs.labels_ < 0).sum() and told["clusters"] == theirs.labels_.max() + 1


def same_partition(a, b):
    """Whether two labelings are equal but for the numbers of clusters; noise is noise."""
    pairs = set(zip(a.tolist(), b.tolist()))
    one_to_one = len({x for x, _ in pairs}) == len(pairs) == len({y for _, y in pairs})
    return one_to_one and all((x < 0) == (y < 0) for x, y in pairs)


@pytest.mark.parametrize("name", ["wine", "moons", "blobs", "wide"])
@pytest.mark.parametrize("selection", ["eom", "leaf"])
def test_hdbscan_has_the_clusters_of_scikit_learn(ok_json, tmp_path, name, selection):
    """Where no two edges of the tree have the same length: not by core distances, each of which two edges have."""
    rows = data_sets()[name]
    np.save(tmp_path / "rows.npy", rows)
    for size in (2, 5, 15, 30):
        theirs = HDBSCAN(size, min_samples=1, cluster_selection_method=selection, algorithm="brute", copy=True).fit(rows)
        told = ok_json("hdbscan", "rows.npy", "--min-cluster-size", size, "--min-samples", 1, "--selection", selection,
                       "-o", "o.npz")  # fmt: skip
        found = np.load(tmp_path / "o.npz")
        assert same_partition(found["labels"], theirs.labels_), size
        assert not np.abs(found["probabilities"] - theirs.probabilities_).max() > 1e-9
        assert told["sizes"] == np.bincount(found["labels"][found["labels"] >= 0], minlength=told["clusters"]).tolist()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", data_sets())
def test_hdbscan_makes_of_its_tree_what_scikit_learn_makes_of_it(ok, tmp_path, name):
    """Ties or not: the tree has an order, which scikit-learn's functions keep."""
    linkage = pytest.importorskip("sklearn.cluster._hdbscan._linkage")
    from sklearn.cluster._hdbscan._tree import tree_to_labels

    np.save(tmp_path / "rows.npy", data_sets()[name])
    for size, least, alpha in [(5, 5, 1.0), (15, 10, 1.2), (2, 2, 1.0)]:
        reach = ["--min-samples", least, "--alpha", alpha, "-q"]
        ok("spanning-tree", "rows.npy", *reach, "-o", "tree.npz")
        tree = np.load(tmp_path / "tree.npz")
        edges = np.zeros(len(tree["a"]), linkage.MST_edge_dtype)
        edges["current_node"], edges["next_node"], edges["distance"] = tree["a"], tree["b"], tree["lengths"]
        merges = linkage.make_single_linkage(edges)
        for selection, epsilon, single, most in [("eom", 0.0, False, 0), ("leaf", 0.0, False, 0), ("eom", 0.5, True, 0),
                                                 ("leaf", 0.5, False, 0), ("eom", 0.0, False, 40)]:  # fmt: skip
            labels, probabilities = tree_to_labels(merges, size, selection, single, epsilon, most or None)
            ok("hdbscan", "rows.npy", "--min-cluster-size", size, "--selection", selection, "--epsilon", epsilon,
               "--max-cluster-size", most, *(["--allow-single-cluster"] if single else []), *reach,
               "-o", "o.npz")  # fmt: skip
            found = np.load(tmp_path / "o.npz")
            assert same_partition(found["labels"], labels), (size, least, selection, epsilon, single, most)
            assert not np.abs(found["probabilities"] - probabilities).max() > 1e-9


@pytest.mark.filterwarnings("ignore:All reachability values are inf")
@pytest.mark.parametrize("name", ["moons", "blobs", "wide"])
def test_optics_has_the_order_of_scikit_learn(ok, tmp_path, name):
    """Where no two distances are equal. By manhattan: of euclidean its core distances and distances are computed in two
    ways, and differ in the last bits where they should be equal."""
    rows = data_sets()[name]
    np.save(tmp_path / "rows.npy", rows)
    for turn, (least, limit) in enumerate([(5, np.inf), (2, np.inf), (12, np.inf), (5, eps_of(rows)[1])]):
        theirs = OPTICS(min_samples=least, max_eps=limit, metric="manhattan").fit(rows)
        method = ["kdtree", "direct", "automatic"][turn % 3]
        ok("optics", "rows.npy", "--min-samples", least, "--metric", "manhattan", "--method", method, "-o", "o.npz", "-q",
           *([] if np.isinf(limit) else ["--max-eps", limit]))  # fmt: skip
        found = np.load(tmp_path / "o.npz")
        assert found["ordering"].tolist() == theirs.ordering_.tolist(), (least, limit)
        assert found["predecessors"].tolist() == theirs.predecessor_.tolist()
        for array, expected in (("reachability", theirs.reachability_), ("core_distances", theirs.core_distances_)):
            assert np.allclose(found[array], expected, rtol=0, atol=1e-12), (least, limit, array)
        assert found["labels"].tolist() == theirs.labels_.tolist()


@pytest.mark.parametrize("name", data_sets())
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_optics_reads_the_clusters_of_scikit_learn_from_its_order(ok, ok_json, tmp_path, name):
    """Ties or not: scikit-learn's functions get the order that was written."""
    np.save(tmp_path / "rows.npy", data_sets()[name])
    for least, size, xi, correction in [(5, 0, 0.05, True), (5, 20, 0.05, False), (3, 2, 0.2, True), (9, 0, 0.0, True)]:
        told = ok_json("optics", "rows.npy", "--min-samples", least, "--min-cluster-size", size, "--xi", xi, "-o",
                       "o.npz", *([] if correction else ["--no-predecessor-correction"]))  # fmt: skip
        found = np.load(tmp_path / "o.npz")
        labels, clusters = cluster_optics_xi(
            reachability=found["reachability"], predecessor=found["predecessors"], ordering=found["ordering"],
            min_samples=least, min_cluster_size=size or None, xi=xi, predecessor_correction=correction)  # fmt: skip
        assert found["labels"].tolist() == labels.tolist(), (least, size, xi)
        assert told["hierarchy"] == [[int(a), int(b)] for a, b in clusters]
    for eps in eps_of(data_sets()[name])[2:6]:
        ok("optics", "rows.npy", "--clusters", "dbscan", "--eps", eps, "-o", "o.npz", "-q")
        found = np.load(tmp_path / "o.npz")
        assert found["labels"].tolist() == cluster_optics_dbscan(
            reachability=found["reachability"], core_distances=found["core_distances"], ordering=found["ordering"],
            eps=eps).tolist()  # fmt: skip


def test_the_tree_is_as_light_as_that_of_scipy(ok_json, tmp_path):
    from scipy.sparse.csgraph import minimum_spanning_tree

    rows = np.random.default_rng(7).normal(size=(400, 5))
    np.save(tmp_path / "rows.npy", rows)
    distances = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(-1))
    for least in (1, 6):
        core = np.sort(distances, axis=1)[:, least - 1]
        reach = np.maximum(distances, np.maximum(core[:, None], core[None]))
        told = ok_json("spanning-tree", "rows.npy", "--min-samples", least, "-o", "tree.npz")
        total = minimum_spanning_tree(reach).sum()
        assert not abs(told["total_length"] - total) > 1e-9 * total
        tree = np.load(tmp_path / "tree.npz")
        assert (tree["a"] < tree["b"]).all() and (np.diff(tree["lengths"]) >= 0).all()
        assert not np.abs(tree["core_distances"] - core).max() > 1e-12


def read_csv(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def test_files_with_ids_and_rows_left_out(ok, ok_json, tmp_path):
    rows = ["name,x,y,kind", "a,0,0,1", "b,0,1,1", "c,,1,1", "d,1,0,1", "e,9,9,2"]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    reading = ["t.csv", "--id", "name", "--missing", "drop"]
    told = ok_json("dbscan", *reading, "--label", "kind", "--eps", 1.2, "--min-samples", 3, "-o", "o.csv")
    assert told["dropped_rows"] == 1 and told["sizes"] == [3] and told["noise"] == 1
    assert told["scores"]["adjusted_rand"] == 1
    assert read_csv(tmp_path / "o.csv") == [
        {"name": "a", "label": "0", "core": "1"}, {"name": "b", "label": "0", "core": "0"},
        {"name": "d", "label": "0", "core": "0"}, {"name": "e", "label": "-1", "core": "0"}]  # fmt: skip
    ok("spanning-tree", *reading, "--drop", "kind", "-o", "o.csv", "-q")
    assert [line["a"] + line["b"] for line in read_csv(tmp_path / "o.csv")] == ["ab", "ad", "be"]
    ok("hdbscan", *reading, "--drop", "kind", "--min-cluster-size", 2, "-o", "o.csv", "-q")
    assert list(read_csv(tmp_path / "o.csv")[0]) == ["name", "label", "probability", "outlier_score"]
    ok("optics", *reading, "--drop", "kind", "--min-samples", 2, "--max-eps", 5, "-o", "o.csv", "-q")
    lines = read_csv(tmp_path / "o.csv")
    assert [line["name"] for line in lines] == ["a", "b", "d", "e"]
    assert [line["place"] for line in lines] == ["0", "1", "2", "3"]
    assert [line["reachability"] for line in lines] == ["inf", "1", "1", "inf"]
    assert [line["predecessor"] for line in lines] == ["", "a", "a", ""]


BAD = {
    "dbscan rows.npy --eps 0": "eps: must be above 0 and finite",
    "dbscan rows.npy --eps nan": "eps: must be above 0 and finite",
    "dbscan rows.npy --min-samples 0": "min_samples: is 0",
    "dbscan rows.npy -o o.txt": "-o",
    "dbscan rows.npy --weights few.npy": "2 weights for a table of 4 rows",
    "hdbscan rows.npy --min-cluster-size 1": "min_cluster_size: is 1",
    "hdbscan rows.npy --min-cluster-size 9": "min_samples: is 9",
    "hdbscan rows.npy --metric inner_product": "inner_product",
    "optics rows.npy --min-samples 1": "min_samples: is 1, must be from 2 to the number of rows, 4",
    "optics rows.npy --min-samples 5": "min_samples: is 5",
    "optics rows.npy --min-samples 2 --max-eps nan": "max_eps: must be above 0",
    "optics rows.npy --min-samples 2 --xi 1": "xi: must be at least 0 and below 1",
    "optics rows.npy --min-samples 2 --clusters dbscan": "--clusters: dbscan needs --eps",
    "optics rows.npy --min-samples 2 --eps 1": "--eps: is only for --clusters dbscan",
    "optics rows.npy --min-samples 2 --max-eps 1 --clusters dbscan --eps 2": "eps: is above max_eps",
    "optics rows.npy --min-samples 2 --metric inner_product": "inner_product",
    "hdbscan rows.npy --min-cluster-size 0": "min_cluster_size: is 0",
    "hdbscan rows.npy --epsilon nan": "epsilon",
    "hdbscan rows.npy --min-samples 5": "min_samples: is 5",
    "hdbscan rows.npy --scan 1..3": "min_cluster_size: is 1",
    "hdbscan rows.npy --scan 3": "--scan: '3' is not of the form",
    "hdbscan rows.npy --scan 2..3 -o o.npz": "--scan: prints a table",
    "hdbscan rows.npy --scan 2..3 --min-cluster-size 3": "--min-cluster-size excludes --scan",
    "hdbscan rows.npy --scan 2..1000000000": "--scan: sizes up to 1000000000, but the table has",
    "hdbscan rows.npy --scan 2..3 --memberships m.npy": "--scan: prints a table",
    "hdbscan rows.npy --memberships m.npz": "--memberships",
    "hdbscan rows.npy --min-cluster-size 2 -o m.csv --memberships ./m.csv": "-o: 'm.csv' is the output of --memberships, too",
    "hdbscan rows.npy --scan 2..3 --validity": "--scan: prints a table",
    "hdbscan rows.npy --model rows.npy --validity": "--validity: cannot be combined with --model",
    "hdbscan rows.npy --memberships m.npy --missing drop": "--memberships: a .npy has no place",
    "hdbscan rows.npy --model rows.npy": "rows.npy",
    "hdbscan rows.npy --model rows.npy --min-cluster-size 3": "--min-cluster-size: cannot be combined with --model",
    "hdbscan rows.npy --model rows.npy --scale standard": "--scale: cannot be combined with --model",
    "optics rows.npy --min-samples 0": "min_samples: is 0",
    "knn rows.npy -k 2 --max-radius -1": "max_radius: is negative",
    "knn rows.npy -k 2 --max-radius 1 --rows 0:2 -o o.part": "--max-radius: parts have lists of k",
    "spanning-tree rows.npy --min-samples 5": "min_samples: is 5, must be from 1 to 4",
    "spanning-tree rows.npy --alpha 0": "alpha",
    "spanning-tree rows.npy -o o.npy": "-o",
}


@pytest.mark.parametrize("arguments", BAD)
def test_bad_input(vicinal, tmp_path, arguments):
    np.save(tmp_path / "rows.npy", np.arange(8.0).reshape(4, 2))
    np.save(tmp_path / "few.npy", np.ones(2))
    before = sorted(path.name for path in tmp_path.iterdir())
    done = vicinal(*arguments.split())
    assert done.returncode in (2, 3) and BAD[arguments] in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_models(ok, ok_json, tmp_path):
    """A model prepares rows as its own were prepared, and finds columns by their names."""
    rows = data_sets()["blobs"]
    lines = ["x,y,z,kind"] + [f"{x},{y},{z},{i % 3}" for i, (x, y, z) in enumerate(rows)]
    (tmp_path / "train.csv").write_text("\n".join(lines[:301]) + "\n")
    (tmp_path / "all.csv").write_text("\n".join(lines) + "\n")
    told = ok_json("hdbscan", "train.csv", "--drop", "kind", "--scale", "standard", "--min-cluster-size", 8,
                   "--save-model", "m.vhd", "-o", "o.npz")  # fmt: skip
    placed = ok_json("hdbscan", "all.csv", "--model", "m.vhd", "-o", "p.csv")
    assert told["model"] == placed["model"] == "m.vhd" and placed["rows"] == 360
    found = read_csv(tmp_path / "p.csv")
    assert list(found[0]) == ["row", "label", "probability"]
    assert [int(line["label"]) for line in found[:300]] == np.load(tmp_path / "o.npz")["labels"].tolist()
    assert sum(placed["sizes"]) + placed["noise"] == 360 and placed["clusters"] == told["clusters"]
    info = ok_json("info", "m.vhd")
    assert info["model"]["kind"] == "hdbscan" and info["model"]["clusters"] == told["clusters"]
    ok("hdbscan", "all.csv", "--model", "m.vhd", "-o", "p.npy")
    assert np.load(tmp_path / "p.npy").tolist() == [int(line["label"]) for line in found]


def test_memberships(ok, ok_json, tmp_path):
    rows = data_sets()["blobs"]
    np.save(tmp_path / "rows.npy", rows)
    told = ok_json("hdbscan", "rows.npy", "--min-cluster-size", 8, "--save-model", "m.vhd", "-o", "o.npz",
                   "--memberships", "soft.npy")  # fmt: skip
    soft, labels = np.load(tmp_path / "soft.npy"), np.load(tmp_path / "o.npz")["labels"]
    assert told["memberships"] == "soft.npy" and set(told["files"]) == {"m.vhd", "o.npz", "soft.npy"}
    assert soft.shape == (360, told["clusters"]) and told["clusters"] > 1
    assert (soft >= 0).all() and (soft.sum(axis=1) < 1 + 1e-12).all()
    firm = np.load(tmp_path / "o.npz")["probabilities"] == 1
    assert (soft.argmax(axis=1) == labels)[firm].all() and not np.abs(soft.sum(axis=1)[firm] - 1).max() > 1e-12
    ok("hdbscan", "rows.npy", "--min-cluster-size", 8, "--memberships", "soft.csv", "-q")
    lines = read_csv(tmp_path / "soft.csv")
    assert list(lines[0]) == ["row", *(f"cluster_{cluster}" for cluster in range(told["clusters"]))]
    assert [[float(value) for value in list(line.values())[1:]] for line in lines] == soft.tolist()
    placed = ok_json("hdbscan", "rows.npy", "--model", "m.vhd", "--memberships", "new.npy", "-o", "p.npy")
    assert placed["memberships"] == "new.npy" and np.load(tmp_path / "new.npy").shape == soft.shape
    plain = ok_json("hdbscan", "rows.npy", "--min-cluster-size", 8, "--explain")["plan"]["memory_bytes"]
    planned = ok_json("hdbscan", "rows.npy", "--min-cluster-size", 8, "--memberships", "x.npy", "--explain")
    assert planned["plan"]["memory_bytes"] > plain and not (tmp_path / "x.npy").exists()
    assert ok_json("hdbscan", "rows.npy", "--min-cluster-size", 200, "--memberships", "none.npy")["clusters"] == 0
    assert np.load(tmp_path / "none.npy").shape == (360, 0)


@pytest.mark.parametrize("words", ["-o o.csv", "-o o.npz --memberships soft.npy", "--memberships soft.csv --threads 3"])
@pytest.mark.parametrize("prepared", ["", "--scale standard", "--scale minmax --missing mean", "--missing knn"])
def test_the_memory_that_explain_names_for_a_model_is_enough(ok, ok_json, vicinal, tmp_path, words, prepared):
    draws = np.random.default_rng(3)
    rows = np.concatenate([draws.normal(size=(3_000, 4)) * s + 9 * i for i, s in enumerate([0.4, 0.8, 1.5])])
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "new.npy", draws.permutation(rows)[:2_000] + 0.1)
    ok("hdbscan", "rows.npy", "--min-cluster-size", 5, *prepared.split(), "--save-model", "m.vhd", "-q")
    call = ["hdbscan", "new.npy", "--model", "m.vhd", *words.split()]
    told = ok_json(*call, "--explain")["plan"]["memory_bytes"]
    assert not (tmp_path / "soft.npy").exists() and not (tmp_path / "o.csv").exists()
    # The model and the rows are part of it, and memberships are.
    assert told > (tmp_path / "m.vhd").stat().st_size + (tmp_path / "new.npy").stat().st_size
    if "--memberships" in words:
        assert told > ok_json("hdbscan", "new.npy", "--model", "m.vhd", "-o", "o.npz", "--explain")["plan"]["memory_bytes"]
    enough = vicinal(*call, "--memory-limit", told)
    assert enough.returncode == 0, enough.stderr
    refused = vicinal(*call, "--memory-limit", told // 3)
    assert refused.returncode == 4, refused.stderr
    for _ in range(2):  # the model first; what the search takes is known when that is loaded
        number = int(re.search(r"\((\d+) bytes\)", refused.stderr)[1])
        assert told // 3 < number <= told
        refused = vicinal(*call, "--memory-limit", number)
        if refused.returncode == 0:
            break
    assert refused.returncode == 0, refused.stderr


def rated(rows, labels):
    """DBCV by all pairs, from the paper: of equal weights the shorter distance is first."""
    distances = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(-1))
    core, inner, sparseness = np.zeros(len(rows)), {}, {}
    for cluster in range(labels.max() + 1):
        members = np.flatnonzero(labels == cluster)
        inverse = 1 / distances[np.ix_(members, members)][~np.eye(len(members), dtype=bool)].reshape(len(members), -1)
        core[members] = (inverse ** rows.shape[1]).mean(axis=1) ** (-1 / rows.shape[1])
        pairs = [(max(core[a], core[b], distances[a, b]), distances[a, b], a, b)
                 for a in members for b in members if a < b]  # fmt: skip
        part, tree = {row: row for row in members}, []
        for pair in sorted(pairs):
            ends = part[pair[2]], part[pair[3]]
            if ends[0] != ends[1]:
                tree.append(pair)
                part = {row: ends[0] if of == ends[1] else of for row, of in part.items()}
        degrees = np.bincount([end for pair in tree for end in pair[2:]], minlength=len(rows))
        inner[cluster] = np.flatnonzero(degrees > 1)
        sparseness[cluster] = max(pair[0] for pair in tree if min(degrees[pair[2]], degrees[pair[3]]) > 1)
    reach = np.maximum(distances, np.maximum(core[:, None], core[None]))
    validity = []
    for cluster, of in inner.items():
        apart = min(reach[np.ix_(of, others)].min() for other, others in inner.items() if other != cluster)
        validity.append((apart - sparseness[cluster]) / max(apart, sparseness[cluster]))
    return np.array(validity), (np.bincount(labels[labels >= 0]) * validity).sum() / len(rows)


@pytest.mark.parametrize("call", ["dbscan --eps 1.5", "hdbscan --min-cluster-size 10", "optics --min-samples 10"])
def test_validity(ok, ok_json, tmp_path, call):
    rows = data_sets()["blobs"]
    np.save(tmp_path / "rows.npy", rows)
    name, *words = call.split()
    told = ok_json(name, "rows.npy", *words, "-o", "o.npy", "--validity")
    clusters, index = rated(rows, np.load(tmp_path / "o.npy"))
    assert told["clusters"] > 1 and not np.abs(told["validity"]["clusters"] - clusters).max() > 1e-9
    assert not abs(told["validity"]["index"] - index) > 1e-9
    assert f"validity  {index:.4f}" in ok(name, "rows.npy", *words, "--validity", "-q")
    assert ok_json(name, "rows.npy", *words)["validity"] is None
    plans = [ok_json(name, "rows.npy", *words, *more, "--explain")["plan"] for more in ([], ["--validity"])]
    assert plans[0]["memory_bytes"] < plans[1]["memory_bytes"]


def test_validity_of_fewer_than_two_clusters(ok, ok_json, tmp_path):
    np.save(tmp_path / "rows.npy", data_sets()["blobs"])
    assert ok_json("dbscan", "rows.npy", "--eps", 1e-9, "--validity")["validity"] == {"index": None, "clusters": []}
    assert "validity  none" in ok("dbscan", "rows.npy", "--eps", 1e-9, "--validity", "-q")


def test_scan(ok, ok_json, tmp_path):
    np.save(tmp_path / "rows.npy", data_sets()["blobs"])
    np.save(tmp_path / "labels.npy", np.arange(360) % 3)
    scanned = ok_json("hdbscan", "rows.npy", "--scan", "5..9", "--labels", "labels.npy")
    assert scanned["min_samples"] == 5 and [point["min_cluster_size"] for point in scanned["scan"]] == [5, 6, 7, 8, 9]
    for point in scanned["scan"]:
        alone = ok_json("hdbscan", "rows.npy", "--min-cluster-size", point["min_cluster_size"], "--min-samples", 5,
                        "--labels", "labels.npy")  # fmt: skip
        assert (point["clusters"], point["noise"]) == (alone["clusters"], alone["noise"])
        assert point["largest"] == max(alone["sizes"]) and point["adjusted_rand"] == alone["scores"]["adjusted_rand"]
    text = ok("hdbscan", "rows.npy", "--scan", "5..6", "--min-samples", 3)
    assert text.split("\n")[0].split() == ["smallest", "clusters", "noise", "largest", "persistence"]


def test_explain_and_reports(ok, ok_json, tmp_path):
    np.save(tmp_path / "rows.npy", np.random.default_rng(3).normal(size=(300, 3)))
    for command in ("dbscan", "hdbscan", "optics", "spanning-tree"):
        assert ok_json(command, "rows.npy", "--explain")["plan"]["memory_bytes"] > 0
    for command in ("dbscan", "hdbscan", "optics"):
        ok(command, "rows.npy", "--report", "r.html", "-q")
        assert "Where the clusters lie" in (tmp_path / "r.html").read_text()
    assert "The reachability plot" in (tmp_path / "r.html").read_text()


def test_the_nearest_within_a_radius(ok, ok_json, tmp_path):
    rows = np.random.default_rng(6).normal(size=(400, 3))
    np.save(tmp_path / "rows.npy", rows)
    distances = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(-1))
    order = np.lexsort((np.broadcast_to(np.arange(400), (400, 400)), distances))
    for method in ("automatic", "fused", "direct", "kdtree"):
        told = ok_json("knn", "rows.npy", "-k", 4, "--max-radius", 0.6, "--method", method, "-o", "o.npz")
        found = np.load(tmp_path / "o.npz")
        near = [[j for j in order[i] if j != i and distances[i, j] <= 0.6][:4] for i in range(400)]
        assert found["ids"].tolist() == [j for row in near for j in row]
        assert found["offsets"].tolist() == np.cumsum([0] + [len(row) for row in near]).tolist()
        assert told["max_radius"] == 0.6 and told["neighbors"] == len(found["ids"])
    assert set(np.diff(found["offsets"])) == {0, 1, 2, 3, 4}
    ok("knn", "rows.npy", "-k", 4, "--max-radius", 0.6, "--report", "r.html", "-q")
    assert "up to 4 nearest neighbors within 0.6" in (tmp_path / "r.html").read_text()
    ok("knn", "rows.npy", "-k", 4, "--max-radius", 0.6, "--symmetric", "mutual", "-o", "m.npz", "-q")
    assert len(np.load(tmp_path / "m.npz")["ids"]) <= len(found["ids"])

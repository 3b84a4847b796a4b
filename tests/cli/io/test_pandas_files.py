"""CSV files as pandas and R write them: index columns and headers of numbers are no data, and stderr says so."""

import json

import numpy as np
import pytest


def csv(header, rows):
    return "\n".join([header, *(",".join(str(x) for x in row) for row in rows)]) + "\n"


@pytest.fixture
def data():
    draws = np.random.default_rng(5)
    labels = draws.integers(0, 3, 120)
    points = np.round(draws.normal(size=(120, 2)) + 6 * labels[:, None], 3)
    return points, labels


def test_an_index_is_no_feature(vicinal, tmp_path, data):
    points, labels = data
    order = np.random.default_rng(1).permutation(len(points))
    rows = [(i, *points[o], labels[o]) for i, o in enumerate(order)]
    (tmp_path / "indexed.csv").write_text(csv(",a,b,class", rows))
    (tmp_path / "plain.csv").write_text(csv("a,b,class", [row[1:] for row in rows]))

    def run(file, *words):
        done = vicinal("classify", file, file, "--label", "class", "-k", "3", "--json", *words)
        assert done.returncode == 0, done.stderr
        return done, json.loads(done.stdout)["outputs"]

    indexed, answers = run("indexed.csv")
    plain, expected = run("plain.csv")
    assert answers == expected
    assert indexed.stderr.count("an index, left out") == 1 and "note" not in plain.stderr
    assert "note" not in run("indexed.csv", "--quiet")[0].stderr
    kept, _ = run("indexed.csv", "--keep-index")
    assert "column 0 has no name" in kept.stderr

    # A model, and texts, whose columns are found by position.
    words = ["--categories", "ordinal", "--scale", "standard"]
    for name in ("indexed", "plain"):
        done = vicinal("classify", f"{name}.csv", "--label", "class", "--save-model", f"{name}.vnm", *words)
        assert done.returncode == 0, done.stderr
    answers = [json.loads(vicinal("classify", file, "--model", model, "--json").stdout)["outputs"]
               for model in ("indexed.vnm", "plain.vnm") for file in ("indexed.csv", "plain.csv")]
    assert all(answer == answers[0] for answer in answers)


def test_texts_behind_an_index(vicinal, tmp_path):
    words = ["red", "green", "blue"]
    rows = [(i, words[i % 3], i % 7) for i in range(60)]
    (tmp_path / "indexed.csv").write_text(csv(",color,x", rows))
    (tmp_path / "plain.csv").write_text(csv("color,x", [row[1:] for row in rows]))
    for name in ("indexed", "plain"):
        done = vicinal("lof", f"{name}.csv", "-k", "5", "--categories", "onehot", "--duplicates", "one", "--save-model",
                       f"{name}.vlof", "-o", f"{name}.npy")
        assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "indexed.npy"), np.load(tmp_path / "plain.npy"))
    scores = []
    for model in ("indexed", "plain"):
        for file in ("indexed", "plain"):
            done = vicinal("lof", "--model", f"{model}.vlof", f"{file}.csv", "-o", "scores.npy")
            assert done.returncode == 0, done.stderr
            scores.append(np.load(tmp_path / "scores.npy"))
    assert all(np.array_equal(one, scores[0]) for one in scores)


def test_a_header_of_numbers(vicinal, tmp_path, data):
    points, _ = data
    (tmp_path / "numbered.csv").write_text(csv("0,1", points))
    np.save(tmp_path / "points.npy", points)
    for file in ("numbered.csv", "points.npy"):
        assert vicinal("knn", file, "-k", "3", "-o", f"{file}.npz").returncode == 0
    with np.load(tmp_path / "numbered.csv.npz") as found, np.load(tmp_path / "points.npy.npz") as expected:
        assert np.array_equal(found["ids"], expected["ids"])
    done = vicinal("info", "numbered.csv")
    assert "120 rows" in done.stdout and "read as a header" in done.stderr


@pytest.mark.parametrize("header", [",a,b", ",0,1", ",a,b,w"])
def test_edges_behind_an_index(vicinal, tmp_path, header):
    edges = [(10, 20), (11, 20), (12, 21)]
    weights = [(0.5,)] * 3 if header.endswith("w") else [()] * 3
    (tmp_path / "edges.csv").write_text(csv(header, [(i, *e, *w) for i, (e, w) in enumerate(zip(edges, weights))]))
    (tmp_path / "plain.csv").write_text(csv("a,b", edges))
    for name in ("edges", "plain"):
        done = vicinal("cocluster", f"{name}.csv", "-o", f"{name}-groups.csv")
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "edges-groups.csv").read_text() == (tmp_path / "plain-groups.csv").read_text()

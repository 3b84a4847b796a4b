"""`vicinal lof`: scores and their files, the columns that push rows out, labels, prepared columns, and models."""

import gzip
import json
import math

import numpy as np
import pytest
from conftest import brute_force, write_csv

# Distances of d columns, sums of k of them, and two divisions: each below so many roundings, and the peer has its own.
TOLERANCE = 1e-10


def reference_lof(table, k):
    """Scores, k-distances and densities by the definition, the smaller row first among equal distances."""
    ids, distances = brute_force(table, k=k)
    far = distances[:, -1]
    density = 1 / (np.maximum(distances, far[ids]).mean(axis=1) + 1e-10)
    return density[ids].mean(axis=1) / density, far, density


def reference_novelty(table, queries, k):
    _, far, density = reference_lof(table, k)
    ids, distances = brute_force(table, queries, k)
    own = 1 / (np.maximum(distances, far[ids]).mean(axis=1) + 1e-10)
    return density[ids].mean(axis=1) / own


def read_scores(path):
    lines = path.read_text().splitlines()
    return lines[0], np.array([[float(v) for v in line.split(",")] for line in lines[1:]])


@pytest.fixture
def rows(tmp_path):
    """Two hundred rows with five far out, and others to score; as .npy and .csv, labeled."""
    generator = np.random.default_rng(5)
    table = np.concatenate([generator.normal(size=(200, 4)), generator.normal(size=(5, 4)) * 6 + 8])
    queries = np.concatenate([generator.normal(size=(30, 4)), generator.normal(size=(6, 4)) * 9])
    np.save(tmp_path / "rows.npy", table)
    np.save(tmp_path / "queries.npy", queries)
    write_csv(tmp_path / "rows.csv", table, ["good"] * 200 + ["bad"] * 5)
    write_csv(tmp_path / "queries.csv", queries)
    return table, queries


def test_scores_and_their_files(ok, ok_json, tmp_path, rows):
    table, _ = rows
    told = ok_json("lof", "rows.npy", "-k", 10, "-o", "scores.csv")
    wanted, _, _ = reference_lof(table, 10)
    head, written = read_scores(tmp_path / "scores.csv")
    assert head == "row,lof,rank,outlier"
    assert (written[:, 0] == range(205)).all()
    assert not (np.abs(written[:, 1] / wanted - 1) > TOLERANCE).any()
    order = sorted(range(205), key=lambda row: (-written[row, 1], row))
    assert [written[row, 2] for row in order] == list(range(1, 206))
    assert told["threshold"] == 1.5 and told["outliers"] == (written[:, 1] > 1.5).sum()
    assert (written[:, 3] == (written[:, 1] > 1.5)).all()
    assert [one["row"] for one in told["top"]] == order[:50]
    ok("lof", "rows.csv", "--drop", "class", "-k", 10, "-o", "scores.npy", "--threads", 3)
    assert (np.load(tmp_path / "scores.npy") == written[:, 1]).all()
    ok("lof", "rows.npy", "-k", 10, "-o", "scores.npz", "--contamination", 0.1)
    arrays = np.load(tmp_path / "scores.npz")
    assert (arrays["scores"] == written[:, 1]).all()
    assert (arrays["outliers"] == (arrays["scores"] > arrays["threshold"])).all() and arrays["outliers"].sum() == 21
    assert not abs(arrays["threshold"][0] + np.percentile(-written[:, 1], 10)) > 1e-12


def test_equal_to_scikit_learn(ok, tmp_path, rows):
    neighbors = pytest.importorskip("sklearn.neighbors")
    table, queries = rows
    for k in (5, 20):
        ok("lof", "rows.npy", "-k", k, "-o", "scores.npy", "--top", 0)
        peer = neighbors.LocalOutlierFactor(n_neighbors=k).fit(table)
        assert not (np.abs(np.load(tmp_path / "scores.npy") / -peer.negative_outlier_factor_ - 1) > TOLERANCE).any()
        ok("lof", "rows.npy", "queries.npy", "--novelty", "-k", k, "-o", "scores.npy")
        peer = neighbors.LocalOutlierFactor(n_neighbors=k, novelty=True).fit(table)
        assert not (np.abs(np.load(tmp_path / "scores.npy") / -peer.score_samples(queries) - 1) > TOLERANCE).any()


def test_columns_that_push_rows_out(ok, ok_json, rows):
    table, queries = rows
    for arguments, asked in ((["rows.csv"], table), (["rows.csv", "queries.csv"], queries)):
        told = ok_json("lof", *arguments, "--drop", "class", "-k", 10, "--top", 7)
        assert len(told["top"]) == 7
        for one in told["top"]:
            distances = ((table - asked[one["row"]]) ** 2).sum(axis=1)
            if asked is table:
                distances[one["row"]] = np.inf
            nearest = np.argsort(distances, kind="stable")[:10]
            parts = (asked[one["row"]] - table[nearest].mean(axis=0)) ** 2
            order = np.argsort(-parts, kind="stable")[:3]
            assert [column["column"] for column in one["columns"]] == [f"x{j}" for j in order]
            for column, j in zip(one["columns"], order):
                assert not abs(column["share"] - parts[j] / parts.sum()) > 1e-12
    text = ok("lof", "rows.csv", "--label", "class", "-k", 10, "--top", 2)
    assert text.splitlines()[0].split() == ["rank", "row", "lof", "label", "pushed", "out", "by"]


def test_labels_are_counted(ok_json, rows):
    told = ok_json("lof", "rows.csv", "--label", "class", "-k", 10, "--top-share", 0.02)
    labels = told["labels"]
    assert labels["top_rows"] == 4 and labels["normal"] == "good" and labels["roc_auc"] == 1.0
    assert labels["classes"] == [{"label": "bad", "rows": 5, "found": 4}, {"label": "good", "rows": 200, "found": 0}]
    assert told["top"][0]["label"] == "bad"
    turned = ok_json("lof", "rows.csv", "--label", "class", "-k", 10, "--normal", "bad")
    assert turned["labels"]["roc_auc"] == 0.0


def test_area_under_the_curve_counts_ties_half(ok_json, tmp_path):
    generator = np.random.default_rng(1)
    table = generator.integers(0, 4, size=(300, 2)).astype(float)
    classes = generator.integers(0, 3, size=300)
    write_csv(tmp_path / "ties.csv", table, classes)
    told = ok_json("lof", "ties.csv", "--label", "class", "-k", 30, "--score", "knn", "--normal", "1", "--top", 300)
    scores = np.array([one["score"] for one in sorted(told["top"], key=lambda one: one["row"])])
    bad, good = scores[classes != 1], scores[classes == 1]
    pairs = (bad[:, None] > good).sum() + (bad[:, None] == good).sum() / 2
    assert (bad[:, None] == good).any()
    assert not abs(told["labels"]["roc_auc"] - pairs / (len(bad) * len(good))) > 1e-15
    assert ok_json("lof", "ties.csv", "--label", "class", "-k", 30)["labels"]["roc_auc"] is None  # which of three is normal?


def test_copies_are_told_and_infinity_is_text(vicinal, tmp_path):
    table = np.concatenate([np.zeros((30, 2)), np.random.default_rng(1).normal(size=(20, 2))])
    np.save(tmp_path / "copies.npy", table)
    done = vicinal("lof", "copies.npy", "-k", 5)
    assert done.returncode == 0
    assert "warning: 30 rows have 5 duplicates or more" in done.stderr and "--duplicates sklearn was applied" in done.stderr
    done = vicinal("lof", "copies.npy", "-k", 5, "--duplicates", "inf", "--json", "-o", "scores.csv", "--report", "report.html")
    told = json.loads(done.stdout)
    assert told["copied"] == 30 and told["top"][0]["score"] == "inf"
    assert "inf" in {line.split(",")[1] for line in (tmp_path / "scores.csv").read_text().splitlines()}
    assert vicinal("lof", "copies.npy", "-k", 5, "--quiet").stderr == ""
    assert "copies" not in vicinal("lof", "copies.npy", "-k", 5, "--score", "knn").stderr


@pytest.mark.parametrize("score", ["simplified_lof", "knn", "knn_weighted", "loop", "ldof", "inflo", "cof", "cof_pyod"])
def test_every_score_has_a_name_and_a_column(ok, ok_json, tmp_path, rows, score):
    told = ok_json("lof", "rows.npy", "-k", 8, "--score", score, "-o", "scores.csv")
    head, written = read_scores(tmp_path / "scores.csv")
    assert told["score"] == score and head == f"row,{score},rank,outlier"
    assert len(set(np.argsort(-written[:, 1])[:10]) & set(range(200, 205))) >= 4
    if score != "inflo":
        ok("lof", "rows.npy", "-k", 8, "--score", score, "--save-model", "model.vlof")
        ok("lof", "--model", "model.vlof", "queries.npy", "-o", "model.npy")
        ok("lof", "rows.npy", "queries.npy", "-k", 8, "--score", score, "-o", "queries_scores.npy")
        assert (np.load(tmp_path / "model.npy") == np.load(tmp_path / "queries_scores.npy")).all()


def test_a_range_of_k(ok, tmp_path, rows):
    table, _ = rows
    for across, join in (("max", np.max), ("min", np.min), ("mean", np.mean)):
        ok("lof", "rows.npy", "-k", 5, "--k-to", 9, "--across", across, "-o", "scores.npy")
        wanted = join([reference_lof(table, k)[0] for k in range(5, 10)], axis=0)
        assert not (np.abs(np.load(tmp_path / "scores.npy") / wanted - 1) > TOLERANCE).any()


def test_graphs_from_files(ok, ok_json, vicinal, tmp_path, rows):
    ok("knn", "rows.npy", "-k", 12, "-o", "graph.npz")
    ok("lof", "rows.npy", "-k", 12, "-o", "wanted.npy")
    alone = ok_json("lof", "--graph", "graph.npz", "-o", "alone.npy")
    assert alone["k"] == 12 and alone["top"][0]["columns"] == []
    beside = ok_json("lof", "rows.npy", "--graph", "graph.npz", "-o", "beside.npy", "--report", "report.html")
    assert len(beside["top"][0]["columns"]) == 3
    for name in ("alone", "beside"):
        assert (np.load(tmp_path / f"{name}.npy") == np.load(tmp_path / "wanted.npy")).all()
    ok("lof", "--graph", "graph.npz", "--report", "graph.html")
    ok("radius", "rows.npy", "-r", 30, "-o", "wide.npz")
    assert ok_json("lof", "--graph", "wide.npz")["rows"] == 205
    good = dict(np.load(tmp_path / "graph.npz"))
    for change, words in (
        ({"ids": good["ids"].astype(float) + 0.5}, "whole"),
        ({"ids": good["ids"][:, :5]}, "one shape"),
        ({"offsets": np.arange(3)}, "neither"),
        ({"distances": None}, "one shape"),
        ({"ids": np.full_like(good["ids"], 205)}, "row 0"),
    ):
        arrays = {name: array for name, array in {**good, **change}.items() if array is not None}
        np.savez(tmp_path / "bad.npz", **arrays)
        done = vicinal("lof", "--graph", "bad.npz", "-o", "never.npy")
        assert done.returncode == 3 and words in done.stderr, done.stderr
        assert not (tmp_path / "never.npy").exists()
    assert vicinal("lof", "--graph", "graph.npz", "-k", 13).returncode == 2


# ---- columns ----


def traffic(path, words=("tcp", "udp", "icmp"), rows=120, seed=1, header=True, label=True):
    generator = np.random.default_rng(seed)
    lines = ["bytes,proto,still,class"] if header else []
    table = []
    for i in range(rows):
        size, word = generator.integers(0, 10000), words[generator.integers(0, len(words))]
        table.append((float(size), word, 7.0))
        lines.append(f"{size},{word},7" + (f",{'attack.' if i % 9 == 0 else 'normal.'}" if label else ""))
    if header and not label:
        lines[0] = "bytes,proto,still"
    text = "\n".join(lines) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return table


def prepared(table, train, scale):
    words = sorted({row[1] for row in train})
    code = lambda word: words.index(word) if word in words else len(words)
    numbers = lambda of: np.array([[row[0], code(row[1]), row[2]] for row in of], float)
    fitted, asked = numbers(train), numbers(table)
    if scale == "standard":
        deviation = fitted.std(axis=0)
        return (asked - fitted.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    if scale == "minmax":
        width = fitted.max(axis=0) - fitted.min(axis=0)
        return (asked - fitted.min(axis=0)) / np.where(width > 0, width, 1)
    return asked


@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
@pytest.mark.parametrize("header", [True, False])
def test_prepared_columns(ok, vicinal, tmp_path, model_texts, scale, header):
    label = "class" if header else "3"
    train = traffic(tmp_path / "train.csv.gz", header=header)
    asked = traffic(tmp_path / "asked.csv", words=("icmp", "gre", "udp"), rows=40, seed=2, header=header, label=False)
    options = ["--categories", "ordinal", "--scale", scale, "-k", 10, "--label", label]
    ok("lof", "train.csv.gz", *options, "-o", "own.npy", "--save-model", "model.vlof")
    assert json.loads(model_texts("model.vlof")["preparation"])["scale"] == scale
    np.save(tmp_path / "numbers.npy", prepared(train, train, scale))
    np.save(tmp_path / "others.npy", prepared(asked, train, scale))
    ok("lof", "numbers.npy", "-k", 10, "-o", "wanted.npy")
    close = lambda name, wanted: not (np.abs(np.load(tmp_path / name) / np.load(tmp_path / wanted) - 1) > 1e-9).any()
    assert close("own.npy", "wanted.npy")
    ok("lof", "numbers.npy", "others.npy", "-k", 10, "-o", "wanted.npy")
    ok("lof", "train.csv.gz", "asked.csv", *options, "-o", "direct.npy")
    assert close("direct.npy", "wanted.npy")
    ok("lof", "--model", "model.vlof", "asked.csv", "-o", "model.npy")
    assert (np.load(tmp_path / "model.npy") == np.load(tmp_path / "direct.npy")).all()
    done = vicinal("lof", "--model", "model.vlof", "-", input=(tmp_path / "asked.csv").read_text())
    assert done.returncode == 0, done.stderr
    streamed = [float(line.split(",")[1]) for line in done.stdout.splitlines()[1:]]
    assert streamed == np.load(tmp_path / "model.npy").tolist()


def test_columns_of_another_kind_are_refused(vicinal, tmp_path):
    traffic(tmp_path / "train.csv")
    options = ["--categories", "ordinal", "--drop", "class", "-k", 5, "-o", "never.csv"]
    for text, words in (
        ("bytes,proto\n1,tcp\n", ["asked.csv", "no column 'still'"]),
        ("proto,bytes,still\n1,tcp,7\n", ["line 2", "'bytes'", "tcp"]),
        ("bytes,proto,still\n1,,7\n", ["line 2", "'proto'", "empty"]),
        ("bytes,proto,still\nmany,tcp,7\n", ["line 2", "'bytes'", "many"]),
    ):
        (tmp_path / "asked.csv").write_text(text)
        done = vicinal("lof", "train.csv", "asked.csv", *options)
        assert done.returncode in (2, 3) and done.stderr.count("\n") == 1, done.stderr
        assert all(word in done.stderr for word in words), done.stderr
        assert not (tmp_path / "never.csv").exists()
    assert "not a number; --categories ordinal" in vicinal("lof", "train.csv", "--drop", "class").stderr


# ---- models ----


def test_a_model_is_all_it_takes(ok, ok_json, vicinal, tmp_path, rows):
    table, queries = rows
    ok("lof", "rows.csv", "--drop", "class", "-k", 10, "--contamination", 0.05, "--save-model", "model.vlof")
    (tmp_path / "rows.csv").unlink()
    told = ok_json("lof", "--model", "model.vlof", "queries.csv", "-o", "scores.npz", "--report", "report.html")
    scores = np.load(tmp_path / "scores.npz")["scores"]
    assert not (np.abs(scores / reference_novelty(table, queries, 10) - 1) > TOLERANCE).any()
    assert told["k"] == 10 and told["rows"] == 36 and told["train_rows"] == 205
    assert told["outliers"] == (scores > told["threshold"]).sum()
    ok("lof", "--model", "model.vlof", "queries.csv", "--explain")
    again = vicinal("lof", "rows.npy", "-k", 10, "--contamination", 0.05, "--save-model", "again.vlof")
    assert again.returncode == 0


def test_models_that_are_none(vicinal, ok, tmp_path, rows):
    ok("lof", "rows.npy", "-k", 10, "--save-model", "model.vlof")
    good = (tmp_path / "model.vlof").read_bytes()
    before = sorted(path.name for path in tmp_path.iterdir())
    for damaged, words in (
        (good[: len(good) // 2], "bytes"),
        (good[:-1], "model.vlof"),
        (good.replace(b'"version":"1"', b'"version":"2"', 1), "version"),
        (good[:-2000] + bytes([good[-2000] ^ 4]) + good[-1999:], "check sum"),
        (b"row,lof\n1,2\n", "model.vlof"),
        (b"", "model.vlof"),
    ):
        (tmp_path / "model.vlof").write_bytes(damaged)
        done = vicinal("lof", "--model", "model.vlof", "queries.npy", "-o", "never.csv", "--report", "never.html")
        assert done.returncode == 3 and done.stderr.count("\n") == 1, done.stderr
        assert words in done.stderr and done.stdout == ""
        assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert vicinal("lof", "--model", "nowhere.vlof", "queries.npy").returncode == 3


# ---- what is refused ----

BAD = {
    "no table": ("lof", 2, ["train"]),
    "k is 0": ("lof rows.npy -k 0", 2, ["k:", "0"]),
    "k is n": ("lof rows.npy -k 205", 2, ["205", "204"]),
    "k_to below k": ("lof rows.npy -k 9 --k-to 4", 2, ["k_to"]),
    "range of another score": ("lof rows.npy -k 3 --k-to 5 --score knn", 2, ["range"]),
    "contamination": ("lof rows.npy --contamination 0.6", 2, ["contamination", "0.6"]),
    "lambda": ("lof rows.npy --score loop --lambda 0", 2, ["lambda"]),
    "score": ("lof rows.npy --score lol", 2, ["lol", "simplified_lof"]),
    "policy": ("lof rows.npy --duplicates maybe", 2, ["maybe"]),
    "inner product": ("lof rows.npy --metric inner_product", 2, ["inner_product"]),
    "distinct of a graph": ("lof --graph graph.npz --duplicates distinct", 2, ["distinct"]),
    "cof of a graph alone": ("lof --graph graph.npz --score cof", 2, ["cof", "table"]),
    "inflo as novelty": ("lof rows.npy queries.npy --score inflo", 2, ["inflo"]),
    "other columns": ("lof rows.npy wide.npy", 2, ["5 columns", "4"]),
    "nan": ("lof nan.npy", 3, ["nan.npy", "row 7", "column 1", "finite"]),
    "nan scaled": ("lof nan.npy --scale standard", 3, ["nan.npy", "row 7", "column 1", "finite"]),
    "nan in queries": ("lof rows.npy nan.npy", 3, ["nan.npy", "row 7", "column 1", "finite"]),
    "text": ("lof rows.csv", 3, ["rows.csv", "line 2", "'class'", "good"]),
    "missing": ("lof nowhere.npy", 3, ["nowhere.npy"]),
    "categories of an array": ("lof rows.npy --categories ordinal", 2, ["rows.npy", "text"]),
    "label missing": ("lof rows.csv --label kind", 2, ["kind"]),
    "normal missing": ("lof rows.csv --label class --normal evil", 3, ["--normal", "evil"]),
    "normal without label": ("lof rows.npy --normal good", 2, ["--normal", "--label"]),
    "top share": ("lof rows.npy --top-share 0", 2, ["--top-share"]),
    "top": ("lof rows.npy --top -1", 2, ["--top"]),
    "model and k": ("lof --model model.vlof queries.npy -k 5", 2, ["-k", "--model"]),
    "model and scale": ("lof --model model.vlof queries.npy --scale minmax", 2, ["--scale", "--model"]),
    "model without rows": ("lof --model model.vlof", 2, ["--model"]),
    "model and two files": ("lof --model model.vlof rows.npy queries.npy", 2, ["queries"]),
    "model of other columns": ("lof --model model.vlof wide.npy", 2, ["wide.npy", "5", "4"]),
    "novelty of nothing": ("lof rows.npy --novelty", 2, ["--novelty"]),
    "standard input as table": ("lof -", 2, ["train", "standard input"]),
    "explain a graph": ("lof --graph graph.npz --explain", 2, ["--explain"]),
    "over memory": ("lof rows.npy --memory-limit 100", 4, ["100"]),
}


@pytest.mark.parametrize("arguments, code, words", BAD.values(), ids=BAD.keys())
def test_bad_input(vicinal, ok, tmp_path, rows, arguments, code, words):
    table, _ = rows
    np.save(tmp_path / "wide.npy", np.zeros((20, 5)))
    holed = table[:40].copy()
    holed[7, 1] = np.nan
    np.save(tmp_path / "nan.npy", holed)
    ok("knn", "rows.npy", "-k", 20, "-o", "graph.npz")
    ok("lof", "rows.npy", "--save-model", "model.vlof")
    before = sorted(tmp_path.iterdir())
    given = arguments.split()
    if not {"--json", "--explain", "-"} & set(given):
        given += ["-o", "out.csv", "--report", "out.html"]
    if not {"--model", "--graph", "--json", "-"} & set(given):
        given += ["--save-model", "out.vlof"] if "--novelty" not in given else []
    done = vicinal(*given, input="")
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("vicinal: error: ") and done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr.lower(), done.stderr
    if "--json" not in given:
        assert done.stdout == ""
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("option, name", [("-o", "out.parquet"), ("-o", "nowhere/out.csv"), ("--report", "out.txt"), ("--save-model", "nowhere/m")])
def test_outputs_are_refused_before_work(vicinal, tmp_path, rows, option, name):
    done = vicinal("lof", "rows.npy", option, name)
    assert done.returncode in (2, 3) and option in done.stderr and name in done.stderr


def test_small_tables(ok, tmp_path):
    for n, d in ((2, 1), (3, 2), (5, 1)):
        np.save(tmp_path / "rows.npy", np.arange(n * d, dtype=float).reshape(n, d) ** 2)
        for score in ("lof", "loop", "knn", "cof"):
            ok("lof", "rows.npy", "-k", n - 1, "--score", score, "--report", "report.html", "-o", "scores.csv")
            page = (tmp_path / "report.html").read_text()
            assert "nan" not in page.lower() and "inf," not in page


def test_kdd(ok_json, data_folder, tmp_path):
    """The first 20,000 connections: text columns, scaled, with all their copies."""
    with gzip.open(data_folder / "kddcup99" / "kddcup.data_10_percent.gz", "rt") as file:
        (tmp_path / "kdd.csv").write_text("".join(line for line, _ in zip(file, range(20000))))
    told = ok_json("lof", "kdd.csv", "--label", 41, "--normal", "normal.", "--categories", "ordinal", "--scale", "standard",
                   "-k", 20, "-o", "scores.npy")  # fmt: skip
    assert told["rows"] == 20000 and told["copied"] > 0 and told["labels"]["top_rows"] == 200
    assert sum(one["rows"] for one in told["labels"]["classes"]) == 20000
    assert math.isfinite(told["labels"]["roc_auc"])

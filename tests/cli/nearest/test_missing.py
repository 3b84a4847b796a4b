"""Missing values: `impute` and --missing against scikit-learn's KNNImputer and SimpleImputer on ten data sets, in files
as people have them, in models, and what is refused.

The sets are samples of those in $VICINAL_DATA, or where that is not set, tables that are generated."""

import json
import os
import pathlib

import numpy as np
import pytest
from conftest import write_csv
from sklearn.impute import KNNImputer, SimpleImputer

SETS = ["14_glass", "2_annthyroid", "23_mammography", "26_optdigits", "30_satellite", "32_shuttle", "41_Waveform",
        "45_wine", "4_breastw", "6_cardio"]
SHARES = [0.05, 0.2, 0.5]
ROWS, COLUMNS = 150, 16
EPS = 2.0**-52


def table_of(name):
    """At most 150 rows of 16 columns."""
    draw = np.random.default_rng(sum(name.encode()))
    path = pathlib.Path(os.environ.get("VICINAL_DATA", "nowhere")) / "adbench" / f"{name}.npz"
    if path.exists():
        table = np.load(path)["X"].astype(float)
        return table[draw.permutation(len(table))[:ROWS], :COLUMNS]
    table = draw.normal(size=(ROWS, 9)) * 10.0 ** draw.integers(-3, 4, 9)
    return np.round(table, 1) if len(name) % 2 else table  # of which many rows are at one distance


def with_gaps(table, share, seed=3):
    gaps = np.random.default_rng(seed).random(table.shape) < share
    gaps[0] = False  # no column lacks all of its values
    return np.where(gaps, np.nan, table)


def means_of_nearest(table, k):
    """Of each missing value, the least and the largest mean of k nearest donors, where those that scikit-learn's
    rounding cannot tell from the k-th may be taken or not, and how far two orders of a sum may be apart.

    scikit-learn's squared distance is |x|^2 - 2 xy + |y|^2: of d columns and float64, whose unit roundoff is EPS / 2,
    each term has an error of at most (d + 2) EPS / 2 of |x|^2 + |y|^2 (for xy: its half), and their sum of three more
    roundings of at most 2 (|x|^2 + |y|^2). Both ways of division add two roundings. 4 (d + 8) EPS (|x|^2 + |y|^2) is
    more than that."""
    have = ~np.isnan(table)
    known = np.where(have, table, 0)
    d = table.shape[1]
    for i, j in np.argwhere(~have):
        common = have & have[i]
        counts = common.sum(axis=1)
        donors = np.flatnonzero(have[:, j] & (counts > 0))
        column = known[have[:, j], j]
        close = (len(table) + 2) * EPS * np.abs(column).max()
        if len(donors) == 0:
            yield i, j, column.mean(), column.mean(), close
            continue
        differences = np.where(common[donors], known[donors] - known[i], 0).astype(np.longdouble)
        distances = (differences**2).sum(axis=1) / counts[donors]
        squares = known[i] ** 2 + known[donors] ** 2  # of all columns: scikit-learn subtracts those of one row only
        slack = 4 * (d + 8) * EPS * float(squares.sum(axis=1).max())
        kth = np.sort(distances)[min(k, len(donors)) - 1]
        values = known[donors, j]
        sure = values[distances < kth - slack]
        tied = np.sort(values[np.abs(distances - kth) <= slack])
        rest = min(k, len(donors)) - len(sure)
        low, high = tied[:rest].sum(), tied[len(tied) - rest :].sum()
        yield i, j, (sure.sum() + low) / (len(sure) + rest), (sure.sum() + high) / (len(sure) + rest), close


@pytest.mark.parametrize("name", SETS)
def test_impute_equals_scikit_learn(ok, tmp_path, name):
    table = table_of(name)
    for share in SHARES:
        rows = with_gaps(table, share)
        np.save(tmp_path / "rows.npy", rows)
        ok("impute", "rows.npy", "-k", 4, "-o", "filled.npy", "-q")
        ours = np.load(tmp_path / "filled.npy")
        theirs = KNNImputer(n_neighbors=4).fit_transform(rows)
        np.testing.assert_array_equal(ours[~np.isnan(rows)], table[~np.isnan(rows)])
        ties = 0
        for i, j, low, high, close in means_of_nearest(rows, 4):
            for found in (ours[i, j], theirs[i, j]):
                assert low - close <= found <= high + close, (share, i, j, found, low, high)
            ties += high - low > 2 * close
            if high - low <= 2 * close:
                assert abs(ours[i, j] - theirs[i, j]) <= 4 * close
        assert ties < np.isnan(rows).sum()
    for method in ("mean", "median"):
        ok("impute", "rows.npy", "--method", method, "-o", "filled.npy", "-q")
        expected = SimpleImputer(strategy=method).fit_transform(rows)
        scale = np.nanmax(np.abs(rows), axis=0)
        assert (np.abs(np.load(tmp_path / "filled.npy") - expected) <= (ROWS + 2) * EPS * scale).all()


def test_the_plan_of_filling_counts_queries(ok_json, tmp_path):
    """What each of 8 threads lists while queries are filled grows with --missing-k, whatever the table's rows."""
    generator = np.random.default_rng(2)
    np.save(tmp_path / "few.npy", with_gaps(generator.normal(size=(32, 6)), 0.2))
    np.save(tmp_path / "many.npy", with_gaps(generator.normal(size=(4000, 6)), 0.2))

    def memory(k, *words):
        return ok_json(*words, k, "--threads", 8, "--device", "cpu", "--explain")["plan"]["memory_bytes"]

    impute = ("impute", "many.npy", "-o", "filled.npy", "-k")
    lists = memory(32, *impute) - memory(1, *impute)
    assert lists > 0
    for search in (("knn", "-k", 1), ("radius", "-r", 1)):
        words = (search[0], "few.npy", "many.npy", *search[1:], "--missing", "knn", "--missing-k")
        assert memory(32, *words) - memory(1, *words) >= lists, search


def test_gaps_of_csv_files(ok, ok_json, tmp_path):
    """Every way to write a missing value; texts and labels stay; the report says how many were filled."""
    rows = ["1,red,10,a", ",red,20,b", "3,NA,NA,a", "NaN,blue,40,b", "?,red,null,a", "7,blue,60,a"]
    (tmp_path / "gaps.csv").write_text("size,colour,weight,class\n" + "\n".join(rows) + "\n")
    (tmp_path / "whole.csv").write_text((tmp_path / "gaps.csv").read_text().replace("NA,NA", "red,NA"))
    said = ok_json("impute", "whole.csv", "--label", "class", "--method", "median", "-o", "filled.csv")
    assert said["filled"] == 5 and said["method"] == "median" and said["k"] is None
    assert [(one["name"], one["filled"]) for one in said["columns"]] == [("size", 3), ("weight", 2)]
    assert (tmp_path / "filled.csv").read_text().splitlines() == [
        "size,colour,weight,class", "1,red,10,a", "3,red,20,b", "3,red,30,a", "3,blue,40,b", "3,red,30,a", "7,blue,60,a"]
    table = ok("impute", "whole.csv", "--drop", "class", "--drop", "colour", "--method", "mean", "-o", "filled.npy")
    assert "size" in table and "50.0 %" in table
    said = ok_json("convert", "gaps.csv", "whole.npy", "--drop", "class", "--drop", "colour", "--missing", "drop")
    assert said["rows"] == 2 and said["dropped_rows"] == 4
    assert np.load(tmp_path / "whole.npy").tolist() == [[1, 10], [7, 60]]


def test_where_missing_values_are_filled(vicinal, ok, ok_json, tmp_path):
    """`impute` and its plan say on which device and with how much memory; a device that is not there is an error."""
    np.save(tmp_path / "gaps.npy", with_gaps(np.random.default_rng(1).normal(size=(500, 6)), 0.2))
    for method, memory in (("knn", 3), ("mean", 2)):
        words = ("impute", "gaps.npy", "--method", method, "-o", "filled.npy", "--device", "cpu")
        plan = ok_json(*words)["plan"]
        assert plan["device"] == "cpu" and plan["device_memory_bytes"] == 0
        assert plan["memory_bytes"] >= memory * 500 * 6 * 8
        explained = ok_json(*words, "--explain")["plan"]
        assert explained["reason"] == plan["reason"] and explained["memory_bytes"] > plan["memory_bytes"]
    if json.loads(ok("doctor", "--json"))["cuda"]["usable"]:
        plan = ok_json("impute", "gaps.npy", "-o", "device.npy", "--device", "cuda")["plan"]
        assert plan["device"] == "cuda:0" and plan["device_memory_bytes"] > 0
        ok("impute", "gaps.npy", "-o", "filled.npy", "--device", "cpu")
        assert (tmp_path / "device.npy").read_bytes() == (tmp_path / "filled.npy").read_bytes()
    else:
        done = vicinal("impute", "gaps.npy", "-o", "device.npy", "--device", "cuda")
        assert done.returncode != 0 and "cuda:0 cannot be used" in done.stderr


def test_knn_keeps_the_numbers_of_rows(vicinal, ok_json, tmp_path):
    table = np.random.default_rng(1).normal(size=(40, 3))
    gaps = table.copy()
    gaps[[0, 7, 39], [1, 2, 0]] = np.nan
    kept = np.flatnonzero(~np.isnan(gaps).any(axis=1))
    np.save(tmp_path / "gaps.npy", gaps)
    np.save(tmp_path / "kept.npy", table[kept])
    np.save(tmp_path / "others.npy", table[:5])
    done = vicinal("knn", "gaps.npy", "-k", 3, "--missing", "drop", "-o", "found.npz")
    assert done.returncode == 0 and "3 of 40 rows have missing values and are left out" in done.stderr
    vicinal("knn", "kept.npy", "-k", 3, "-o", "expected.npz")
    found, expected = np.load(tmp_path / "found.npz"), np.load(tmp_path / "expected.npz")
    np.testing.assert_array_equal(found["ids"], kept[expected["ids"]])
    np.testing.assert_array_equal(found["distances"], expected["distances"])
    np.testing.assert_array_equal(found["rows"], kept)
    assert ok_json("knn", "gaps.npy", "-k", 3, "--missing", "drop")["dropped_rows"] == 3
    assert ok_json("knn", "kept.npy", "-k", 3)["dropped_rows"] == 0
    counted = ok_json("radius", "gaps.npy", "others.npy", "-r", 1, "--count", "--missing", "drop")
    assert counted["dropped_rows"] == 3 and counted["table_rows"] == 37
    said = ok_json("radius", "gaps.npy", "others.npy", "-r", 1, "--missing", "drop", "-o", "found.csv")
    assert said["dropped_rows"] == 3
    expected = ok_json("radius", "kept.npy", "others.npy", "-r", 1)
    assert said["first_rows"][1]["ids"] == kept[expected["first_rows"][1]["ids"]].tolist()
    assert (tmp_path / "found.csv").read_text().splitlines()[1].startswith("0,0,")
    filled = SimpleImputer().fit(gaps)
    np.save(tmp_path / "filled.npy", filled.transform(gaps))
    by_mean = ok_json("knn", "gaps.npy", "-k", 3, "--missing", "mean")["first_rows"]
    expected = ok_json("knn", "filled.npy", "-k", 3)["first_rows"]
    assert [row["ids"] for row in by_mean] == [row["ids"] for row in expected]


def test_every_result_of_a_table_keeps_the_numbers_of_rows(ok_json, vicinal, tmp_path):
    """Under drop lof, kmeans and lle answer as for a file without the rows that are left out, but number rows as the file
    does; files of one value a row have all rows."""
    table = np.random.default_rng(2).normal(size=(40, 3))
    names = np.array(["ash", "birch"])[(table[:, 0] > 0).astype(int)]
    dropped = [0, 7, 8, 39]
    names[dropped] = "rare"  # a label that does not occur in what is left
    kept = np.setdiff1d(np.arange(40), dropped)
    write_csv(tmp_path / "kept.csv", table[kept], names[kept])
    for rows, name in ((np.arange(40), "all"), (kept, "some")):
        np.save(tmp_path / f"{name}.npy", 1 + 0.1 * rows)
        (tmp_path / f"{name}.txt").write_text("\n".join(names[rows]) + "\n")
    table[dropped, [1, 2, 0, 1]] = np.nan
    write_csv(tmp_path / "gaps.csv", table, names)
    (tmp_path / "gaps.csv").write_text((tmp_path / "gaps.csv").read_text().replace("nan", ""))

    def numbers_and_rest(name):
        text = (tmp_path / name).read_text().replace(" ", ",")
        lines = [line.split(",") for line in text.splitlines() if not line.startswith("row")]
        return [int(line[0]) for line in lines], [line[1:] for line in lines]

    def same(words, output, file, keys):
        """The JSON of a run on the table with gaps."""
        expected = ok_json(*words.format("some").split(), "kept.csv", *output, "expected" + file)
        said = ok_json(*words.format("all").split(), "gaps.csv", "--missing", "drop", *output, "found" + file)
        assert said["dropped_rows"] == 4 and expected["dropped_rows"] == 0 and said["rows"] == 36
        assert [said[key] for key in keys] == [expected[key] for key in keys], words
        if file.endswith(".npz"):
            found, arrays = np.load(tmp_path / ("found" + file)), np.load(tmp_path / ("expected" + file))
            np.testing.assert_array_equal(found["rows"], kept)
            assert set(found) == {*arrays, "rows"}
            for name in arrays:
                np.testing.assert_array_equal(found[name], arrays[name], err_msg=words)
            return said, expected
        ending = "" if file.endswith(".csv") else ".membership"
        numbers, values = numbers_and_rest("found" + file + ending)
        plain, wanted = numbers_and_rest("expected" + file + ending)
        assert numbers == kept.tolist() and plain == list(range(36)) and values == wanted, words
        return said, expected

    for file in (".csv", ".npz"):
        said, expected = same("lof --label class -k 5 --report {}.html", ["-o"], file,
                              ["threshold", "outliers", "labels"])
        assert [one["row"] for one in said["top"]] == kept[[one["row"] for one in expected["top"]]].tolist()
        assert [one["score"] for one in said["top"]] == [one["score"] for one in expected["top"]]
        same("lle --drop class -k 6 --parameters {}.npy", ["-o"], file, ["eigenvalue_sum", "parameters"])
    row = f'<td class="name">{said["top"][0]["row"]}</td>'
    assert row in (tmp_path / "all.html").read_text()
    for file in (".csv", ".npz", ""):
        same("kmeans --drop class -c 3 --weights {0}.npy --labels {0}.txt", ["-o"], file,
             ["inertia", "sizes", "scores"])
    done = vicinal("kmeans", "gaps.csv", "--drop", "class", "--missing", "drop", "--scan", "2..3")
    assert done.returncode == 0 and "gaps.csv: 4 of 40 rows have missing values and are left out" in done.stderr
    for words in ("kmeans gaps.csv -c 2 --weights some.npy", "kmeans gaps.csv -c 2 --labels some.txt",
                  "lle gaps.csv -k 6 --parameters some.npy"):
        done = vicinal(*words.split(), "--drop", "class", "--missing", "drop")
        assert done.returncode == 3 and "36" in done.stderr and "40" in done.stderr, (words, done.stderr)


@pytest.fixture
def gaps(tmp_path, small_files):
    """train and test as CSV with gaps, and the same filled by scikit-learn, from train."""
    (train, names), (test, _) = small_files["train"], small_files["test"]
    train, test = with_gaps(train, 0.1), with_gaps(test, 0.2, 4)
    for name, table in (("train", train), ("test", test)):
        write_csv(tmp_path / f"gaps_{name}.csv", table, names if name == "train" else None)
        path = tmp_path / f"gaps_{name}.csv"
        path.write_text(path.read_text().replace("nan", ""))
        for method, imputer in (("mean", SimpleImputer()), ("knn", KNNImputer(n_neighbors=3))):
            filled = imputer.fit(train).transform(table)
            write_csv(tmp_path / f"{method}_{name}.csv", filled, names if name == "train" else None)
    return train, names


@pytest.mark.parametrize("method", ["mean", "knn"])
def test_models_fill_later_rows(ok, tmp_path, gaps, method):
    """Every command that makes a model answers as for tables that scikit-learn filled, at once and by the model."""
    filling = ["--missing", method, *(["--missing-k", 3] if method == "knn" else [])]

    def same(name, *words):
        assert (tmp_path / f"{name}.csv").read_text() == (tmp_path / "expected.csv").read_text(), words

    ok("classify", f"{method}_train.csv", f"{method}_test.csv", "--label", "class", "-k", 4, "-o", "expected.csv")
    ok("classify", "gaps_train.csv", "gaps_test.csv", "--label", "class", "-k", 4, *filling, "-o", "now.csv",
       "--save-model", "m")
    same("now", "classify")
    ok("classify", "gaps_test.csv", "--model", "m", "-o", "later.csv")
    same("later", "classify by model")
    for command, clusters in (("kmeans", ["-c", 3, "--init", "first-k"]), ("lof", ["-k", 5]), ("lle", ["-k", 6])):
        label = ["--drop", "class"]
        ok(command, f"{method}_train.csv", *label, *clusters, "--save-model", "filled.model", "-q")
        ok(command, "gaps_train.csv", *label, *clusters, *filling, "--save-model", "gaps.model", "-q")
        outputs = []
        for rows, model in ((f"{method}_test.csv", "filled.model"), ("gaps_test.csv", "gaps.model")):
            ok(command, rows, "--model", model, "-o", "placed.csv", "-q")
            lines = (tmp_path / "placed.csv").read_text().splitlines()[1:]
            outputs.append(np.array([[float(text) for text in line.split(",")[1:]] for line in lines]))
        # means of k values in two orders, which only the last bits of an embedding or of a density show
        np.testing.assert_allclose(outputs[1], outputs[0], rtol=1e-6, atol=1e-9, err_msg=command)


def test_rows_are_dropped_with_their_labels_and_targets(vicinal, ok, tmp_path, gaps, small_files):
    table, names = gaps
    kept = ~np.isnan(table).any(axis=1)
    write_csv(tmp_path / "kept.csv", table[kept], names[kept])
    for rest in (["--label", "class"], ["--labels", "names.txt", "--drop", "class"]):
        (tmp_path / "names.txt").write_text("\n".join(names) + "\n")
        ok("classify", "gaps_train.csv", "test.csv", *rest, "--missing", "drop", "-o", "found.csv")
        ok("classify", "kept.csv", "test.csv", "--label", "class", "-o", "expected.csv")
        assert (tmp_path / "found.csv").read_text() == (tmp_path / "expected.csv").read_text()
    targets = np.arange(len(table), dtype=float)
    np.save(tmp_path / "targets.npy", targets)
    np.save(tmp_path / "kept_targets.npy", targets[kept])
    common = ["--drop", "class", "-o"]
    ok("regress", "gaps_train.csv", "test.csv", "--targets", "targets.npy", "--missing", "drop", *common, "found.csv")
    ok("regress", "kept.csv", "test.csv", "--targets", "kept_targets.npy", *common, "expected.csv")
    assert (tmp_path / "found.csv").read_text() == (tmp_path / "expected.csv").read_text()


REFUSED = {
    **{f"a missing value, unasked, {words}": (words, 3, ["gaps.csv", "line 3", "column 'x'", "; --missing fills"])
       for words in ("knn gaps.csv --drop class", "radius gaps.csv --drop class -r 1", "lof gaps.csv --label class -k 1",
                     "classify gaps.csv gaps.npy --label class", "kmeans gaps.csv -c 1 --drop class",
                     "lle gaps.csv -k 1 --drop class", "convert gaps.csv x.npy --drop class")},
    "a query under drop": ("knn gaps.csv gaps.csv --drop class --missing drop", 3, ["line 3", "a missing value"]),
    "drop and a filter": ("knn gaps.npy --missing drop --filter gaps.npy", 2, ["--filter", "--missing drop"]),
    "drop and a report": ("knn gaps.npy --missing drop --report x.html", 2, ["--missing drop", "--report"]),
    "drop and scores without numbers": ("lof gaps.npy --missing drop -k 1 -o x.npy", 2, [".npy", "numbers of rows"]),
    "drop and places without numbers": ("lle gaps.npy --missing drop -k 1 -o x.npy", 2, [".npy", "median or knn"]),
    "drop and a graph": ("lof gaps.npy --graph gaps.npy --missing drop", 2, ["--missing drop: --graph numbers"]),
    **{f"too few rows for {needs}": (f"{words} --missing drop", 3,
                                     ["gaps.csv: 1 of 3 rows have missing values, so that --missing drop leaves 2",
                                      f"too few for {needs}; fill"])
       for needs, words in (("-k 2", "knn gaps.csv --drop class -k 2"),
                            ("--cv 3 -k 1", "classify gaps.csv --label class --cv 3 -k 1"),
                            ("-k 3", "regress gaps.csv gaps.csv --target y --drop class -k 3"),
                            ("-k 4", "lof gaps.csv --drop class -k 4"),
                            ("-c 3", "kmeans gaps.csv -c 3 --drop class"),
                            ("-k 5", "lle gaps.csv -k 5 --drop class"))},
    "every row is dropped": ("convert holes.npy x.npy --missing drop", 3, ["holes.npy", "every row"]),
    "a column without values": ("impute holes.npy -o x.npy", 3, ["holes.npy", "column 1", "no value"]),
    "an infinite value": ("impute infinite.npy -o x.npy", 3, ["infinite.npy", "row 0, column 1", "infinite"]),
    "a missing text": ("impute texts.csv -o x.csv", 3, ["texts.csv", "row 1, column 1", "missing text"]),
    "k of 0": ("impute gaps.npy -k 0 -o x.npy", 2, ["k is 0"]),
    "no suffix": ("impute gaps.npy -o x", 2, ["-o", "suffix"]),
    "another method": ("impute gaps.npy --method mode -o x.npy", 2, ["--method", "mode"]),
    "a model has settled it": ("classify gaps.npy --model m --missing mean", 2, ["--missing", "the model file"]),
}


@pytest.mark.parametrize("arguments,code,parts", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(vicinal, tmp_path, arguments, code, parts):
    (tmp_path / "gaps.csv").write_text("x,y,class\n1,2,a\n,3,b\n2,4,a\n")
    (tmp_path / "texts.csv").write_text("x,colour\n1,red\n2,\n3,blue\n")
    np.save(tmp_path / "gaps.npy", np.array([[1, 2], [np.nan, 3], [2, 4]]))
    np.save(tmp_path / "holes.npy", np.array([[1, np.nan], [2, np.nan]]))
    np.save(tmp_path / "infinite.npy", np.array([[1, np.inf], [np.nan, 3]]))
    done = vicinal(*arguments.split())
    assert done.returncode == code, done.stderr
    assert done.stdout == "" and len(done.stderr.strip().splitlines()) == 1, done.stderr
    for part in parts:
        assert part in done.stderr
    assert not list(tmp_path.glob("x.*"))


def test_a_model_says_what_fills(ok, gaps, model_texts):
    filling = ["--missing", "knn", "--missing-k", 2]
    ok("classify", "gaps_train.csv", "--label", "class", *filling, "--save-model", "m", "-q")
    missing = json.loads(model_texts("m")["preparation"])["missing"]
    assert missing["filling"] == "knn" and missing["k"] == 2 and len(missing["values"]) == 4

"""regress, classify by radius, the choice of k, and model files: against scikit-learn, and what is refused."""

import csv
import json

import numpy as np
import pytest
from conftest import write_csv
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
)
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

# Sums of up to 100 products in two orders differ by at most 100 roundings each, relative to the sum of magnitudes, which
# is below 100 times the mean for the targets made here.
CLOSE = 100 * 100 * 2.0**-52


def column(path, name="value"):
    with open(path) as lines:
        return [line[name] for line in csv.DictReader(lines)]


def values(path, name="value"):
    return np.array([float(text) for text in column(path, name)])


@pytest.fixture
def numbers(tmp_path):
    """train and test with two targets between 1 and 2, as CSV columns and as .npy."""
    generator = np.random.default_rng(8)
    made = {}
    for name, rows in (("train", 300), ("test", 80)):
        table = generator.normal(size=(rows, 5))
        targets = 1.5 + 0.5 * np.sin(table[:, :2] + generator.normal(scale=0.1, size=(rows, 2)))
        made[name] = table, targets
        write_csv(tmp_path / f"{name}.csv", np.hstack([table, targets]))  # targets are x5 and x6
        write_csv(tmp_path / f"{name}_bare.csv", table)
        np.save(tmp_path / f"{name}.npy", table)
        np.save(tmp_path / f"{name}_targets.npy", targets)
    return made


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("k", [1, 5, 100])
def test_regress_equals_scikit_learn(ok, tmp_path, numbers, weights, k):
    (table, targets), (queries, _) = numbers["train"], numbers["test"]
    ok("regress", "train.csv", "test.csv", "--target", "x6", "--target", "x5", "-k", k, "--weights", weights, "-o", "v.csv")
    expected = KNeighborsRegressor(k, weights=weights, algorithm="brute").fit(table, targets).predict(queries)
    np.testing.assert_allclose(values(tmp_path / "v.csv", "x6"), expected[:, 1], rtol=CLOSE)
    np.testing.assert_allclose(values(tmp_path / "v.csv", "x5"), expected[:, 0], rtol=CLOSE)
    ok("regress", "train.npy", "test.npy", "--targets", "train_targets.npy", "-k", k, "--weights", weights, "-o", "v.npy")
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, rtol=CLOSE)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_a_radius_equals_scikit_learn(ok, ok_json, tmp_path, numbers, weights):
    (table, targets), (queries, _) = numbers["train"], numbers["test"]
    radius = 1.7
    model = RadiusNeighborsRegressor(radius, weights=weights, algorithm="brute").fit(table, targets)
    with pytest.warns(UserWarning, match="no neighbors"):
        expected = model.predict(queries)
    alone = np.isnan(expected[:, 0])
    assert 0 < alone.sum() < len(queries)
    told = ok_json("regress", "train.npy", "test.npy", "--targets", "train_targets.npy", "-r", radius, "--outlier", -4,
                   "--weights", weights, "-o", "v.npy")  # fmt: skip
    found = np.load(tmp_path / "v.npy")
    assert told["outliers"] == alone.sum() and told["k"] is None
    np.testing.assert_array_equal(found[alone], -4)
    np.testing.assert_allclose(found[~alone], expected[~alone], rtol=CLOSE)

    kinds = np.where(targets[:, 0] > 1.5, "high", "low")
    (tmp_path / "kinds.txt").write_text("\n".join(kinds) + "\n")
    for outlier in ("low", "odd"):
        ok("classify", "train.npy", "test.npy", "--labels", "kinds.txt", "-r", radius, "--outlier", outlier,
           "--weights", weights, "--proba", "-o", "labels.csv")  # fmt: skip
        theirs = RadiusNeighborsClassifier(radius, weights=weights, outlier_label=outlier).fit(table, kinds)
        assert column(tmp_path / "labels.csv", "label") == list(theirs.predict(queries))
        shares = values(tmp_path / "labels.csv", "p_high")
        high = list(theirs.classes_).index("high")
        if outlier == "low":
            np.testing.assert_allclose(shares, theirs.predict_proba(queries)[:, high], atol=CLOSE)


@pytest.mark.parametrize("verb", ["classify", "regress"])
def test_a_chosen_k(ok_json, ok, tmp_path, small_files, verb):
    """Each score is that of an ordinary run in which the fold is TEST, and the best one's k answers."""
    what = ["--label", "class"] if verb == "classify" else ["--target", "x3", "--drop", "class"]
    told = ok_json(verb, "train.csv", "test.csv", *what, "--k", "2..9", "--cv", 4, "--seed", 5)
    chosen = told["cross_validation"]
    scores = np.array(chosen["scores"])
    best = scores.argmax() if verb == "classify" else scores.argmin()
    assert told["k"] == chosen["k"] == 2 + best and len(scores) == 8
    table, names = small_files["train"]
    folds = np.array(chosen["fold_scores"]).reshape(8, 4)
    if verb == "classify":
        assert np.allclose(folds.mean(axis=1), scores)  # 120 rows: folds of one size
        # Folds are draws, so that an estimate by other draws agrees within four deviations of a share of 120 rows.
        theirs = KNeighborsClassifier(int(chosen["k"])).fit(table[:60], names[:60]).score(table[60:], names[60:])
        assert abs(theirs - chosen["best"]) < 4 * 0.5 / np.sqrt(60)
    same = ok_json(verb, "train.csv", "test.csv", *what, "-k", chosen["k"])
    assert same["outputs" if verb == "classify" else "scores"] == told["outputs" if verb == "classify" else "scores"]
    again = ok_json(verb, "train.csv", *what, "--k", "2..9", "--cv", 4, "--seed", 5, "--threads", 1)
    assert again["cross_validation"]["fold_scores"] == chosen["fold_scores"]
    text = ok(verb, "train.csv", *what, "--k", "2..9", "--cv", 4, "--seed", 5)
    assert any(line.split()[0] == str(chosen["k"]) and line.rstrip().endswith("<") for line in text.splitlines()[1:])


@pytest.mark.parametrize("categories", ["ordinal", "onehot"])
@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
def test_a_model_answers_as_its_training_rows(ok, tmp_path, model_texts, categories, scale):
    """Texts, one of them not seen in training, and scaled columns: as scikit-learn's tools make them, from files and from a model."""
    generator = np.random.default_rng(6)
    words = np.array(["udp", "tcp", "icmp"])
    rows = {name: (generator.normal(size=(n, 2)) * [1, 40], words[generator.integers(0, 3, n)], generator.normal(size=n))
            for name, n in (("train", 150), ("test", 40))}  # fmt: skip
    rows["test"][1][7] = "sctp"
    for name, (table, texts, target) in rows.items():
        lines = ["a,protocol,b,y,same"] + [f"{x[0]!r},{t},{x[1]!r},{y!r},3" for x, t, y in zip(table.tolist(), texts, target)]
        (tmp_path / f"{name}.csv").write_text("\n".join(line.replace("np.float64(", "").replace(")", "") for line in lines) + "\n")
    encoded = {}
    for name, (table, texts, _) in rows.items():
        if categories == "ordinal":
            code = np.array([["icmp", "tcp", "udp", "sctp"].index(text) for text in texts], float)[:, None]
        else:
            encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(rows["train"][1][:, None])
            code = encoder.transform(texts[:, None])
        encoded[name] = np.hstack([table[:, :1], code, table[:, 1:], np.full((len(table), 1), 3.0)])
    scaled = [0, 1, 2, 3] if categories == "ordinal" else [0, 4, 5]
    if scale != "none":
        scaler = (StandardScaler if scale == "standard" else MinMaxScaler)().fit(encoded["train"][:, scaled])
        for table in encoded.values():
            table[:, scaled] = scaler.transform(table[:, scaled])
    expected = KNeighborsRegressor(4, algorithm="kd_tree").fit(encoded["train"], rows["train"][2]).predict(encoded["test"])
    options = ["--target", "y", "-k", 4, "--categories", categories, "--scale", scale]
    ok("regress", "train.csv", "test.csv", *options, "--save-model", "m.vnm", "-o", "direct.csv")
    np.testing.assert_allclose(values(tmp_path / "direct.csv", "y"), expected, rtol=1e-9, atol=1e-12)
    assert json.loads(model_texts("m.vnm")["preparation"])["scale"] == scale
    ok("regress", "--model", "m.vnm", "test.csv", "-o", "by_model.csv")
    assert (tmp_path / "direct.csv").read_bytes() == (tmp_path / "by_model.csv").read_bytes()
    # A file without the target answers the same.
    lines = [line.split(",") for line in (tmp_path / "test.csv").read_text().splitlines()]
    (tmp_path / "bare.csv").write_text("\n".join(",".join(line[:3] + line[4:]) for line in lines) + "\n")
    ok("regress", "--model", "m.vnm", "bare.csv", "-o", "bare_values.csv")
    assert (tmp_path / "direct.csv").read_bytes() == (tmp_path / "bare_values.csv").read_bytes()


def test_a_classifying_model(ok, ok_json, tmp_path, model_texts, small_files):
    options = ["--label", "class", "--weights", "distance", "--metric", "manhattan", "-k", 3]
    told = ok_json("classify", "train.csv", "test.csv", *options, "--save-model", "m.vnm", "--proba", "-o", "direct.csv")
    assert json.loads(model_texts("m.vnm")["preparation"])["scale"] == "none"
    assert json.loads(model_texts("m.vnm")["notes"]).keys() == {"columns", "dropped", "id", "outlier"}
    by_model = ok_json("classify", "--model", "m.vnm", "test.csv", "--proba", "-o", "by_model.csv")
    assert (tmp_path / "direct.csv").read_bytes() == (tmp_path / "by_model.csv").read_bytes()
    assert told["outputs"] == by_model["outputs"] and by_model["metric"] == "manhattan"
    ok("classify", "train.csv", "--label", "class", "--k", "1..9", "--cv", 3, "--save-model", "chosen.vnm")
    assert ok_json("classify", "--model", "chosen.vnm", "test.csv")["k"] >= 1
    ok("classify", "train.csv", "--label", "class", "-r", 1, "--outlier", "odd", "--save-model", "radius.vnm")
    by_radius = ok_json("classify", "--model", "radius.vnm", "test.csv")
    assert by_radius["radius"] == 1 and by_radius["outputs"][0]["classes"] == 4


def test_the_same_bytes_whatever_the_threads(ok, tmp_path, numbers):
    answers = set()
    for threads in (1, 2, 3, 7):
        ok("regress", "train.npy", "test.npy", "--targets", "train_targets.npy", "--weights", "distance", "--threads", threads, "-o", "v.npy")
        answers.add((tmp_path / "v.npy").read_bytes())
    assert len(answers) == 1


def test_the_scores_of_regress(ok_json, numbers):
    told = ok_json("regress", "train.csv", "test.csv", "--target", "x5", "--drop", "x6", "-k", 5)
    (table, targets), (queries, truth) = numbers["train"], numbers["test"]
    found = KNeighborsRegressor(5).fit(table, targets[:, 0]).predict(queries)
    error = found - truth[:, 0]
    score = told["scores"][0]
    np.testing.assert_allclose(score["root_mean_square_error"], np.sqrt(np.mean(error**2)), rtol=1e-12)
    np.testing.assert_allclose(score["mean_absolute_error"], np.mean(np.abs(error)), rtol=1e-12)
    np.testing.assert_allclose(score["largest_error"], np.abs(error).max(), rtol=1e-12)
    np.testing.assert_allclose(score["r2"], KNeighborsRegressor(5).fit(table, targets[:, 0]).score(queries, truth[:, 0]), rtol=1e-11)


USAGE, DATA, MEMORY = 2, 3, 4
REFUSED = {
    "no targets": ("regress train.csv test.csv", USAGE, ["--target"]),
    "both kinds of targets": ("regress train.csv test.csv --target x5 --targets train_targets.npy", USAGE, ["--target"]),
    "a column that is not there": ("regress train.csv test.csv --target y", DATA, ["train.csv", "'y'"]),
    "targets of another length": ("regress train.npy test.npy --targets test_targets.npy", DATA, ["test_targets.npy", "80", "300"]),
    "test targets of another width": (
        "regress train.npy test.npy --targets train_targets.npy --test-targets test.npy", DATA, ["test.npy", "5", "2"]),
    "targets that are no numbers": ("regress broken.csv test.csv --target x0 -k 1", DATA, ["broken.csv"]),
    "a radius that leaves rows alone": ("regress train.npy test.npy --targets train_targets.npy -r 0.01", DATA, ["test.npy", "row 0", "--outlier"]),
    "the same of classes": ("classify train.npy test.npy --labels ones.txt -r 0.01", DATA, ["test.npy", "row 0", "--outlier"]),
    "an outlier that is no number": ("regress train.npy test.npy --targets train_targets.npy -r 1 --outlier x", USAGE, ["--outlier", "x"]),
    "an outlier that is no label": ("classify train.npy test.npy --labels ones.txt -r 1 --outlier x", USAGE, ["--outlier", "x"]),
    "an outlier without a radius": ("regress train.npy test.npy --targets train_targets.npy --outlier 0", USAGE, ["--outlier"]),
    "a negative radius": ("regress train.npy test.npy --targets train_targets.npy -r -1", USAGE, ["radius"]),
    "a range without folds": ("regress train.npy test.npy --targets train_targets.npy -k 1..5", USAGE, ["--cv"]),
    "a range backwards": ("regress train.npy test.npy --targets train_targets.npy -k 5..1 --cv 3", USAGE, ["5..1"]),
    "a range of words": ("regress train.npy test.npy --targets train_targets.npy -k a..b --cv 3", USAGE, ["a..b"]),
    "k of no number": ("classify train.npy test.npy --labels ones.txt -k five", USAGE, ["five"]),
    "one fold": ("regress train.npy test.npy --targets train_targets.npy -k 1..5 --cv 1", USAGE, ["folds"]),
    "more folds than rows": ("regress train.npy test.npy --targets train_targets.npy -k 1..5 --cv 301", USAGE, ["folds", "300"]),
    "k beyond the folds": ("regress train.npy test.npy --targets train_targets.npy -k 1..290 --cv 5", USAGE, ["240"]),
    "folds of a radius": ("classify train.npy test.npy --labels ones.txt -r 1 --cv 5", USAGE, ["--cv"]),
    "folds with a filter": ("classify train.npy test.npy --labels ones.txt --cv 5 --filter ones.txt", USAGE, ["--cv"]),
    "nothing to do": ("classify train.npy --labels ones.txt", USAGE, ["TEST"]),
    "output without rows": ("classify train.npy --labels ones.txt --cv 5 -o o.csv", USAGE, ["-o"]),
    "text without --categories": ("classify texts.csv texts.csv --label y", DATA, ["texts.csv", "--categories"]),
    "an option that a model has settled": ("regress --model m.vnm test.npy -k 3", USAGE, ["-k", "--model"]),
    "a model and two tables": ("regress --model m.vnm train.npy test.npy", USAGE, ["TEST", "--model"]),
    "a model that is none": ("regress --model train.npy test.npy", DATA, ["train.npy"]),
    "a model cut short": ("regress --model cut.vnm test.npy", DATA, ["cut.vnm"]),
    "a model of the other command": ("classify --model m.vnm test.npy", DATA, ["m.vnm", "regress"]),
    "a model of another width": ("regress --model m.vnm train_targets.npy", USAGE, ["train_targets.npy", "2", "5"]),
    "too little memory": ("regress train.npy test.npy --targets train_targets.npy --memory-limit 1k", MEMORY, ["1"]),
    "a report of counts": ("radius train.npy -r 1 --count --report r.html", USAGE, ["--report"]),
    "a report of another ending": ("knn train.npy --report r.pdf", USAGE, ["--report"]),
    "images of another size": ("knn train.npy --report r.html --image-shape 2x2", USAGE, ["--image-shape"]),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(vicinal, ok, tmp_path, numbers, case):
    line, code, words = REFUSED[case]
    (tmp_path / "ones.txt").write_text("1\n" * 300)
    (tmp_path / "broken.csv").write_text("x0,x1,x2,x3,x4,x5\n1,2,3,4,5,6\nq,2,3,4,5,6\n")
    (tmp_path / "texts.csv").write_text("a,y\n" + "tcp,1\n" * 9)
    ok("regress", "train.npy", "--targets", "train_targets.npy", "--save-model", "m.vnm")
    (tmp_path / "cut.vnm").write_bytes((tmp_path / "m.vnm").read_bytes()[:-9])
    before = sorted(path.name for path in tmp_path.iterdir())
    outputs = [] if "--report" in line or "-o" in line.split() else ["--save-model" if "TEST" in words else "--seed", "1"]
    done = vicinal(*line.split(), *([] if line.startswith(("knn", "radius")) or "TEST" in words else outputs))
    assert done.returncode == code, done.stderr
    assert done.stdout == "" and done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    told = vicinal(*line.split(), "--json")
    assert json.loads(told.stdout)["error"]["message"] in done.stderr


def test_plans(ok_json, numbers):
    common = ["regress", "train.npy", "test.npy", "--targets", "train_targets.npy", "--explain"]
    assert "lists of" in ok_json(*common, "-k", "1..9", "--cv", 5)["plan"]["reason"]
    assert ok_json(*common, "-k", 4)["plan"]["memory_bytes"] > 0
    assert ok_json(*common, "-r", 4)["plan"]["memory_bytes"] > 0


def test_ties_are_cut_by_the_smaller_row(ok, tmp_path):
    """Whole numbers: most distances are shared, and of equally far rows the first in TRAIN answer."""
    generator = np.random.default_rng(9)
    table, queries = generator.integers(0, 3, (200, 3)).astype(float), generator.integers(0, 3, (50, 3)).astype(float)
    targets = generator.normal(size=200)
    for name, array in (("train", table), ("test", queries), ("targets", targets)):
        np.save(tmp_path / f"{name}.npy", array)
    ok("regress", "train.npy", "test.npy", "--targets", "targets.npy", "-k", 7, "-o", "v.npy")
    far = ((queries[:, None, :] - table[None, :, :]) ** 2).sum(axis=2)
    nearest = np.argsort(far, axis=1, kind="stable")[:, :7]
    np.testing.assert_allclose(np.load(tmp_path / "v.npy")[:, 0], targets[nearest].mean(axis=1), rtol=0, atol=7 * 4 * 2.0**-52)

"""Scores that the command prints, against scikit-learn's on the same answers: the ADBench sets, of the large ones every
n-th normal row and outlier. Both count in float64 and add up in another order: the sums here have at most 2,200 terms,
whose errors stay far below the tolerance."""
# ctest: COST 40

import re

import numpy as np
import pytest

TOLERANCE = 1e-12
MOST_ROWS = 2000
SETS = ["10_cover", "14_glass", "16_http", "23_mammography", "25_musk", "26_optdigits", "2_annthyroid", "30_satellite",
        "32_shuttle", "34_smtp", "38_thyroid", "41_Waveform", "45_wine", "4_breastw", "6_cardio"]

metrics = pytest.importorskip("sklearn.metrics")


@pytest.fixture(params=SETS)
def rows(request, data_folder, tmp_path):
    """Rows and labels of a set; all.csv has both, train.csv and test.csv every other row each."""
    path = data_folder / "adbench" / f"{request.param}.npz"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    with np.load(path) as arrays:
        of_label = (np.flatnonzero(arrays["y"] == label) for label in (0, 1))
        most = (MOST_ROWS, MOST_ROWS // 10)
        chosen = np.concatenate([ids[:: -(-len(ids) // limit)] for ids, limit in zip(of_label, most)])
        table, labels = arrays["X"][chosen].astype(np.float64), arrays["y"][chosen].astype(int)
    head = ",".join([f"x{j}" for j in range(table.shape[1])] + ["class"])
    both = np.column_stack([table, labels])
    for name, part in (("all", both), ("train", both[::2]), ("test", both[1::2])):
        np.savetxt(tmp_path / f"{name}.csv", part, "%.17g", ",", header=head, comments="")
    return table, labels


def near(found, wanted):
    assert not abs(found - wanted) > TOLERANCE, (found, wanted)


def expected_precision(labels, scores, n):
    """Of the n rows with the largest scores, the positive ones; of ties at the n-th score, as many as a random order
    has."""
    cut = np.sort(scores)[-n]
    above, at = scores > cut, scores == cut
    return (labels[above].sum() + (n - above.sum()) * labels[at].mean()) / n


def test_of_outliers(ok_json, tmp_path, rows):
    table, labels = rows
    told = ok_json("lof", "all.csv", "--label", "class", "--normal", "0", "-k", 10, "--top", 0, "-o", "scores.npz",
                   "--report", "report.html")["labels"]
    scores = np.load(tmp_path / "scores.npz")["scores"]
    n = int(labels.sum())
    assert told["outliers"] == n > 0
    near(told["roc_auc"], metrics.roc_auc_score(labels, scores))
    near(told["average_precision"], metrics.average_precision_score(labels, scores))
    near(told["precision_at_n"], expected_precision(labels, scores, n))
    top = np.argsort(-scores, kind="stable")[:n]
    if (scores >= scores[top[-1]]).sum() == n:
        near(told["precision_at_n"], metrics.precision_score(labels, np.isin(np.arange(len(scores)), top)))
    # The curve in the report goes through scikit-learn's points, to a tenth of a pixel.
    page = (tmp_path / "report.html").read_text()
    picture = page[page.index("<h2>ROC curve</h2>"):]
    drawn = np.array([point.split(",") for point in
                      re.search(r'<polyline points="([^"]*)"', picture)[1].split()], float)
    (left, base), (right, top) = drawn[0], drawn[-1]
    false, true, _ = metrics.roc_curve(labels, scores)
    wanted = np.column_stack([left + false * (right - left), base - true * (base - top)])
    apart = np.abs(wanted[:, None] - drawn[None]).max(axis=2)
    assert not (apart.min(axis=1) > 0.151).any() and not (apart.min(axis=0) > 0.151).any()


def test_of_clusters(ok_json, tmp_path, rows):
    table, labels = rows
    for clusters in (2, 7):
        told = ok_json("kmeans", "all.csv", "--label", "class", "-c", clusters, "-o", "clusters.npz")["scores"]
        arrays = np.load(tmp_path / "clusters.npz")
        found = arrays["labels"]
        near(told["adjusted_rand"], metrics.adjusted_rand_score(labels, found))
        near(told["normalized_mutual_info"], metrics.normalized_mutual_info_score(labels, found))
        for name, wanted in zip(("homogeneity", "completeness", "v_measure"),
                                metrics.homogeneity_completeness_v_measure(labels, found)):
            near(told[name], wanted)
        apart = np.sqrt(((table - arrays["centres"][found]) ** 2).sum(axis=1))
        assert not (np.abs(arrays["distances"] - apart) > 1e-12 * np.abs(table).max() * table.shape[1]).any()


def test_of_classes_and_values(ok_json, tmp_path, rows):
    table, labels = rows
    told = ok_json("classify", "train.csv", "test.csv", "--label", "class", "-k", 3, "-o", "labels.csv")["outputs"][0]
    truth = labels[1::2]
    found = np.loadtxt(tmp_path / "labels.csv", delimiter=",", skiprows=1)[:, 1].astype(int)
    near(told["accuracy"], metrics.accuracy_score(truth, found))
    near(told["balanced_accuracy"], metrics.balanced_accuracy_score(truth, found))
    near(told["kappa"], metrics.cohen_kappa_score(truth, found))
    near(told["matthews"], metrics.matthews_corrcoef(truth, found))
    for average in ("macro", "weighted"):
        wanted = metrics.precision_recall_fscore_support(truth, found, average=average, zero_division=0)
        for name, one in zip(("precision", "recall", "f1"), wanted):
            near(told[average][name], one)
    told = ok_json("regress", "train.csv", "test.csv", "--target", "x0", "--drop", "class", "-k", 3,
                   "-o", "values.csv")["scores"][0]
    truth = table[1::2, 0]
    found = np.loadtxt(tmp_path / "values.csv", delimiter=",", skiprows=1)[:, 1]
    size = max(1, np.abs(truth).max())  # of errors, which have the unit of the values
    near(told["root_mean_square_error"] / size, metrics.root_mean_squared_error(truth, found) / size)
    near(told["mean_absolute_error"] / size, metrics.mean_absolute_error(truth, found) / size)
    near(told["largest_error"] / size, metrics.max_error(truth, found) / size)
    if np.ptp(truth) > 0:
        near(told["r2"], metrics.r2_score(truth, found))
    else:
        assert told["r2"] is None

"""`vicinal kmeans`: its outputs, its classical files, its model, and what the classical tools get wrong."""

import gzip
import json
import lzma
import struct

import numpy as np
import pytest


def assign(rows, centres):
    return ((rows[:, None, :] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)


@pytest.fixture
def blobs(tmp_path):
    generator = np.random.default_rng(3)
    rows = np.concatenate([generator.normal(scale=0.3, size=(40, 3)) + 4 * i for i in range(4)]).astype(np.float32)
    np.save(tmp_path / "blobs.npy", rows)
    return rows


def write_text(path, rows, first=1):
    path.write_text("".join(f"  {i + first} " + " ".join(repr(float(v)) for v in row) + " \n" for i, row in enumerate(rows)))


def write_binary(path, rows):
    path.write_bytes(struct.pack("<ii", *rows.shape) + rows.astype("<f4").tobytes())


def test_npz_and_model(ok_json, tmp_path, blobs):
    told = ok_json("kmeans", "blobs.npy", "-c", 4, "--seed", 1, "-o", "found.npz", "--save-model", "model.vkm")
    found = np.load(tmp_path / "found.npz")
    assert found["labels"].shape == (160,) and found["centres"].shape == (4, 3)
    assert (assign(blobs.astype(float), found["centres"]) == found["labels"]).all()
    assert told["sizes"] == np.bincount(found["labels"], minlength=4).tolist()
    inertia = ((blobs.astype(float) - found["centres"][found["labels"]]) ** 2).sum()
    assert not abs(told["inertia"] - inertia) > 1e-12 * inertia
    again = ok_json("kmeans", "blobs.npy", "--model", "model.vkm", "-o", "again.npz")
    assert told["model"] == "model.vkm" and again["inertia"] == told["inertia"]
    assert (np.load(tmp_path / "again.npz")["labels"] == found["labels"]).all()


def test_same_bytes_for_any_number_of_threads(ok, tmp_path, blobs):
    written = set()
    for threads in (1, 2, 3, 7):
        ok("kmeans", "blobs.npy", "-c", 5, "--threads", threads, "-o", "found.npz")
        written.add((tmp_path / "found.npz").read_bytes())
    assert len(written) == 1


@pytest.mark.parametrize("kind", ["text", "binary"])
def test_classical_files(ok, tmp_path, blobs, kind):
    (write_text if kind == "text" else write_binary)(tmp_path / "blobs.txt", blobs)
    ok("kmeans", "blobs.txt", "-c", 4, "--init", "first-k", "--stop", "classical", "-o", "blobs")
    centres = np.loadtxt(tmp_path / "blobs.cluster_centres")
    members = np.loadtxt(tmp_path / "blobs.membership", dtype=int)
    assert centres.shape == (4, 4) and (centres[:, 0] == range(4)).all()
    assert members.shape == (160, 2) and (members[:, 0] == range(160)).all()
    ok("kmeans", "blobs.npy", "-c", 4, "--init", "first-k", "--stop", "classical", "-o", "same")
    assert (tmp_path / "same.membership").read_text() == (tmp_path / "blobs.membership").read_text()
    assert (tmp_path / "same.cluster_centres").read_text() == (tmp_path / "blobs.cluster_centres").read_text()


# The classical tools cut lines at 1,023 characters.
def test_long_lines(ok_json, tmp_path):
    rows = np.random.default_rng(1).normal(size=(30, 400))
    write_text(tmp_path / "long.txt", rows)
    np.save(tmp_path / "long.npy", rows)
    told = [ok_json("kmeans", name, "-c", 3, "--init", "first-k")["inertia"] for name in ("long.txt", "long.npy")]
    assert told[0] == told[1]


# ... and crash on an object with too few columns.
def test_a_line_with_too_few_columns_is_named(vicinal, tmp_path, blobs):
    write_text(tmp_path / "blobs.txt", blobs)
    lines = (tmp_path / "blobs.txt").read_text().splitlines()
    lines[6] = "7 1.5"
    (tmp_path / "blobs.txt").write_text("\n".join(lines))
    done = vicinal("kmeans", "blobs.txt", "-c", 3)
    assert done.returncode == 3 and "line 7" in done.stderr


# ... and read the ids as data where a file has none: here a first column that does not count is a column.
def test_a_plain_table_keeps_its_first_column(ok_json, tmp_path, blobs):
    np.savetxt(tmp_path / "plain.csv", blobs.astype(float), delimiter=",", fmt="%.17g")
    assert ok_json("kmeans", "plain.csv", "-c", 4, "--init", "first-k")["inertia"] == ok_json(
        "kmeans", "blobs.npy", "-c", 4, "--init", "first-k")["inertia"]


def test_given_centres_and_weights(ok, ok_json, tmp_path, blobs):
    np.save(tmp_path / "centres.npy", blobs[[0, 50, 90, 130]].astype(np.float64))
    np.save(tmp_path / "weights.npy", np.full(160, 2.0))
    plain = ok_json("kmeans", "blobs.npy", "-c", 4, "--init", "centres.npy")
    doubled = ok_json("kmeans", "blobs.npy", "-c", 4, "--init", "centres.npy", "--weights", "weights.npy")
    assert doubled["inertia"] == 2 * plain["inertia"] and doubled["sizes"] == plain["sizes"]
    assert json.loads(ok("kmeans", "blobs.npy", "-c", 4, "--explain", "--json"))["plan"]["memory_bytes"] > 0


def silhouettes(rows, labels):
    """By the definition, of every row within all rows."""
    distances = np.sqrt(((rows[:, None, :] - rows[None]) ** 2).sum(axis=2))
    found = np.zeros(len(rows))
    for i in range(len(rows)):
        others = [distances[i, labels == c].mean() for c in np.unique(labels) if c != labels[i]]
        own = labels == labels[i]
        if own.sum() > 1 and others:
            a, b = distances[i, own].sum() / (own.sum() - 1), min(others)
            found[i] = (b - a) / max(a, b) if max(a, b) > 0 else 0
    return found


# A mean of n distances of d columns, each with at most d + 3 roundings, n more for their sum and few for the rest: four
# means a row, all below the largest, and their quotient divides by nothing smaller than a; n + d + 8 units are safe.
def tolerance(rows):
    return 8 * (len(rows) + rows.shape[1] + 8) * 2**-53


def test_scan_names_the_best_silhouette(ok, ok_json, vicinal, tmp_path, blobs):
    found = ok_json("kmeans", "blobs.npy", "--scan", "1..6", "--runs", 3)
    scan = found["scan"]
    assert [one["clusters"] for one in scan] == [1, 2, 3, 4, 5, 6]
    assert found["best_clusters"] == 4 and found["silhouette_rows"] == 160
    assert scan[0]["silhouette"] is None  # one cluster has none
    assert scan[1]["inertia"] > scan[3]["inertia"]
    for one in scan[1:]:
        ok("kmeans", "blobs.npy", "-c", one["clusters"], "--runs", 3, "-o", "one.npz")
        written = np.load(tmp_path / "one.npz")
        assert written["inertia"] == one["inertia"]
        wanted = silhouettes(blobs.astype(float), written["labels"]).mean()
        assert not abs(one["silhouette"] - wanted) > tolerance(blobs)
    done = vicinal("kmeans", "blobs.npy", "--scan", "2..6", "--runs", 3)
    assert f"best silhouette {scan[3]['silhouette']:.4f} (of 160 rows) with 4 clusters" in done.stderr
    assert len(done.stdout.splitlines()) == 6 and "silhouette" in done.stdout


def test_scan_without_a_silhouette(ok_json, tmp_path):
    np.save(tmp_path / "equal.npy", np.ones((5, 2)))
    found = ok_json("kmeans", "equal.npy", "--scan", "1..3", "--report", "report.html")
    assert found["best_clusters"] is None
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_report_and_its_silhouette(ok_json, vicinal, tmp_path, blobs):
    told = ok_json("kmeans", "blobs.npy", "-c", 5, "--seed", 3, "-o", "found.npz", "--save-model", "model.vkm", "--report", "report.html")
    labels = np.load(tmp_path / "found.npz")["labels"]
    wanted = silhouettes(blobs.astype(float), labels).mean()
    assert told["report"] == "report.html" and told["silhouette_rows"] == 160
    assert not abs(told["silhouette"] - wanted) > tolerance(blobs)
    page = (tmp_path / "report.html").read_text()
    for section in ("Where the clusters lie", "How well rows fit", "Cluster by cluster", "The way there", "The centers"):
        assert section in page
    # The same clusters by their model: no iterations, so no way there; all else is drawn.
    done = vicinal("kmeans", "blobs.npy", "--model", "model.vkm", "--report", "model.html")
    assert done.returncode == 0 and f"silhouette {told['silhouette']:.4f} of 160 rows" in done.stderr
    page = (tmp_path / "model.html").read_text()
    assert "The way there" not in page and "Where the clusters lie" in page


def test_the_sample_is_one_for_a_seed_and_any_number_of_threads(ok_json, tmp_path):
    np.save(tmp_path / "rows.npy", np.random.default_rng(8).normal(size=(5000, 3)))
    arguments = ("kmeans", "rows.npy", "-c", 6, "--init", "first-k", "--report", "report.html")
    told = [ok_json(*arguments, "--threads", threads) for threads in (1, 2, 3)]
    assert told[0]["silhouette_rows"] == 2000 and len({one["silhouette"] for one in told}) == 1
    assert ok_json(*arguments, "--seed", 1)["silhouette"] != told[0]["silhouette"]


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (7, 1), (3, 2)])
def test_reports_of_very_small_tables(ok, tmp_path, shape):
    np.save(tmp_path / "rows.npy", np.arange(np.prod(shape), dtype=float).reshape(shape) ** 2)
    for clusters in range(1, shape[0] + 1):
        ok("kmeans", "rows.npy", "-c", clusters, "--report", "report.html")
        page = (tmp_path / "report.html").read_text()
        assert "nan" not in page.lower() and "inf," not in page


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
@pytest.mark.parametrize("kind", ["text", "binary"])
def test_packed_classical_files(ok_json, vicinal, tmp_path, blobs, kind, pack):
    (write_text if kind == "text" else write_binary)(tmp_path / "plain", blobs)
    packed = pack((tmp_path / "plain").read_bytes())
    (tmp_path / "packed").write_bytes(packed)
    told = [ok_json("kmeans", name, "-c", 4, "--init", "first-k")["inertia"] for name in ("plain", "packed")]
    assert told[0] == told[1]
    (tmp_path / "cut").write_bytes(packed[: len(packed) // 2])
    done = vicinal("kmeans", "cut", "-c", 4)
    assert done.returncode == 3 and "cut" in done.stderr and "truncated" in done.stderr


def test_reports_and_scans_name_the_rows_of_the_table(vicinal, tmp_path):
    rows = np.random.default_rng(1).normal(size=(4000, 3))
    rows[3501, 2] = np.inf
    np.save(tmp_path / "rows.npy", rows)
    for arguments in (["--scan", "2..4"], ["--report", "report.html"]):
        done = vicinal("kmeans", "rows.npy", *arguments)
        assert done.returncode == 3 and "rows.npy: row 3501, column 2" in done.stderr, done.stderr
    rows[3501, 2] = 0
    np.save(tmp_path / "rows.npy", rows)
    for arguments in (["--scan", "2..4"], ["--report", "report.html", "-o", "found.npz"]):
        done = vicinal("kmeans", "rows.npy", "--memory-limit", "8M", *arguments)
        assert done.returncode == 4 and "silhouettes of 2000 rows" in done.stderr, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.npy"]


def test_models_that_do_not_fit(ok, vicinal, tmp_path, blobs):
    ok("kmeans", "blobs.npy", "-c", 4, "--save-model", "good.vkm")
    good = (tmp_path / "good.vkm").read_bytes()
    np.save(tmp_path / "wide.npy", np.ones((9, 4)))
    ok("kmeans", "wide.npy", "-c", 1, "--save-model", "wide.vkm")
    ok("lof", "blobs.npy", "--save-model", "other.vkm", "--top", 0)
    np.savez(tmp_path / "arrays.vkm", centres=np.zeros((2, 3)))
    (tmp_path / "cut.vkm").write_bytes(good[:-9])
    (tmp_path / "changed.vkm").write_bytes(good[:-200] + bytes([good[-200] ^ 1]) + good[-199:])
    (tmp_path / "empty.vkm").write_bytes(b"")
    before = sorted(tmp_path.iterdir())
    for name, code in (("wide", 2), ("other", 3), ("arrays", 3), ("cut", 3), ("changed", 3), ("empty", 3)):
        done = vicinal("kmeans", "blobs.npy", "--model", f"{name}.vkm", "-o", "found.npz", "--report", "report.html")
        assert done.returncode == code and done.stderr.count("\n") == 1, (name, done.stderr)
        assert code == 2 or f"{name}.vkm" in done.stderr, done.stderr
    done = vicinal("kmeans", "blobs.npy", "--model", "good.vkm", "--save-model", "again.vkm")
    assert done.returncode == 2 and "--save-model" in done.stderr
    done = vicinal("kmeans", "blobs.npy", "-c", 3, "--save-model", "nowhere/model.vkm", "-o", "found.npz")
    assert done.returncode == 3 and "--save-model" in done.stderr
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("scan", ["2", "2..", "..5", "0..3", "5..2", "2..x", "2...5", "2..161", "1..99999999999999999999"])
def test_bad_scans(vicinal, blobs, scan):
    done = vicinal("kmeans", "blobs.npy", "--scan", scan)
    assert done.returncode == 2 and done.stdout == ""
    assert "--scan" in done.stderr and done.stderr.count("\n") == 1


def test_bad_reports_are_refused_before_work(vicinal, tmp_path, blobs):
    (tmp_path / "folder.html").mkdir()
    for path, code in (("report.txt", 2), ("nowhere/report.html", 3), ("folder.html", 3)):
        done = vicinal("kmeans", "blobs.npy", "-c", 3, "-o", "found.npz", "--report", path)
        assert done.returncode == code and "--report" in done.stderr, done.stderr
        assert not (tmp_path / "found.npz").exists()
    for arguments in (["-o", "found.npz"], ["--save-model", "model.vkm"], ["--model", "found.npz"], ["--init", "blobs.npy"]):
        assert vicinal("kmeans", "blobs.npy", "--scan", "2..3", *arguments).returncode == 2


def test_rows_of_weight_zero_are_labelled_and_nothing_else(ok_json, tmp_path, blobs):
    weights = np.ones(160)
    weights[30:50] = 0
    np.save(tmp_path / "weights.npy", weights)
    np.save(tmp_path / "others.npy", blobs[weights > 0])
    told = ok_json("kmeans", "blobs.npy", "-c", 4, "--weights", "weights.npy", "-o", "found.npz")
    alone = ok_json("kmeans", "others.npy", "-c", 4)
    found = np.load(tmp_path / "found.npz")
    assert told["inertia"] == alone["inertia"] and told["iterations"] == alone["iterations"]
    assert sum(told["sizes"]) == 160 and sum(alone["sizes"]) == 140
    assert (assign(blobs.astype(float), found["centres"]) == found["labels"]).all()


def test_parallel_seeding(ok_json, blobs):
    told = [ok_json("kmeans", "blobs.npy", "-c", 4, "--init", "k-means||", "--threads", t, "--seed", 5) for t in (1, 3)]
    assert told[0]["inertia"] == told[1]["inertia"] and told[0]["sizes"] == [40] * 4


def test_cosine_and_its_model(ok_json, tmp_path, blobs):
    told = ok_json("kmeans", "blobs.npy", "-c", 3, "--metric", "cosine", "-o", "found.npz", "--save-model", "model.vkm")
    found = np.load(tmp_path / "found.npz")
    unit = blobs.astype(float) / np.linalg.norm(blobs.astype(float), axis=1, keepdims=True)
    similarity = unit @ found["centres"].T
    assert told["metric"] == "cosine" and (similarity.argmax(axis=1) == found["labels"]).all()
    # Three products and their sum, for 160 rows, of numbers up to 1.
    assert not abs(told["inertia"] - (1 - similarity.max(axis=1)).sum()) > 160 * 8 * 2**-52
    np.save(tmp_path / "longer.npy", blobs * 4)
    again = ok_json("kmeans", "longer.npy", "--model", "model.vkm", "-o", "again.npz")
    assert again["metric"] == "cosine" and again["inertia"] == told["inertia"]
    assert (np.load(tmp_path / "again.npz")["labels"] == found["labels"]).all()


def test_mini_batches_label_all_rows(ok_json, tmp_path, blobs):
    told = ok_json("kmeans", "blobs.npy", "-c", 4, "--batch-size", 32, "--seed", 2, "-o", "found.npz")
    again = ok_json("kmeans", "blobs.npy", "-c", 4, "--batch-size", 32, "--seed", 2, "--threads", 3)
    found = np.load(tmp_path / "found.npz")
    assert told["stopped"] in ("no_improvement", "max_iterations") and told["sizes"] == [40] * 4
    assert told["inertia"] == again["inertia"]
    assert (assign(blobs.astype(float), found["centres"]) == found["labels"]).all()


def test_a_row_of_zeros_has_no_direction(vicinal, tmp_path, blobs):
    blobs[23] = 0
    np.save(tmp_path / "blobs.npy", blobs)
    done = vicinal("kmeans", "blobs.npy", "-c", 3, "--metric", "cosine")
    assert done.returncode == 3 and "row 23 is all zeros" in done.stderr


@pytest.mark.parametrize(
    "arguments, code",
    [
        (["-c", 0], 2), (["-c", 161], 2), (["--scan", "5..2"], 2), (["--stop", "never"], 2), (["--runs", 0], 2),
        (["--tolerance", "-1"], 2), (["--init", "missing.npy"], 3), (["--weights", "blobs.npy"], 3),
        (["--metric", "hamming"], 2), (["--batch-size", "-3"], 2), (["--metric", "cosine", "--stop", "classical"], 2), (["--model", "missing.npz"], 3),
        (["--memory-limit", "4k"], 4), (["--device", "cuda:77"], 5),
    ],
)
def test_refusals(vicinal, blobs, arguments, code):
    done = vicinal("kmeans", "blobs.npy", *arguments)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("vicinal: error: ") and done.stderr.count("\n") == 1


def test_nan_is_named(vicinal, tmp_path, blobs):
    blobs[17, 2] = np.nan
    np.save(tmp_path / "blobs.npy", blobs)
    done = vicinal("kmeans", "blobs.npy", "-c", 3)
    assert done.returncode == 3 and "row 17, column 2" in done.stderr


@pytest.mark.parametrize("name", ["color100", "edge100", "texture100"])
def test_the_classical_data(ok_json, tmp_path, data_folder, name):
    file = data_folder / "image_data" / f"{name}.txt"
    rows = np.loadtxt(file)[:, 1:]
    for k in (2, 4, 8, 16):
        ok_json("kmeans", file, "-c", k, "--init", "first-k", "--stop", "classical", "-o", "found")
        centres, labels = rows[:k].copy(), np.full(len(rows), -1)
        for _ in range(501):
            new = assign(rows, centres)
            changed = (new != labels).mean()
            labels = new
            for c in range(k):
                if (labels == c).any():
                    centres[c] = rows[labels == c].mean(axis=0)
            if not changed > 0.001:
                break
        assert (np.loadtxt(tmp_path / "found.membership", dtype=int)[:, 1] == labels).all()
        # A mean of 100 rows, rounded at each of 100 additions, is within 100 half units of the largest sum.
        assert not np.abs(np.loadtxt(tmp_path / "found.cluster_centres")[:, 1:] - centres).max() > 100 * np.abs(rows).max() * 2**-52


def test_prepared_columns_are_kept_with_the_centres(ok, ok_json, vicinal, tmp_path, model_texts):
    """Scaled columns and texts cluster as scikit-learn's scaler makes them, and a model prepares later rows the same way."""
    generator = np.random.default_rng(3)
    centres = generator.integers(0, 3, 240)
    table = generator.normal(scale=0.1, size=(240, 2)) * [1, 1e5] + centres[:, None] * [1, 3e5]
    words = np.array(["icmp", "tcp", "udp"])[centres]
    lines = [f"{a!r},{t},{b!r}" for (a, b), t in zip(table.tolist(), words)]
    (tmp_path / "rows.csv").write_text("a,kind,b\n" + "\n".join(lines) + "\n")
    (tmp_path / "some.csv").write_text("a,kind,b\n" + "\n".join(lines[:50]).replace("udp", "sctp", 1) + "\n")
    options = ["-c", 3, "--seed", 4, "--categories", "onehot", "--scale", "standard"]
    ok("kmeans", "rows.csv", *options, "-o", "found.npz", "--save-model", "model.vkm")
    made = json.loads(model_texts("model.vkm")["preparation"])
    assert made["scale"] == "standard" and [column["one_hot"] for column in made["columns"]] == [False, True, False]
    assert model_texts("model.vkm")["notes"] == ""
    model = np.load(tmp_path / "found.npz")
    assert model["centres"].shape == (3, 5)
    assert len({(label, kind) for label, kind in zip(model["labels"], words)}) == 3
    scaled = (table - table.mean(axis=0)) / table.std(axis=0)
    for label in range(3):
        np.testing.assert_allclose(model["centres"][label][[0, 4]], scaled[model["labels"] == label].mean(axis=0), rtol=1e-11)
    ok("kmeans", "some.csv", "--model", "model.vkm", "-o", "labels.csv")
    labels = np.loadtxt(tmp_path / "labels.csv", delimiter=",", skiprows=1)[:, 1].astype(int)
    np.testing.assert_array_equal(labels, model["labels"][:50])
    refused = vicinal("kmeans", "some.csv", "--model", "model.vkm", "--scale", "minmax")
    assert refused.returncode == 2 and "--scale" in refused.stderr


def test_known_labels(vicinal, ok, ok_json, tmp_path, small_files):
    table, classes = small_files["train"]
    told = ok_json("kmeans", "train.csv", "--label", "class", "-c", 3, "--seed", 1, "-o", "named.csv")["scores"]
    names = {"adjusted_rand", "normalized_mutual_info", "homogeneity", "completeness", "v_measure"}
    assert told.keys() == names and all(0 < told[name] <= 1 for name in names)
    by_file = ok_json("kmeans", "train.npy", "--labels", "train_labels.npy", "-c", 3, "--seed", 1, "-o", "file.csv")
    assert by_file["scores"] == told
    assert (tmp_path / "named.csv").read_text() == (tmp_path / "file.csv").read_text()
    text = ok("kmeans", "train.csv", "--label", "class", "-c", 3, "--seed", 1, "--report", "report.html")
    assert "adjusted Rand       NMI  homogeneity" in text and f"{told['adjusted_rand']:.6f}" in text
    assert "Clusters and known labels" in (tmp_path / "report.html").read_text()
    assert ok_json("kmeans", "train.npy", "-c", 3)["scores"] is None
    # By a model, and for each number of clusters.
    ok("kmeans", "train.csv", "--label", "class", "-c", 3, "--seed", 1, "--save-model", "model.vkm")
    again = ok_json("kmeans", "train.csv", "--label", "class", "--model", "model.vkm", "-o", "again.csv")
    assert again["scores"] == told and (tmp_path / "again.csv").read_text() == (tmp_path / "named.csv").read_text()
    points = ok_json("kmeans", "train.csv", "--label", "class", "--scan", "2..4", "--seed", 1)["scan"]
    assert points[1]["adjusted_rand"] == told["adjusted_rand"]
    for arguments, part in ((["--labels", "test_labels.npy"], "--labels: test_labels.npy has 30 labels for a table of 120"),
                            (["--label", "class", "--labels", "train_labels.npy"], "--labels: cannot be combined with --label"),
                            (["--label", "kind"], "kind")):
        done = vicinal("kmeans", "train.csv", "--drop", "class", "-c", 3, *arguments)
        assert done.returncode in (2, 3) and part in done.stderr, done.stderr


def test_distances_to_the_centre(ok, tmp_path, small_files):
    table, _ = small_files["train"]
    ok("kmeans", "train.npy", "-c", 4, "-o", "found.npz")
    ok("kmeans", "train.npy", "-c", 4, "-o", "found.csv")
    found = np.load(tmp_path / "found.npz")
    apart = np.sqrt(((table - found["centres"][found["labels"]]) ** 2).sum(axis=1))
    assert not (np.abs(found["distances"] - apart) > 1e-13).any()
    lines = (tmp_path / "found.csv").read_text().splitlines()
    assert lines[0] == "row,label,distance"
    written = np.array([line.split(",") for line in lines[1:]], float)
    assert (written[:, 1] == found["labels"]).all() and (written[:, 2] == found["distances"]).all()
    ok("kmeans", "train.npy", "-c", 4, "--metric", "cosine", "-o", "cosine.npz")
    found = np.load(tmp_path / "cosine.npz")
    units = table / np.linalg.norm(table, axis=1, keepdims=True)
    apart = ((units - found["centres"][found["labels"]]) ** 2).sum(axis=1) / 2
    assert not (np.abs(found["distances"] - apart) > 1e-13).any()

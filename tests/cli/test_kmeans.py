"""`vicinal kmeans`: its outputs, its classical files, its model, and what the classical tools get wrong."""

import json
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
    told = ok_json("kmeans", "blobs.npy", "-c", 4, "--seed", 1, "-o", "found.npz")
    found = np.load(tmp_path / "found.npz")
    assert found["labels"].shape == (160,) and found["centres"].shape == (4, 3)
    assert (assign(blobs.astype(float), found["centres"]) == found["labels"]).all()
    assert told["sizes"] == np.bincount(found["labels"], minlength=4).tolist()
    inertia = ((blobs.astype(float) - found["centres"][found["labels"]]) ** 2).sum()
    assert not abs(told["inertia"] - inertia) > 1e-12 * inertia
    again = ok_json("kmeans", "blobs.npy", "--model", "found.npz", "-o", "again.npz")
    assert again["inertia"] == told["inertia"]
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


def test_given_centres_weights_and_scan(ok, ok_json, tmp_path, blobs):
    np.save(tmp_path / "centres.npy", blobs[[0, 50, 90, 130]].astype(np.float64))
    np.save(tmp_path / "weights.npy", np.full(160, 2.0))
    plain = ok_json("kmeans", "blobs.npy", "-c", 4, "--init", "centres.npy")
    doubled = ok_json("kmeans", "blobs.npy", "-c", 4, "--init", "centres.npy", "--weights", "weights.npy")
    assert doubled["inertia"] == 2 * plain["inertia"] and doubled["sizes"] == plain["sizes"]
    scan = ok_json("kmeans", "blobs.npy", "--scan", "2..5", "--runs", 3)["scan"]
    assert [one["clusters"] for one in scan] == [2, 3, 4, 5]
    assert scan[0]["inertia"] > scan[2]["inertia"]
    assert json.loads(ok("kmeans", "blobs.npy", "-c", 4, "--explain", "--json"))["plan"]["memory_bytes"] > 0


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
    told = ok_json("kmeans", "blobs.npy", "-c", 3, "--metric", "cosine", "-o", "found.npz")
    found = np.load(tmp_path / "found.npz")
    unit = blobs.astype(float) / np.linalg.norm(blobs.astype(float), axis=1, keepdims=True)
    similarity = unit @ found["centres"].T
    assert told["metric"] == "cosine" and (similarity.argmax(axis=1) == found["labels"]).all()
    # Three products and their sum, for 160 rows, of numbers up to 1.
    assert not abs(told["inertia"] - (1 - similarity.max(axis=1)).sum()) > 160 * 8 * 2**-52
    np.save(tmp_path / "longer.npy", blobs * 4)
    again = ok_json("kmeans", "longer.npy", "--model", "found.npz", "-o", "again.npz")
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

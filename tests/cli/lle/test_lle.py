"""vicinal lle: what it writes and tells, on a roll whose parameters are known; pieces; the report; what it refuses."""

import json

import numpy as np
import pytest


@pytest.fixture
def roll(ok):
    ok("generate", "swiss-roll", "-n", 900, "--seed", 3, "-o", "roll.npy", "--parameters", "truth.npy")


@pytest.mark.parametrize("variant, most", [("standard", 0.25), ("modified", 0.02), ("hessian", 0.02), ("ltsa", 0.02)])
def test_a_roll_is_unrolled(ok_json, tmp_path, roll, variant, most):
    told = ok_json("lle", "roll.npy", "--variant", variant, "-o", "points.npy")
    points = np.load(tmp_path / "points.npy")
    truth = np.load(tmp_path / "truth.npy")
    # Height, and arc length of the spiral t (cos t, sin t).
    t = truth[:, 0]
    known = np.column_stack([t * np.sqrt(1 + t * t) + np.arcsinh(t), truth[:, 1]])
    known = known - known.mean(0)
    left = known - points @ (points.T @ known)
    assert ((left**2).sum(0) / (known**2).sum(0)).mean() < most
    assert np.allclose(points.T @ points, np.eye(2), atol=1e-12)
    piece = told["pieces"][0]
    assert told["eigenvalue_sum"] == pytest.approx(sum(s * s for s in piece["singular_values"]), rel=1e-12)
    assert piece["counted"] == 2 and piece["rows"] == 900 and piece["next_singular_value"] > piece["singular_values"][1]
    assert piece["next_eigenvalue"] == piece["next_singular_value"] ** 2 and "next" not in piece and "error" not in told
    assert piece["count"] == "complete" and piece["zeros"] == 0


def test_every_form_of_output_is_the_same(ok, tmp_path, roll):
    for name in ["a.npy", "a.npz", "a.csv"]:
        ok("lle", "roll.npy", "-k", 10, "--dim", 3, "-o", name)
    points = np.load(tmp_path / "a.npy")
    kept = np.load(tmp_path / "a.npz")
    assert np.array_equal(points, kept["embedding"]) and kept["singular_values"].shape == (1, 3)
    assert not kept["piece"].any()
    text = np.loadtxt(tmp_path / "a.csv", delimiter=",", skiprows=1)
    assert np.array_equal(text[:, 1:], points) and (tmp_path / "a.csv").read_text().startswith("row,y0,y1,y2\n")


def test_other_rows_are_placed_among_them(ok, ok_json, tmp_path, roll):
    rows = np.load(tmp_path / "roll.npy")
    np.save(tmp_path / "others.npy", rows[:5] + 1e-9)
    ok("lle", "roll.npy", "-o", "fitted.npy")
    assert ok_json("lle", "roll.npy", "others.npy", "-o", "placed.npy")["queries"] == 5
    fitted = np.load(tmp_path / "fitted.npy")
    assert np.abs(np.load(tmp_path / "placed.npy") - fitted[:5]).max() < 0.05 * np.abs(fitted).max()


def test_pieces_are_told(vicinal, ok_json, tmp_path, roll):
    rows = np.load(tmp_path / "roll.npy")
    rows[600:, 0] += 1000
    np.save(tmp_path / "torn.npy", rows)
    done = vicinal("lle", "torn.npy", "-o", "torn_points.npz")
    assert done.returncode == 0 and "has 2 pieces" in done.stderr
    assert [piece["rows"] for piece in ok_json("lle", "torn.npy")["pieces"]] == [600, 300]
    piece = np.load(tmp_path / "torn_points.npz")["piece"]
    assert (piece[:600] == 0).all() and (piece[600:] == 1).all()
    refused = vicinal("lle", "torn.npy", "--pieces", "refuse")
    assert refused.returncode == 3 and "in 2 pieces" in refused.stderr


def test_closed_classes_are_embedded_apart_and_told(vicinal, ok, ok_json, tmp_path):
    generator = np.random.default_rng(2)
    clusters = [generator.uniform(size=(40, 2)) + [10 * c, 0] for c in range(3)]
    np.save(tmp_path / "clusters.npy", np.vstack([*clusters, [[5.5, 0.5], [15.5, 0.5]]]))
    told = ok_json("lle", "clusters.npy", "-k", 8, "-o", "points.npz")
    assert [piece["rows"] - piece["placed"] for piece in told["pieces"]] == [40, 40, 40] and told["placed_rows"] == 2
    assert all(piece["closed_classes"] == 3 and piece["component"] == 0 and piece["zeros"] == 0 for piece in told["pieces"])
    assert any("closed classes" in warning for warning in told["warnings"])
    assert (np.load(tmp_path / "points.npz")["placed"] == [120, 121]).all()
    done = vicinal("lle", "clusters.npy", "-k", 8, "--report", "report.html")
    assert done.returncode == 0 and "are closed classes" in done.stderr
    assert "closed classes" in (tmp_path / "report.html").read_text()
    refused = vicinal("lle", "clusters.npy", "-k", 8, "--pieces", "refuse")
    assert refused.returncode == 3 and "closed classes of its 1 connected component" in refused.stderr


def test_a_double_eigenvalue_at_the_cut_is_clustered(ok_json, vicinal, tmp_path):
    angle = np.arange(400) * 2 * np.pi / 400
    np.save(tmp_path / "circle.npy", np.column_stack([np.cos(angle), np.sin(angle)]))
    piece = ok_json("lle", "circle.npy", "-k", 6, "--dim", 1)["pieces"][0]
    assert piece["count"] == "clustered" and "none below it was skipped" in piece["count_means"]
    assert "clustered" in vicinal("lle", "circle.npy", "-k", 6, "--dim", 1).stderr
    uncounted = ok_json("lle", "circle.npy", "-k", 6, "--solver", "lanczos")["pieces"][0]
    assert uncounted["counted"] is None and "lanczos computes no factor" in uncounted["count_means"]


def test_the_report(ok, tmp_path, roll):
    ok("lle", "roll.npy", "--variant", "modified", "--parameters", "truth.npy", "--report", "report.html")
    page = (tmp_path / "report.html").read_text()
    # A dot for each row in both pictures, and one for each eigenvalue.
    assert page.count("<circle") == 2 * 900 + 3 and "affine residual" in page and "none was skipped" in page
    for part in ["trustworthiness", "continuity", "Condition of the weights", "Rows as they were", "first parameter"]:
        assert part in page
    assert "<script" not in page and "http://" not in page and "https://" not in page


def test_explain_and_refusals(vicinal, ok, tmp_path, roll):
    plan = json.loads(ok("lle", "roll.npy", "--explain", "--json"))
    assert "direct on the host" in json.dumps(plan)
    for arguments, code, part in [
        (["-k", 900], 2, "k: is 900"),
        (["--dim", 12], 2, "dim: is 12"),
        (["--variant", "best"], 2, "--variant"),
        (["--reg", "-1"], 2, "reg: is -1"),
        (["--reg", "0"], 3, "reg: is 0"),
        (["--memory-limit", "50k"], 4, "memory limit"),
        (["--parameters", "short.npy"], 3, "--parameters"),
        (["-o", "points.txt"], 2, "-o"),
    ]:
        np.save(tmp_path / "short.npy", np.zeros((3, 2)))
        done = vicinal("lle", "roll.npy", *arguments, *([] if "-o" in arguments else ["-o", "out.npy"]))
        assert done.returncode == code and part in done.stderr, (arguments, done.stderr)
        assert not (tmp_path / "out.npy").exists()


def test_quality_is_told(ok, ok_json, roll):
    told = ok_json("lle", "roll.npy", "--quality", "--quality-rows", 100)
    quality = told["quality"]
    assert quality["rows"] == 100 and 0.9 < quality["trustworthiness"] <= 1 and 0.9 < quality["continuity"] <= 1
    assert 1 <= quality["condition"]["median"] <= quality["condition"]["largest"] <= 1001
    assert sum(decade["rows"] for decade in quality["condition"]["decades"]) == 100 and quality["condition"]["infinite"] == 0
    assert ok_json("lle", "roll.npy")["quality"] is None
    piece = told["pieces"][0]
    assert piece["eigenvalues"] == [s * s for s in piece["singular_values"]]
    assert piece["gaps"][1] == pytest.approx(1 - piece["eigenvalues"][1] / piece["next_eigenvalue"])
    assert "trustworthiness" in ok("lle", "roll.npy", "--quality")


def test_without_reg_a_condition_may_be_infinite(ok_json, vicinal, tmp_path):
    rows = np.random.default_rng(4).standard_normal((60, 20))
    np.save(tmp_path / "wide.npy", rows)  # more columns than neighbors: weights are determined
    told = ok_json("lle", "wide.npy", "-k", 6, "--reg", 0, "--quality")
    assert told["quality"]["condition"]["infinite"] == 0
    np.save(tmp_path / "flat.npy", rows[:, :3])
    told = ok_json("lle", "flat.npy", "-k", 6, "--variant", "ltsa", "--reg", 0, "--quality", "--report", "r.html")
    assert told["quality"]["condition"] == {"largest": None, "median": None, "infinite": 60, "decades": []}
    done = vicinal("lle", "flat.npy", "-k", 6, "--reg", 1e-300)
    assert done.returncode == 3 and "reg: is 1e-300, but the neighbors of row 0" in done.stderr


def test_a_model_places_other_rows(ok, ok_json, vicinal, tmp_path, roll):
    rows = np.load(tmp_path / "roll.npy")
    np.save(tmp_path / "others.npy", rows[:40] + 1e-3)
    ok("lle", "roll.npy", "others.npy", "-k", 9, "--variant", "ltsa", "--reg", 0.01, "-o", "placed.npy", "--save-model", "m.vlle")
    told = ok_json("lle", "others.npy", "--model", "m.vlle", "-o", "again.npy")
    assert told["queries"] == 40 and told["rows"] == 900 and told["k"] == 9 and told["variant"] == "ltsa"
    assert np.array_equal(np.load(tmp_path / "placed.npy"), np.load(tmp_path / "again.npy"))
    plan = json.loads(ok("lle", "others.npy", "--model", "m.vlle", "--explain", "--json"))
    assert plan["plan"]["reason"]
    assert "40 rows placed among the 900" in vicinal("lle", "others.npy", "--model", "m.vlle").stderr
    # A model's file is that of an index, too.
    np.save(tmp_path / "wide.npy", np.zeros((3, 4)))
    (tmp_path / "damaged.vlle").write_bytes((tmp_path / "m.vlle").read_bytes()[:-9])
    ok("lof", "roll.npy", "--save-model", "m.vlof")
    for arguments, code, part in [
        (["others.npy", "others.npy", "--model", "m.vlle"], 2, "QUERIES"),
        (["others.npy", "--model", "m.vlle", "-k", 3], 2, "-k: cannot be combined with --model"),
        (["others.npy", "--model", "m.vlle", "--report", "r.html"], 2, "--report: cannot be combined with --model"),
        (["wide.npy", "--model", "m.vlle"], 2, "columns"),
        (["others.npy", "--model", "damaged.vlle"], 3, "damaged.vlle"),
        (["others.npy", "--model", "m.vlof"], 3, "m.vlof"),
        (["others.npy", "--model", "roll.npy"], 3, "roll.npy"),
        (["others.npy", "--model", "none.vlle"], 3, "none.vlle"),
    ]:
        done = vicinal("lle", *arguments, "-o", "out.npy")
        assert done.returncode == code and part in done.stderr, (arguments, done.returncode, done.stderr)
        assert not (tmp_path / "out.npy").exists() and not (tmp_path / "r.html").exists()


def test_labels_color_the_report_and_need_not_be_in_queries(ok, vicinal, tmp_path, small_files):
    ok("lle", "train.csv", "--label", "class", "-k", 10, "--report", "report.html", "--save-model", "m.vlle")
    page = (tmp_path / "report.html").read_text()
    assert all(name in page for name in ["ash", "birch", "cedar"])
    ok("lle", "test.csv", "--label", "class", "--model", "m.vlle", "-o", "a.npy")
    np.savetxt(tmp_path / "bare.csv", small_files["test"][0], delimiter=",", header="x0,x1,x2,x3", comments="")
    ok("lle", "bare.csv", "--model", "m.vlle", "-o", "b.npy")
    assert np.array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))
    done = vicinal("lle", "bare.csv", "--label", "class", "--model", "m.vlle")
    assert done.returncode == 2 and "'bare.csv' has no column 'class' for label" in done.stderr


def test_a_column_that_lives_on_few_rows_is_told(vicinal, ok, tmp_path):
    generator = np.random.default_rng(8)
    # A dense sheet, and a thin thread that leads away from it to a clump.
    sheet = np.column_stack([generator.uniform(0, 30, (1500, 2)), np.zeros(1500)])
    clump = np.array([15, 15, 60]) + generator.normal(scale=0.05, size=(5, 3))
    thread = np.column_stack([np.full(30, 15.0), np.full(30, 15.0), np.linspace(0.5, 59, 30)]) + generator.normal(scale=1e-2, size=(30, 3))
    np.save(tmp_path / "spur.npy", np.vstack([sheet, thread, clump]))
    done = vicinal("lle", "spur.npy", "-k", 12, "--report", "report.html")
    assert done.returncode == 0 and "are concentrated on few rows" in done.stderr, done.stdout
    assert "Beware" in (tmp_path / "report.html").read_text()


BAD_TABLES = {
    "one": np.zeros((1, 3)), "two": np.array([[0.0, 1], [2, 3]]), "nan": np.where(np.eye(40, 3, -7) == 1, np.nan, 1.0),
    "infinite": np.where(np.eye(40, 3, -7) == 1, np.inf, 1.0), "none": np.zeros((0, 3)),
}


@pytest.mark.parametrize("name, code, part", [
    ("one", 2, "k: is 12, but at most 0 of the 1"), ("two", 2, "k: is 12, but at most 1 of the 2"), ("nan", 3, "row 7"),
    ("infinite", 3, "row 7"), ("none", 3, "no rows"),
])
def test_tables_that_cannot_be_embedded(vicinal, tmp_path, name, code, part):
    np.save(tmp_path / "bad.npy", BAD_TABLES[name])
    done = vicinal("lle", "bad.npy", "-o", "out.npy", "--report", "r.html", "--save-model", "m.vlle")
    assert done.returncode == code and part in done.stderr, (done.returncode, done.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.npy"]


@pytest.mark.parametrize("name", ["equal", "twice", "isolated", "line", "integers"])
@pytest.mark.parametrize("variant", ["standard", "modified", "hessian", "hessian_sklearn", "ltsa"])
def test_tables_that_look_bad_are_embedded(ok_json, tmp_path, name, variant):
    generator = np.random.default_rng(6)
    rows = {
        "equal": np.full((150, 3), 7.0),
        "twice": np.repeat(generator.standard_normal((200, 3)), 2, axis=0),
        "isolated": np.vstack([generator.standard_normal((200, 3)), [[1e6, 0, 0]]]),
        "line": np.outer(np.arange(180.0), [1, 2, 3]),
        "integers": generator.integers(0, 3, (250, 3)).astype(float),
    }[name]
    np.save(tmp_path / "rows.npy", rows)
    told = ok_json("lle", "rows.npy", "-k", 8, "--variant", variant, "-o", "points.npz", "--quality", "--report", "r.html")
    kept = np.load(tmp_path / "points.npz")
    assert np.isfinite(kept["embedding"]).all() and sum(piece["rows"] for piece in told["pieces"]) == len(rows)
    for p in range(len(told["pieces"])):
        points = kept["embedding"][(kept["piece"] == p) & ~np.isin(np.arange(len(rows)), kept["placed"])]
        assert np.allclose(points.T @ points, np.eye(2), atol=1e-12) and np.abs(points.sum(0)).max() <= 1e-12
    assert 0 <= told["quality"]["trustworthiness"] <= 1

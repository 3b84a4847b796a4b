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
    assert told["error"] == pytest.approx(sum(s * s for s in piece["singular_values"]), rel=1e-12)
    assert piece["counted"] == 2 and piece["rows"] == 900 and piece["next"] > piece["singular_values"][1]


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
    assert done.returncode == 0 and "in 2 pieces" in done.stderr
    assert [piece["rows"] for piece in ok_json("lle", "torn.npy")["pieces"]] == [600, 300]
    piece = np.load(tmp_path / "torn_points.npz")["piece"]
    assert (piece[:600] == 0).all() and (piece[600:] == 1).all()
    refused = vicinal("lle", "torn.npy", "--pieces", "refuse")
    assert refused.returncode == 3 and "in 2 pieces" in refused.stderr


def test_the_report(ok, tmp_path, roll):
    ok("lle", "roll.npy", "--variant", "modified", "--parameters", "truth.npy", "--report", "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.count("<circle") == 2 * 900 and "affine residual" in page and "none was skipped" in page
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

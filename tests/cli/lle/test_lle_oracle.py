"""vicinal lle against LAPACK, against scikit-learn, and against what is known of a Swiss roll and an S curve.

The factor A of every variant is built by lle_factor.py from the command's own neighbors, and decomposed by LAPACK.
bench/peers/lle.py does the same at two thousand rows."""
# ctest: COST 40

import warnings

import numpy as np
import pytest
from scipy.spatial import procrustes
from sklearn import datasets
from sklearn.manifold import LocallyLinearEmbedding, trustworthiness
from threadpoolctl import threadpool_limits

import lle_factor

VARIANTS = ["standard", "modified", "hessian", "hessian_sklearn", "ltsa"]
THEIRS = {"standard": "standard", "modified": "modified", "ltsa": "ltsa", "hessian_sklearn": "hessian"}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Matrices this small gain nothing by BLAS's threads, which wait for each other on a busy machine."""
    with threadpool_limits(1):
        yield


def rows_of(name, n=450):
    if name == "curve":
        return datasets.make_s_curve(n, random_state=1)[0]
    if name == "digits":
        # Whole numbers tie: which of two equally far rows is the k-th neighbor is decided by id here, by chance elsewhere.
        digits = datasets.load_digits().data[:n]
        return digits + 1e-3 * np.random.default_rng(0).standard_normal(digits.shape)
    rows = datasets.make_swiss_roll(n, noise=0.5 if name == "noisy" else 0, random_state=1)[0]
    if name == "torn":
        rows[n * 3 // 5:, 0] += 500
    return rows


@pytest.fixture
def embedded(ok, ok_json, tmp_path):
    """Rows to the embedding, what the command tells of it, and its neighbors."""

    def run(rows, *options, k=12):
        np.save(tmp_path / "rows.npy", rows)
        told = ok_json("lle", "rows.npy", "-k", k, *options, "-o", "points.npz")
        kept = np.load(tmp_path / "points.npz")
        ok("knn", "rows.npy", "-k", k, "-o", "graph.npz")
        return kept["embedding"], kept["piece"], told, np.load(tmp_path / "graph.npz")["ids"]

    return run


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["swiss", "curve", "noisy", "torn", "digits"])
def test_equals_lapack(embedded, name, variant):
    rows = rows_of(name)
    points, piece, told, ids = embedded(rows, "--variant", variant, "--solver", "direct")
    factor = lle_factor.factor_of(rows, ids, variant, 2)
    assert len(told["pieces"]) == (2 if name == "torn" else 1)
    for p, one in enumerate(told["pieces"]):
        inside = piece == p
        of_piece = factor[np.any(factor[:, inside] != 0, axis=1)][:, inside]
        for what, ratio in lle_factor.differences(of_piece, points[inside], one).items():
            assert ratio <= 1, (what, ratio)


@pytest.mark.parametrize("name", ["swiss", "curve", "noisy", "digits"])
@pytest.mark.parametrize("variant", THEIRS)
def test_the_same_space_as_scikit_learn(embedded, name, variant):
    if name == "digits" and variant in ("ltsa", "hessian_sklearn"):
        return  # M has more zeros than are asked for: any two of their vectors are right
    rows = rows_of(name)
    points, _, told, _ = embedded(rows, "--variant", variant)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LocallyLinearEmbedding(n_neighbors=12, n_components=2, method=THEIRS[variant], eigen_solver="dense")
        basis = np.linalg.qr(model.fit_transform(rows))[0]
    sine = np.linalg.svd(points - basis @ (basis.T @ points), compute_uv=False)[0]
    # Theirs are eigenvectors of M by LAPACK, good to some eps |M| / gap.
    piece = told["pieces"][0]
    gap = piece["next_eigenvalue"] - piece["singular_values"][1] ** 2
    assert sine <= max(1e-6, 100 * np.finfo(float).eps * piece["norm"] / gap)
    if variant == "standard":
        assert told["eigenvalue_sum"] == pytest.approx(model.reconstruction_error_, abs=1e-13)


# Affine residuals at 2,000 rows: standard as in the table of reference, rounded as there, the others up to twice its figures.
MOST_LEFT = {("swiss", "standard"): 1.25e-2, ("swiss", "modified"): 2e-4, ("swiss", "ltsa"): 5e-5, ("swiss", "hessian"): 2.4e-5,
             ("curve", "standard"): 1.4e-2, ("curve", "modified"): 4e-5, ("curve", "ltsa"): 4e-6, ("curve", "hessian"): 2.4e-5}


@pytest.mark.parametrize("name, variant", MOST_LEFT)
def test_the_surface_is_found(embedded, tmp_path, name, variant):
    rows, t = (datasets.make_swiss_roll if name == "swiss" else datasets.make_s_curve)(2000, random_state=0)
    along = (t * np.sqrt(1 + t * t) + np.arcsinh(t)) / 2 if name == "swiss" else t  # the curve's length
    np.save(tmp_path / "known.npy", np.column_stack([along, rows[:, 1]]))
    points, _, told, _ = embedded(rows, "--variant", variant, "--parameters", "known.npy", "--quality", "--quality-rows", 200)
    assert told["parameters"]["affine_residual"] <= MOST_LEFT[name, variant]
    assert told["quality"]["trustworthiness"] > 0.995 and told["quality"]["continuity"] > 0.995
    assert told["pieces"][0]["counted"] == 2


@pytest.mark.parametrize("name", ["swiss", "noisy", "digits"])
def test_quality_is_scikit_learns(embedded, tmp_path, name):
    rows = rows_of(name)
    known = np.random.default_rng(2).standard_normal((len(rows), 3)) + rows[:, :3]
    np.save(tmp_path / "known.npy", known)
    points, _, told, ids = embedded(rows, "--quality", "--quality-rows", 0, "--parameters", "known.npy")
    quality = told["quality"]
    assert quality["rows"] == len(rows) and quality["k"] == 12
    assert quality["trustworthiness"] == pytest.approx(trustworthiness(rows, points, n_neighbors=12), abs=1e-12)
    assert quality["continuity"] == pytest.approx(trustworthiness(points, rows, n_neighbors=12), abs=1e-12)
    conditions = []
    for i, near in enumerate(ids):
        gram = (rows[near] - rows[i]) @ (rows[near] - rows[i]).T
        conditions.append(np.linalg.cond(gram + 1e-3 * np.trace(gram) * np.eye(12)))
    assert quality["condition"]["largest"] == pytest.approx(max(conditions), rel=1e-9)
    assert sum(decade["rows"] for decade in quality["condition"]["decades"]) == len(rows)
    # SciPy's wants as many columns on both sides.
    apart = procrustes(known, np.column_stack([points, np.zeros(len(rows))]))[2]
    assert told["parameters"]["procrustes"] == pytest.approx(apart, abs=1e-12)
    left = np.linalg.lstsq(np.column_stack([np.ones(len(rows)), points]), known, rcond=None)[1]
    assert told["parameters"]["columns"] == pytest.approx(left / ((known - known.mean(0)) ** 2).sum(0), rel=1e-9)

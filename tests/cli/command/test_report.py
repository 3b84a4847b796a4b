"""Reports of the foundation's commands."""

import numpy as np
import pytest
from report_page import check_page


def image_report(ok, folder, arrays):
    for name, array in zip(("train", "train_labels", "test", "test_labels"), arrays):
        np.save(folder / f"{name}.npy", array.reshape(len(array), -1) if array.ndim == 3 else array)
    ok(
        "classify", "train.npy", "test.npy", "--labels", "train_labels.npy", "--test-labels", "test_labels.npy",
        "--image-shape", "28x28", "--report", "report.html",
    )  # fmt: skip
    return folder / "report.html"


def table_report(ok, folder):
    """Class names that would break a page that does not escape, and long ones that would break its layout."""
    generator = np.random.default_rng(2)
    names = ["<script>alert(1)</script>", "a \"quoted\" & 'odd' one", "an extraordinarily long class name without an end", "é"]
    for name, rows in (("train", 200), ("test", 90)):
        codes = generator.integers(0, 4, rows)
        table = generator.normal(size=(rows, 3)) + codes[:, None]
        np.save(folder / f"<b>{name}&.npy", table)
        (folder / f"{name}.txt").write_text("".join(names[code] + "\n" for code in codes))
    ok(
        "classify", "<b>train&.npy", "<b>test&.npy", "--labels", "train.txt", "--test-labels", "test.txt", "-k", 12,
        "--weights", "distance", "--report", "report.html",
    )  # fmt: skip
    return folder / "report.html"


def neighbors_report(ok, folder):
    """Pictures, and equal rows: pairs at distance 0."""
    images = np.random.default_rng(3).integers(0, 256, (150, 5, 4), dtype=np.uint8)
    images[7] = images[3]
    np.save(folder / "<b>rows&.npy", images)
    ok("knn", "<b>rows&.npy", "-k", 6, "--report", "report.html")
    return folder / "report.html"


def radius_report(ok, folder):
    """Some rows have no neighbors, and one has most of them."""
    generator = np.random.default_rng(3)
    np.save(folder / "table.npy", generator.normal(size=(300, 2)))
    np.save(folder / "queries.npy", generator.normal(size=(90, 2)) * 3)
    ok("radius", "table.npy", "queries.npy", "-r", 0.7, "--report", "report.html")
    return folder / "report.html"


def contents_report(ok, folder):
    """Names that would break a page that does not escape, and values that are not finite: none is lost."""
    table = np.random.default_rng(13).normal(size=(90, 6)) * [1, 1e9, 1e-9, 0, 1, 1]
    table[3, 4], table[5, 5] = np.nan, np.inf
    np.save(folder / "<i>rows&.npy", table)
    ok("info", "<i>rows&.npy", "--image-shape", "2x3", "--report", "report.html")
    return folder / "report.html"


@pytest.mark.parametrize("make", [table_report, neighbors_report, radius_report, contents_report])
def test_report(ok, tmp_path, make):
    check_page(make(ok, tmp_path), tmp_path)


def test_report_of_images(ok, tmp_path, fashion):
    check_page(image_report(ok, tmp_path, fashion), tmp_path)

"""The report of `vicinal kmeans`."""

import numpy as np
import pytest
from report_page import check_page


def clusters_report(ok, folder):
    """Column names and a file name that would break a page that does not escape, and long ones."""
    generator = np.random.default_rng(4)
    rows = np.concatenate([generator.normal(size=(60, 7)) + 5 * i for i in range(4)])
    names = ["<script>alert(1)</script>", "a & b", "it's", "an extraordinarily long column name without an end", "é", "f", "g"]
    quoted = ['"' + name + '"' for name in names]
    lines = [",".join(quoted)] + [",".join(repr(float(value)) for value in row) for row in rows]
    (folder / "<b>rows&.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ok("kmeans", "<b>rows&.csv", "--scan", "1..9", "--report", "report.html")
    return folder / "report.html"


def many_clusters_report(ok, folder):
    """More clusters than numbers have room, more rows than the sample, and columns of very different size."""
    generator = np.random.default_rng(5)
    np.save(folder / "many.npy", generator.normal(size=(3000, 30)) * np.logspace(-3, 9, 30))
    ok("kmeans", "many.npy", "-c", 60, "--max-iterations", 100, "--report", "report.html")
    return folder / "report.html"


@pytest.mark.parametrize("make", [clusters_report, many_clusters_report])
def test_report(ok, tmp_path, make):
    check_page(make(ok, tmp_path), tmp_path)

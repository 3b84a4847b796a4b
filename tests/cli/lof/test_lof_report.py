"""The report of `vicinal lof`."""

import numpy as np
import pytest
from report_page import check_page


def outliers_report(ok, folder):
    """Column names, labels and a file name that would break a page, and scores over many magnitudes, some infinite."""
    generator = np.random.default_rng(6)
    rows = np.concatenate([generator.normal(size=(2500, 7)) * np.logspace(-6, 6, 7), np.ones((40, 7)), np.full((3, 7), 1e9)])
    names = ["<script>alert(1)</script>", "a & b", "it's", "an extraordinarily long column name without an end", "é", "f", "g"]
    kinds = ["<i>good</i>", "a \"quoted\" & 'odd' one", "an-extraordinarily-long-class-name-without-an-end", "é"]
    quote = lambda text: '"' + text.replace('"', '""') + '"'
    lines = [",".join(map(quote, names + ["kind"]))]
    lines += [",".join([repr(float(v)) for v in row] + [quote(kinds[i % 4])]) for i, row in enumerate(rows)]
    (folder / "<b>rows&.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ok("lof", "<b>rows&.csv", "--label", "kind", "--normal", kinds[2], "--duplicates", "inf", "--report", "report.html")
    return folder / "report.html"


def graph_outliers_report(ok, folder):
    """No table: nothing to draw but the scores."""
    np.save(folder / "rows.npy", np.random.default_rng(7).normal(size=(400, 3)))
    ok("knn", "rows.npy", "-k", 9, "-o", "graph.npz")
    ok("lof", "--graph", "graph.npz", "--score", "loop", "--report", "report.html")
    return folder / "report.html"


@pytest.mark.parametrize("make", [outliers_report, graph_outliers_report])
def test_report(ok, tmp_path, make):
    check_page(make(ok, tmp_path), tmp_path)

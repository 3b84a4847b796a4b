"""The report of `vicinal regress`."""

import numpy as np
import pytest
from report_page import check_page


def regression_report(ok, folder):
    """Target names that would break a page that does not escape, values of very different size, and no truth for rows alone."""
    generator = np.random.default_rng(12)
    names = ["x", "<script>alert(1)</script>", "an-extraordinarily-long-target-name-without-an-end-that-goes-on", "y"]
    for name, rows in (("train", 200), ("test", 60)):
        table = generator.normal(size=(rows, 4)) * [1, 1e9, 1e-9, 1]
        lines = [",".join(names)] + [",".join(repr(float(value)) for value in row) for row in table]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    ok("regress", "train.csv", "test.csv", "--target", names[2], "--target", names[1], "-r", 0.05, "--outlier", 0,
       "--report", "report.html")  # fmt: skip
    return folder / "report.html"


@pytest.mark.parametrize("make", [regression_report])
def test_report(ok, tmp_path, make):
    check_page(make(ok, tmp_path), tmp_path)

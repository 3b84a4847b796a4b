"""A pytest plugin (suite.py passes it): runs scikit-learn's own tests as they are or with vicinal's patch, which
VICINAL_SUITE says, and writes the outcome of each test, and the patch's report, to a file, which VICINAL_OUTCOMES names.
"""

import json
import os
import pathlib

OUTCOMES = {}


def pytest_configure(config):
    if os.environ["VICINAL_SUITE"] == "patched":
        import vicinal

        vicinal.patch_sklearn(device="cpu")


def pytest_runtest_logreport(report):
    expected = hasattr(report, "wasxfail")
    if report.when == "call" or report.skipped:
        OUTCOMES[report.nodeid] = ("x" if expected else "") + report.outcome
        if expected and report.skipped:
            OUTCOMES[report.nodeid] = "xfailed"
    elif report.failed:
        OUTCOMES[report.nodeid] = "error"


def pytest_sessionfinish(session, exitstatus):
    calls = {}
    if os.environ["VICINAL_SUITE"] == "patched":
        import vicinal

        calls = vicinal.patch_report()
    pathlib.Path(os.environ["VICINAL_OUTCOMES"]).write_text(json.dumps({"outcomes": OUTCOMES, "calls": calls}))

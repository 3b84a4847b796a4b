"""A pytest plugin (suite.py passes it): runs scikit-learn's own tests as they are ("stock") or with vicinal's patch on
a device, which VICINAL_SUITE says, and writes the outcome of each test, and the patch's report, to a file, which
VICINAL_OUTCOMES names.
"""

import json
import os
import pathlib

DEVICE = os.environ["VICINAL_SUITE"]
OUTCOMES = {}


def pytest_configure(config):
    if DEVICE != "stock":
        import vicinal

        vicinal.patch_sklearn(device=DEVICE)


def pytest_collectreport(report):
    if report.failed:
        OUTCOMES[report.nodeid] = "not collected"


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
    if DEVICE != "stock":
        import vicinal

        calls = vicinal.patch_report()
    # Whole or not at all: the file says that this has been run.
    written = pathlib.Path(os.environ["VICINAL_OUTCOMES"])
    part = written.with_suffix(".part")
    part.write_text(json.dumps({"outcomes": OUTCOMES, "calls": calls}))
    part.rename(written)

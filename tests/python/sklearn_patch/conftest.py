"""Tests that need scikit-learn 1.9, which `./dev` installs in an environment of its own (.venv-sklearn)."""

import pytest

try:
    import sklearn

    VERSION = sklearn.__version__
except ModuleNotFoundError:
    VERSION = "none"


def pytest_collection_modifyitems(items):
    if VERSION.startswith("1.9."):
        return
    skip = pytest.mark.skip(reason=f"scikit-learn 1.9 is needed, this Python has {VERSION}; ./dev test installs it")
    for item in items:
        item.add_marker(skip)


@pytest.fixture(autouse=True)
def unpatched():
    """Each test begins and ends with scikit-learn as it is, and counts from 0."""
    import vicinal as vc
    from vicinal._hooks import registry

    registry.reset_report()
    yield
    vc.unpatch_sklearn()
    assert registry._users == 0 and not registry._placed

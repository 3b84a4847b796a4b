"""scikit-learn's own checks of estimators, on every class with the parameters with which it checks its own. A check may
fail only where scikit-learn expects that of its class; of SpectralCoclustering it expects nine failures, ours has none.
"""

# ctest: COST 25

from conftest import NAMES, stock, vs
from sklearn.utils._test_common.instance_generator import (
    PER_ESTIMATOR_CHECK_PARAMS,
    _construct_instances,
    _get_expected_failed_checks,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

CHECKED = NAMES if vs else []
for name in CHECKED:
    if stock(name) in PER_ESTIMATOR_CHECK_PARAMS:
        PER_ESTIMATOR_CHECK_PARAMS[getattr(vs, name)] = PER_ESTIMATOR_CHECK_PARAMS[stock(name)]

ADDED = ("device", "threads", "memory_limit")
ESTIMATORS = [
    getattr(vs, name)(**instance.get_params(deep=False))
    for name in CHECKED
    for instance in _construct_instances(stock(name))
]


def expected(estimator):
    if isinstance(estimator, vs.SpectralCoclustering):
        return {}
    given = {name: value for name, value in estimator.get_params(deep=False).items() if name not in ADDED}
    return _get_expected_failed_checks(stock(type(estimator).__name__)(**given))


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
def test_check(estimator, check):
    check(estimator)

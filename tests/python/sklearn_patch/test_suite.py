"""scikit-learn's own tests come out the same with the patch, test by test (suite.py)."""
# Its processes compute on two cores.
# ctest: COST 200
# ctest: PROCESSORS 2
# ctest: TIMEOUT 2400

import suite


def test_scikit_learns_own_tests(capsys):
    compared = suite.compare(suite.GROUPS, [42], known=True)[42]
    with capsys.disabled():
        print("", *suite.summary(compared, seed=42), sep="\n")
    differences = [sentence for group in compared for sentence in group.differences()]
    assert not differences, "\n".join(differences)
    answers = sum(group.answers() for group in compared if group.name != "common")
    assert answers >= suite.LEAST_ANSWERS, answers

"""scikit-learn's own tests, as they are and with vicinal's patch, compared test by test, without a list of exceptions.

`./dev test` runs the groups of `GROUPS` with the seed 42. By hand, with the package on PYTHONPATH and the Python of
.venv-sklearn: suite.py --seed 0, and --consumers for what uses these classes within scikit-learn.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import NamedTuple


class Group(NamedTuple):
    """Tests, and what comes of them in scikit-learn 1.9.1, whose own number guards against tests that are not found."""

    paths: tuple
    outcomes: dict
    selection: str = ""


GROUPS = {
    "neighbors": Group(("neighbors",), {"passed": 1919, "skipped": 51}),
    "k_means": Group(("cluster/tests/test_k_means.py",), {"passed": 282}),
    "locally_linear": Group(("manifold/tests/test_locally_linear.py",), {"passed": 24}),
    "reduction": Group(("metrics/tests/test_pairwise_distances_reduction.py",), {"passed": 131}),
    "bicluster": Group(("cluster/tests/test_bicluster.py",), {"passed": 21}),
    "common": Group(
        ("tests/test_common.py",),
        # With pandas and polars, which twelve of them ask for.
        {"passed": 877, "skipped": 37, "xfailed": 17, "xpassed": 2},
        "NearestNeighbors or KNeighbors or RadiusNeighbors or LocalOutlierFactor or LocallyLinear or KMeans or "
        "SpectralCoclustering or NearestCentroid",
    ),
}
#: Without the estimator checks: vicinal answers at least so many calls.
LEAST_ANSWERS = 11_000

CONSUMERS = (
    *(f"cluster/tests/test_{name}.py" for name in ("dbscan", "optics", "hdbscan", "mean_shift", "birch")),
    *(f"cluster/tests/test_{name}.py" for name in ("affinity_propagation", "bisect_k_means", "spectral")),
    "impute/tests/test_knn.py",
    "feature_selection/tests/test_mutual_info.py",
    "semi_supervised",
    "preprocessing/tests/test_discretization.py",
    "metrics/tests/test_pairwise.py",
    *(f"manifold/tests/test_{name}.py" for name in ("isomap", "t_sne", "spectral_embedding")),
    "metrics/cluster",
    *(f"tests/test_{name}.py" for name in ("multiclass", "docstring_parameters", "public_functions")),
    "inspection/tests/test_permutation_importance.py",
)


def run(group, patched, seed, folder):
    """{"outcomes": {test: outcome}, "calls": report} of a process of its own."""
    import sklearn

    home = pathlib.Path(sklearn.__file__).parent
    written = pathlib.Path(tempfile.mkstemp(suffix=".json", dir=folder)[1])
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "outcomes"]
    command += ["-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={home.parent}"]
    if group.selection:
        command += ["-k", group.selection]
    environment = {
        **os.environ,
        "SKLEARN_RUN_FLOAT32_TESTS": "1",
        "SKLEARN_TESTS_GLOBAL_RANDOM_SEED": str(seed),
        "VICINAL_SUITE": "patched" if patched else "stock",
        "VICINAL_OUTCOMES": str(written),
        "PYTHONPATH": os.pathsep.join([str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
    }
    environment.pop("VICINAL_FALLBACK", None)
    done = subprocess.run(
        [*command, *(str(home / path) for path in group.paths)],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode not in (0, 1) or not written.stat().st_size:
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return {**json.loads(written.read_text()), "output": done.stdout}


class Compared(NamedTuple):
    """A group, run twice."""

    name: str
    stock: dict
    patched: dict

    def differences(self):
        """Sentences: what has another outcome, and what has not the outcomes that it has in scikit-learn."""
        left, right = self.stock["outcomes"], self.patched["outcomes"]
        told = [
            f"{test}: {left.get(test, 'not there')}, patched {right.get(test, 'not there')}"
            for test in sorted({*left, *right})
            if left.get(test) != right.get(test)
        ]
        expected = GROUPS[self.name].outcomes if self.name in GROUPS else counted(left)
        if counted(left) != expected:
            told.append(f"{self.name}: {shown(counted(left))} without the patch; expected {shown(expected)}")
        return told

    def answers(self):
        return sum(count["ours"] for count in self.patched["calls"].values())


def counted(outcomes):
    return dict(collections.Counter(outcomes.values()))


def shown(counts):
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))


def compare(groups, seed, workers=2):
    """Each group as it is and patched, by processes at once, those that take longest first."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(workers) as pool:
        running = {
            name: [pool.submit(run, group, patched, seed, folder) for patched in (False, True)]
            for name, group in groups.items()
        }
        return [Compared(name, *(one.result() for one in both)) for name, both in running.items()]


def summary(compared, seed):
    """Lines that begin with "scikit-learn:", which `./dev` prints at its end."""
    for group in compared:
        yield (
            f"scikit-learn: {group.name}, seed {seed}: {shown(counted(group.stock['outcomes']))}; patched "
            f"{shown(counted(group.patched['outcomes']))}; vicinal answered {group.answers()} calls"
        )
    hooks = collections.defaultdict(lambda: [0, 0])
    reasons = collections.Counter()
    for group in compared:
        for name, count in group.patched["calls"].items():
            hooks[name][0] += count["ours"]
            hooks[name][1] += sum(count["stock"].values())
            reasons.update(count["stock"])
    yield "scikit-learn: calls by hook, answered and left: " + ", ".join(
        f"{name} {ours} {stock}" for name, (ours, stock) in sorted(hooks.items())
    )
    for reason, calls in reasons.most_common():
        yield f"left to scikit-learn: {calls} {reason}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, nargs="+", default=[42])
    parser.add_argument("--consumers", action="store_true", help="compare what uses these classes, instead")
    parser.add_argument("--workers", type=int, default=2, help="processes at once [2]")
    given = parser.parse_args()
    groups = {path: Group((path,), {}) for path in CONSUMERS} if given.consumers else GROUPS
    failed = False
    for seed in given.seed:
        compared = compare(groups, seed, given.workers)
        print(*summary(compared, seed), sep="\n")
        for group in compared:
            for sentence in group.differences():
                print(sentence)
                failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()

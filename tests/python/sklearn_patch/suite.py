"""scikit-learn's own tests, as they are and with vicinal's patch, compared test by test, without a list of exceptions.

`./dev test` runs the groups of `GROUPS` with the seed 42 and the patch. What each of their tests does without it is known
from a digest; where anything is otherwise, they are run without it, too, and compared. By hand, with the package on
PYTHONPATH and the Python of .venv-sklearn:

    suite.py --seed 42 0 7 -o sklearn-tests.json   the same groups with other seeds, and a record of what came of them
    suite.py --consumers                           what uses these classes within scikit-learn
    suite.py --all --keep FOLDER                   the whole suite, an hour and more on two cores: folder by folder,
                                                   what is in FOLDER already is not run again
    suite.py --device cuda                         the groups without the estimator checks, with vicinal on a device

On a machine of many cores, --workers 8 --cores 2 runs eight processes that have two cores each.
"""

import argparse
import collections
import concurrent.futures
import datetime
import hashlib
import json
import os
import pathlib
import platform
import queue
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple


class Group(NamedTuple):
    """Tests, and what comes of them in scikit-learn 1.9.1, whose own number guards against tests that are not found."""

    paths: tuple
    outcomes: dict
    digest: str = ""  #: of the outcome of each test with the seed 42
    selection: str = ""


GROUPS = {
    "neighbors": Group(("neighbors",), {"passed": 1919, "skipped": 51}, "db47e2cf018bda550c3c6a195c154b9a"),
    "k_means": Group(("cluster/tests/test_k_means.py",), {"passed": 282}, "e0f110b8bb46ce91131de1567fc5d09c"),
    "locally_linear": Group(
        ("manifold/tests/test_locally_linear.py",), {"passed": 24}, "a0e189ba446b8729b2e2c7007b6d9da6"
    ),
    "reduction": Group(
        ("metrics/tests/test_pairwise_distances_reduction.py",), {"passed": 131}, "a1e48ad74944ced1d697c0fb3b74ff3b"
    ),
    "density": Group(
        ("cluster/tests/test_dbscan.py", "cluster/tests/test_hdbscan.py", "cluster/tests/test_optics.py"),
        {"passed": 299},
        "164db1c03d8e3602c15d6e3300050ea2",
    ),
    "bicluster": Group(("cluster/tests/test_bicluster.py",), {"passed": 21}, "f630eaf8875caa5a06fcbcead3e75dac"),
    "common": Group(
        ("tests/test_common.py",),
        # With pandas and polars, which twelve of them ask for.
        {"passed": 1027, "skipped": 42, "xfailed": 17, "xpassed": 2},
        "b2d25167f3a0f4d08a024d08587fe039",
        "NearestNeighbors or KNeighbors or RadiusNeighbors or LocalOutlierFactor or LocallyLinear or KMeans or "
        "SpectralCoclustering or NearestCentroid or DBSCAN or OPTICS",
    ),
}
#: Without the estimator checks: vicinal answers at least so many calls.
LEAST_ANSWERS = 11_000

CONSUMERS = (
    *(f"cluster/tests/test_{name}.py" for name in ("mean_shift", "birch")),
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


#: Of the sources of tests.
SERVED = re.compile(
    r"Neighbors|KMeans|DBSCAN|OPTICS|LocallyLinear|LocalOutlier|KDTree|BallTree|NearestCentroid|pairwise_distances_argmin"
)


def home():
    """Where scikit-learn is installed, with its tests."""
    import sklearn

    return pathlib.Path(sklearn.__file__).parent


def groups_of(paths):
    return {path: Group((path,), {}) for path in paths}


def whole_suite():
    """Every test of scikit-learn: a group for each folder of tests, and for each file of the general ones. First those
    that name most often what the patch serves."""
    names = collections.Counter()
    for path in home().rglob("test_*.py"):
        group = path if path.parent == home() / "tests" else path.parent
        names[str(group.relative_to(home()))] += len(SERVED.findall(path.read_text(encoding="utf-8")))
    return groups_of(sorted(names, key=lambda group: (-names[group], group)))


class Runner(NamedTuple):
    """How groups are run: on a device, with cores for each process, results in a folder, where they are found again."""

    folder: pathlib.Path
    device: str
    places: queue.SimpleQueue  #: sets of cores that no process has, or empty sets

    def outcomes(self, name, seed, patched):
        how = f"patched-{self.device}" if patched else "stock"
        return self.folder / f"{name.replace('/', '.')}-{seed}-{how}.json"

    def run(self, name, group, seed, patched):
        """{"outcomes": {test: outcome}, "calls": report} of a process of its own, or of an earlier one."""
        written = self.outcomes(name, seed, patched)
        if not written.is_file():
            cores = self.places.get()
            try:
                self._start(group, seed, patched, written, cores)
            finally:
                self.places.put(cores)
        return json.loads(written.read_text())

    def _start(self, group, seed, patched, written, cores):
        command = ["taskset", "-c", ",".join(map(str, cores))] if cores else []
        command += [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "outcomes"]
        command += ["-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={home().parent}"]
        command += ["--continue-on-collection-errors"]
        if group.selection:
            command += ["-k", group.selection]
        environment = {
            **os.environ,
            "SKLEARN_RUN_FLOAT32_TESTS": "1",
            "SKLEARN_TESTS_GLOBAL_RANDOM_SEED": str(seed),
            "VICINAL_SUITE": self.device if patched else "stock",
            "VICINAL_OUTCOMES": str(written),
            "PYTHONPATH": os.pathsep.join([str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
        }
        environment.pop("VICINAL_FALLBACK", None)
        done = subprocess.run(
            [*command, *(str(home() / path) for path in group.paths)],
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        # All passed, some failed, and none selected.
        if done.returncode not in (0, 1, 5) or not written.is_file():
            raise RuntimeError(f"{group.paths}: pytest ended with {done.returncode}:\n{done.stdout[-4000:]}")


class Compared(NamedTuple):
    """A group, run twice."""

    name: str
    stock: dict
    patched: dict
    known: bool = False  #: scikit-learn itself was not run: the digest says that it does the same

    def differences(self):
        """Sentences: what has another outcome, and what has not the outcomes that it has in scikit-learn."""
        left, right = self.stock["outcomes"], self.patched["outcomes"]
        sentences = [
            f"{test}: {left.get(test, 'not there')}, patched {right.get(test, 'not there')}"
            for test in sorted({*left, *right})
            if left.get(test) != right.get(test)
        ]
        expected = GROUPS[self.name].outcomes if self.name in GROUPS else counted(left)
        if counted(left) != expected:
            sentences.append(f"{self.name}: {shown(counted(left))} without the patch; expected {shown(expected)}")
        return sentences

    def answers(self):
        return sum(count["ours"] for count in self.patched["calls"].values())

    def left(self):
        return sum(sum(count["stock"].values()) for count in self.patched["calls"].values())


def digest(outcomes):
    return hashlib.sha256(json.dumps(outcomes, sort_keys=True).encode()).hexdigest()[:32]


def counted(outcomes):
    return dict(sorted(collections.Counter(outcomes.values()).items()))


def shown(counts):
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())) or "none"


def sets_of_cores(workers, cores):
    """For each worker other cores, or with 0 cores none of its own."""
    places, there = queue.SimpleQueue(), sorted(os.sched_getaffinity(0))
    for at in range(workers):
        places.put(there[at * cores : (at + 1) * cores] if cores else [])
    return places


def compare(groups, seeds, workers=2, cores=0, device="cpu", keep=None, known=False):
    """{seed: [each group as it is and patched]}, by processes at once, in the order of the groups. With `known`, where
    the patched outcomes have the group's digest, scikit-learn itself is not run."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(workers) as pool:
        runner = Runner(pathlib.Path(keep or folder), device, sets_of_cores(workers, cores))

        def start(patched, keys):
            return {key: pool.submit(runner.run, key[0], groups[key[0]], key[1], patched) for key in keys}

        keys = [(name, seed) for name in groups for seed in seeds]
        patched = start(True, keys)
        stock = {} if known else start(False, keys)
        if known:
            stock = start(False, [key for key in keys if not is_known(groups[key[0]], patched[key].result())])
        done = {
            key: Compared(key[0], stock.get(key, patched[key]).result(), patched[key].result(), key not in stock)
            for key in keys
        }
    return {seed: [done[name, seed] for name in groups] for seed in seeds}


def is_known(group, run):
    found = digest(run["outcomes"])
    if found != group.digest:
        print(f"{group.paths}: the outcomes with the patch have the digest {found}; known is {group.digest}")
    return found == group.digest


def hooks_of(compared):
    """By hook: [calls that vicinal answered, calls that were left]."""
    hooks = collections.defaultdict(lambda: [0, 0])
    for group in compared:
        for name, count in group.patched["calls"].items():
            hooks[name][0] += count["ours"]
            hooks[name][1] += sum(count["stock"].values())
    return dict(sorted(hooks.items()))


def summary(compared, seed):
    """Lines that begin with "scikit-learn:", which `./dev` prints at its end."""
    reasons = collections.Counter()
    for group in compared:
        yield (
            f"scikit-learn: {group.name}, seed {seed}: {shown(counted(group.stock['outcomes']))}"
            f"{' (known)' if group.known else ''}; patched "
            f"{shown(counted(group.patched['outcomes']))}; vicinal answered {group.answers()} calls"
        )
        for count in group.patched["calls"].values():
            reasons.update(count["stock"])
    yield "scikit-learn: calls by hook, answered and left: " + ", ".join(
        f"{name} {ours} {stock}" for name, (ours, stock) in hooks_of(compared).items()
    )
    for reason, calls in reasons.most_common():
        yield f"left to scikit-learn: {calls} {reason}"


def record(compared, seed):
    """What a file of bench/results keeps of a run."""
    return {
        "seed": seed,
        "groups": [
            {
                "name": group.name,
                "stock": counted(group.stock["outcomes"]),
                "patched": counted(group.patched["outcomes"]),
                "answered": group.answers(),
                "left": group.left(),
                "differences": group.differences(),
            }
            for group in compared
        ],
        "hooks": {name: {"answered": ours, "left": stock} for name, (ours, stock) in hooks_of(compared).items()},
    }


def heading(given):
    """Of such a file: date, machine, versions."""
    import numpy
    import sklearn

    return {
        "date": datetime.date.today().isoformat(),
        "commit": given.commit,
        "machine": {"cores": os.cpu_count(), "system": platform.platform()},
        "device": given.device,
        "python": platform.python_version(),
        "scikit-learn": sklearn.__version__,
        "numpy": numpy.__version__,
    }


def selected(given):
    """The groups that the arguments name; of the whole suite, with --kept, those that have been run."""
    groups = GROUPS
    if given.consumers or given.all:
        groups = groups_of(CONSUMERS) if given.consumers else whole_suite()
    elif given.device != "cpu":
        groups = {name: group for name, group in GROUPS.items() if name != "common"}
    if given.group:
        groups = {name: groups[name] for name in given.group}
    if given.kept:
        outcomes = Runner(pathlib.Path(given.keep), given.device, None).outcomes
        asked = [(seed, patched) for seed in given.seed for patched in (False, True)]
        groups = {
            name: group for name, group in groups.items() if all(outcomes(name, *one).is_file() for one in asked)
        }
    return groups


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, nargs="+", default=[42])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--consumers", action="store_true", help="compare what uses these classes, instead")
    what.add_argument("--all", action="store_true", help="compare the whole suite, instead")
    parser.add_argument("--group", nargs="+", help="of these groups, only some")
    parser.add_argument("--list", action="store_true", help="print the groups, and run nothing")
    parser.add_argument("--device", default="cpu", help="where vicinal answers [cpu]")
    parser.add_argument("--workers", type=int, default=2, help="processes at once [2]")
    parser.add_argument("--cores", type=int, default=0, help="of its own for each process; 0: all have all [0]")
    parser.add_argument("--keep", metavar="FOLDER", help="keeps outcomes there, and takes those that are there")
    parser.add_argument("--kept", action="store_true", help="runs nothing: reports what --keep's folder has whole")
    parser.add_argument("--commit", default="unknown", help="of vicinal, for the record")
    parser.add_argument("-o", "--output", metavar="FILE", help="writes a record in JSON")
    given = parser.parse_args()
    if given.kept and not given.keep:
        parser.error("--kept needs --keep FOLDER")
    if given.keep:
        pathlib.Path(given.keep).mkdir(parents=True, exist_ok=True)
    groups = selected(given)
    if given.list:
        print(*groups, sep="\n")
        return
    done = compare(groups, given.seed, given.workers, given.cores, given.device, given.keep)
    failed = False
    for seed, compared in done.items():
        print(*summary(compared, seed), sep="\n")
        for group in compared:
            for sentence in group.differences():
                print(sentence)
                failed = True
    if given.output:
        runs = [record(compared, seed) for seed, compared in done.items()]
        text = json.dumps({**heading(given), "runs": runs}, indent=1)
        pathlib.Path(given.output).write_text(text + "\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()

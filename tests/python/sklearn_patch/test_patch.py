"""The patch of scikit-learn: what it replaces and for whom, other patchers and versions, and the ways in."""

# ctest: COST 40

import concurrent.futures
import os
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest
from conftest import LABELS, TABLE, answers, attributes, left, models, run, used

import vicinal as vc


# ---- places ---------------------------------------------------------------------------------------------------------


def test_every_attribute_is_as_it_was():
    before = attributes()
    vc.patch_sklearn(threads=1)
    patched = attributes()
    assert all(now is not old for now, old in zip(patched, before, strict=True))
    with vc.patched_sklearn():
        vc.patch_sklearn(device="cpu")
        assert all(now is old for now, old in zip(attributes(), patched, strict=True))
    vc.unpatch_sklearn()
    assert all(now is old for now, old in zip(attributes(), before, strict=True))
    vc.unpatch_sklearn()
    with pytest.raises(ZeroDivisionError), vc.patched_sklearn():
        _ = 1 / 0
    assert all(now is old for now, old in zip(attributes(), before, strict=True))


def everything():
    """Every attribute of scikit-learn's and joblib's modules, and of their classes."""
    kept = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in ("sklearn", "joblib"):
            continue
        for attribute, value in list(vars(module).items()):
            kept[name, attribute] = value
            if isinstance(value, type):
                kept |= {(name, attribute, member): one for member, one in vars(value).items()}
    return {key: value for key, value in kept.items() if key[1] != "__warningregistry__"}


def test_nothing_else_changes():
    """Models are fitted and used with the patch, once before, which loads and fills what scikit-learn keeps."""
    for _ in range(2):
        before = everything()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            vc.patch_sklearn(threads=1)
            for model in models().values():
                used(model.fit(TABLE, LABELS))
            vc.unpatch_sklearn()
    after = everything()
    assert len(before) > 10_000 and set(after) == set(before)
    assert [key for key, value in before.items() if after[key] is not value] == []


def test_classes_stay_scikit_learns():
    from sklearn import neighbors

    names = {name: getattr(neighbors, name) for name in neighbors.__all__}
    with vc.patched_sklearn():
        assert all(getattr(neighbors, name) is kind for name, kind in names.items())
        model = neighbors.NearestNeighbors().fit(TABLE)
        assert isinstance(model._tree, neighbors.KDTree) and type(model) is names["NearestNeighbors"]


def test_contexts_and_other_threads():
    from sklearn.neighbors import NearestNeighbors

    model = NearestNeighbors(algorithm="brute").fit(TABLE)

    def in_another_thread():
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(model.kneighbors, TABLE[:3]).result()

    with vc.patched_sklearn():
        model.kneighbors(TABLE[:3])
        assert answers("ArgKmin.compute") == 1
        in_another_thread()
        assert answers("ArgKmin.compute") == 1
    vc.patch_sklearn()
    in_another_thread()
    assert answers("ArgKmin.compute") == 2
    from vicinal._hooks import registry

    with registry.active(None):
        model.kneighbors(TABLE[:3])
    assert answers("ArgKmin.compute") == 2 and left("ArgKmin.compute") == {}


def test_many_threads_install_and_remove():
    from sklearn.neighbors import NearestNeighbors

    before = attributes()
    expected = NearestNeighbors(algorithm="brute").fit(TABLE).kneighbors(return_distance=False)
    failed = []

    def work(seed):
        for turn in range(25):
            with vc.patched_sklearn(threads=1):
                found = NearestNeighbors(algorithm=("brute", "kd_tree")[(seed + turn) % 2]).fit(TABLE).kneighbors()
                if not np.array_equal(found[1], expected):
                    failed.append((seed, turn))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert all(now is old for now, old in zip(attributes(), before, strict=True))


def test_workers_of_scikit_learn():
    """Threads and processes that scikit-learn's Parallel starts compute with the settings of who started them."""
    from sklearn.neighbors import NearestNeighbors
    from sklearn.utils.parallel import Parallel, delayed

    from vicinal._hooks.registry import current

    with vc.patched_sklearn(device="cpu"):
        model = NearestNeighbors(algorithm="kd_tree", n_jobs=2).fit(TABLE)
        model.kneighbors()
        assert answers("KDTree.query") == 2
        for backend in ("threading", "loky"):
            found = Parallel(n_jobs=2, backend=backend)(delayed(current)() for _ in range(2))
            assert [settings.device for settings in found] == ["cpu", "cpu"], backend
    found = Parallel(n_jobs=2, backend="loky")(delayed(current)() for _ in range(2))
    assert found == [None, None]


def test_workers_share_the_threads():
    from sklearn.utils.parallel import Parallel, delayed

    from vicinal._hooks.registry import current

    with vc.patched_sklearn(threads=1):
        found = Parallel(n_jobs=2, backend="threading")(delayed(current)() for _ in range(2))
        assert [settings.threads for settings in found] == [1, 1]


def test_a_search_by_one_worker_is_no_job(monkeypatch):
    """What joblib prepares for a job takes longer than the search of a few rows in a tree."""
    import joblib
    from sklearn.neighbors import NearestNeighbors
    from sklearn.utils.parallel import Parallel, delayed

    jobs = []
    call = joblib.Parallel.__call__
    monkeypatch.setattr(joblib.Parallel, "__call__", lambda self, tasks: (jobs.append(self), call(self, tasks))[1])
    model = NearestNeighbors(algorithm="kd_tree").fit(TABLE)
    expected = model.kneighbors(TABLE[:9]), model.radius_neighbors(TABLE[:9], 1.5)
    assert len(jobs) == 2
    with vc.patched_sklearn():
        found = model.kneighbors(TABLE[:9])
        np.testing.assert_array_equal(found[1], expected[0][1])
        for ids, theirs in zip(model.radius_neighbors(TABLE[:9], 1.5)[1], expected[1][1], strict=True):
            assert sorted(ids) == sorted(theirs)
        assert len(jobs) == 2 and answers("KDTree.query") == answers("KDTree.query_radius") == 1
        NearestNeighbors(algorithm="kd_tree", n_jobs=2).fit(TABLE).kneighbors(TABLE[:9])
        assert len(jobs) == 3
        assert Parallel(n_jobs=1)(delayed(abs)(number) for number in (-1, 2, -3)) == [1, 2, 3]
        assert Parallel(n_jobs=1)([]) == []
        assert len(jobs) == 5
        with joblib.parallel_config(verbose=1):
            model.kneighbors(TABLE[:9])
        assert len(jobs) == 6
        with pytest.raises(ValueError, match="n_neighbors"):
            model.kneighbors(TABLE[:9], n_neighbors=500)


def test_threads_are_bounded():
    from threadpoolctl import threadpool_limits

    from vicinal._hooks.engine import threads_of
    from vicinal._hooks.registry import Settings

    with threadpool_limits(1, user_api="openmp"):
        assert threads_of(Settings()) == 1
        assert threads_of(Settings(threads=8)) == 1
    script = "from vicinal._hooks import engine, registry; print(engine.threads_of(registry.Settings()))"
    assert run(script, OMP_NUM_THREADS="1").strip() == "1"


# ---- other patchers, other versions ---------------------------------------------------------------------------------


def test_another_patcher(monkeypatch):
    from sklearn import neighbors
    from sklearn.neighbors import _base

    from vicinal.patch import PatchConflict

    theirs = type("NearestNeighbors", (neighbors.NearestNeighbors,), {"__module__": "sklearnex.neighbors"})
    with monkeypatch.context() as patch:
        patch.setattr(neighbors, "NearestNeighbors", theirs)
        with pytest.raises(PatchConflict, match=r"sklearn\.neighbors\.NearestNeighbors is of sklearnex"):
            vc.patch_sklearn()

    def pairwise_distances_chunked(X, Y=None, **keywords):
        raise AssertionError

    pairwise_distances_chunked.__module__ = "fastlearn.pairs"
    with monkeypatch.context() as patch:
        patch.setattr(_base, "pairwise_distances_chunked", pairwise_distances_chunked)
        with pytest.raises(PatchConflict, match=r"_base\.pairwise_distances_chunked is of fastlearn"):
            vc.patch_sklearn()
        with pytest.raises(PatchConflict), vc.patched_sklearn():
            pass


def test_a_patcher_that_comes_later(monkeypatch):
    from sklearn.neighbors import _base

    before = _base.pairwise_distances_chunked
    vc.patch_sklearn()
    theirs = object()
    _base.pairwise_distances_chunked = theirs
    try:
        with pytest.warns(UserWarning, match="replaced by another package"):
            vc.unpatch_sklearn()
        assert _base.pairwise_distances_chunked is theirs
    finally:
        _base.pairwise_distances_chunked = before


def test_another_version_stays_as_it_is():
    told = run(
        """
        import sklearn, warnings
        sklearn.__version__ = "1.8.2"
        import vicinal
        from sklearn.neighbors import _base
        before = _base.pairwise_distances_chunked
        for _ in range(2):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                vicinal.patch_sklearn()
            print(len(seen), *(one.message for one in seen))
            assert _base.pairwise_distances_chunked is before
            vicinal.unpatch_sklearn()
        """
    )
    assert told.splitlines() == [
        "1 scikit-learn 1.8.2: vicinal's patch is made for 1.9; nothing is patched",
        "0",
    ]


@pytest.mark.parametrize(
    "change, reason",
    [
        ("lambda X, Y=None, *, reduce_func=None, **kwds: None", "its parameters are X, Y, reduce_func, kwds; expected"),
        ("own", "it answered"),
    ],
)
def test_a_hook_that_does_not_fit_stays_off(change, reason):
    """Of a function with other parameters, and of a method whose neighbors vicinal would answer in another way."""
    told = run(
        f"""
        import warnings
        import numpy as np
        from sklearn.neighbors import _base, NearestNeighbors
        import vicinal._hooks.neighbors as hooked
        if {change!r} == "own":
            hooked.engine.knn = lambda *args: (np.ones((4, 2)), np.ones((4, 2), int))
        else:
            _base.pairwise_distances_chunked = {change if change != "own" else None}
            _base.pairwise_distances_chunked.__module__ = "sklearn.metrics.pairwise"
        before = _base.pairwise_distances_chunked
        import vicinal
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            vicinal.patch_sklearn()
        print(*(str(one.message) for one in seen if "chunked" in str(one.message)), sep="\\n")
        assert _base.pairwise_distances_chunked is before
        NearestNeighbors(algorithm="kd_tree").fit(np.eye(9)).radius_neighbors()
        assert vicinal.patch_report()["KDTree.query_radius"]["ours"] == 1
        """
    )
    assert told.startswith("pairwise_distances_chunked: left to scikit-learn, since its self-test failed: " + reason)


# ---- ways in --------------------------------------------------------------------------------------------------------


def test_run_a_script(tmp_path):
    script = tmp_path / "script.py"
    (tmp_path / "beside.py").write_text("VALUE = 3\n")
    script.write_text(
        textwrap.dedent(
            """
            import sys
            import numpy as np
            from beside import VALUE
            from sklearn.neighbors import NearestNeighbors
            if __name__ == "__main__":
                NearestNeighbors(algorithm="brute").fit(np.eye(9)).kneighbors()
                print(sys.argv[1:], VALUE)
            """
        )
    )
    done = subprocess.run(
        [sys.executable, "-m", "vicinal.patch", "--threads", "1", "--report", script, "a", "--report"],
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0 and done.stdout == "['a', '--report'] 3\n", done.stderr
    hook, ours, stock = done.stderr.splitlines()[-1].split()
    assert (hook, ours, stock) == ("ArgKmin.compute", "1", "0")
    done = subprocess.run(
        [sys.executable, "-m", "vicinal.patch", "-m", "script", "b"],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert done.stdout == "['b'] 3\n", done.stderr


def test_load_ext():
    before = attributes()
    vc.load_ipython_extension(None)
    assert attributes()[0] is not before[0]
    vc.unload_ipython_extension(None)
    assert attributes()[0] is before[0]


def test_import_loads_no_scikit_learn():
    told = run(
        "import sys, vicinal; print([m for m in sys.modules if m.split('.')[0] in ('sklearn', 'scipy', 'joblib')])"
    )
    assert told.strip() == "[]"


# ---- warnings as errors, forks and limits of threads ----------------------------------------------------------------


def test_a_warning_as_an_error_leaves_no_hook(monkeypatch):
    """Another package replaced the place that is emptied first."""
    from vicinal._hooks import registry

    before = attributes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vc.patch_sklearn()
        placed = registry._placed[-1]
        setattr(placed.owner, placed.place.attribute, placed.before)
        with pytest.raises(UserWarning, match="was replaced by another package after vicinal"):
            vc.unpatch_sklearn()
    assert not registry._placed and registry._users == 0 and registry.current() is None
    assert all(now is old for now, old in zip(attributes(), before, strict=True))


FORK = """
import os, signal, threading, warnings
import numpy as np, vicinal as vc
from sklearn.neighbors import KDTree, NearestNeighbors
from vicinal._hooks import registry, trees

table = np.random.default_rng(0).normal(size=(60, 3))
vc.patch_sklearn(threads=1)
model = NearestNeighbors(algorithm="kd_tree").fit(table)
unbuilt = NearestNeighbors(algorithm="kd_tree").fit(table)
model.kneighbors(table[:2])
held, done = threading.Event(), threading.Event()

def hold():
    with {lock}:
        held.set()
        done.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
warnings.simplefilter("ignore")
child = os.fork()
if child == 0:
    signal.alarm(20)
    model.kneighbors(table[:2])
    NearestNeighbors(algorithm="kd_tree").fit(table).kneighbors(table[:2])
    assert unbuilt._tree.get_arrays()[0].shape == (60, 3)
    vc.patch_report()
    vc.unpatch_sklearn()
    os._exit(0)
_, status = os.waitpid(child, 0)
done.set()
thread.join()
assert status == 0, status
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("lock", ["registry._lock", "trees._rows_lock", "trees._build_lock", "trees._index_lock"])
def test_a_fork_while_another_thread_holds_a_lock(lock):
    run(FORK.replace("{lock}", lock))


def test_threadpoolctl_bounds_what_is_patched():
    from sklearn.neighbors import NearestNeighbors
    from threadpoolctl import threadpool_limits

    from vicinal._hooks import engine, registry

    with threadpool_limits(1, user_api="vicinal"):
        assert engine.threads_of(registry.Settings()) == 1
        assert engine.threads_of(registry.Settings(threads=2)) == 1
    with vc.patched_sklearn(), threadpool_limits(1, user_api="vicinal"):
        assert NearestNeighbors().fit(TABLE).kneighbors(TABLE[:2])[1].shape == (2, 5)

"""KMeansSteps: the library's loop made of steps is the library's, and scikit-learn's rule for empty clusters can be
followed."""

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import vicinal as vc

RANDOM = np.random.default_rng(5)
TABLE = np.concatenate([RANDOM.normal(size=(60, 3)) + 9 * RANDOM.normal(size=3) for _ in range(5)])


def settled(steps, centres):
    steps.start(centres)
    iterations = 0
    while True:
        iterations += 1
        done = steps.assign()
        steps.means()
        if done.changed == 0:
            return iterations


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_loop_of_kmeans(metric, dtype):
    table = TABLE.astype(dtype)
    weights = np.where(np.arange(len(table)) % 7 == 3, 0, 1 + np.arange(len(table)) % 4)
    model = vc.kmeans(table, centres=table[:5], metric=metric, weights=weights, empty="keep", tolerance=0)
    steps = vc.KMeansSteps(table, clusters=5, metric=metric, weights=weights)
    assert settled(steps, table[:5]) == model.iterations
    assert (steps.labels() == model.labels).all() and (steps.centres() == model.centres).all()
    assert steps.inertia() == model.inertia and steps.copied == weights.size * 8
    assert (steps.sizes() == np.bincount(model.labels[weights > 0], minlength=5)).all()
    unit = 0.5 if metric == "cosine" else 1
    assert np.isclose((weights * steps.keys()).sum() * unit, model.inertia)
    assert (steps.rows, steps.cols, steps.clusters, steps.metric) == (*table.shape, 5, metric)
    assert "steps" in steps.plan.reason


def test_what_steps_return():
    steps = vc.KMeansSteps(TABLE, clusters=3)
    steps.start(TABLE[:3])
    done = steps.assign()
    assert done == (len(TABLE), 0) and done.changed == len(TABLE)
    labels = steps.labels()
    assert labels.dtype == np.int32 and labels.shape == (len(TABLE),)
    assert steps.sizes().dtype == np.int64 and steps.sizes().sum() == len(TABLE)
    assert steps.keys().dtype == np.float64
    centres = steps.centres()
    assert centres.shape == (3, 3) and (centres == TABLE[:3]).all()
    old = labels.copy()
    shift = steps.means()
    assert np.isclose(shift, ((steps.centres() - centres) ** 2).sum())
    steps.assign()
    assert (labels == old).all()  # results of earlier steps are the caller's


def test_rows_for_empty_clusters_as_scikit_learn_has_them():
    """The farthest rows, whose labels stay what the assignment gave them."""
    first = TABLE[[0, 60, 120, 0, 0]]
    steps = vc.KMeansSteps(TABLE, clusters=5)
    steps.start(first)
    assert steps.assign().empty == 2
    labels = steps.labels()
    far = np.argpartition(steps.keys(), -2)[:-3:-1]
    for row, cluster in zip(far, np.flatnonzero(steps.sizes() == 0)):
        steps.move_row(row, cluster)
    steps.means()
    moved = labels.copy()
    moved[far] = [3, 4]
    assert (steps.labels() == moved).all()
    expected = [TABLE[moved == cluster].mean(axis=0) for cluster in range(5)]
    assert np.allclose(steps.centres(), expected)


def test_centres_of_the_caller():
    steps = vc.KMeansSteps(TABLE.astype(np.float32), clusters=3)
    steps.start(TABLE[:3].astype(np.float32))
    steps.assign()
    steps.means()
    labels = steps.labels()
    centres = steps.centres().astype(np.float32)
    steps.set_centres(centres)
    assert (steps.centres() == centres).all() and (steps.labels() == labels).all()
    keys = ((TABLE.astype(np.float32).astype(float) - centres[labels]) ** 2).sum(axis=1)
    assert np.allclose(steps.keys(), keys)


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda s: vc.KMeansSteps(TABLE, clusters=0), vc.InvalidArgument, "clusters: is 0"),
        (lambda s: vc.KMeansSteps(TABLE, clusters=2.5), vc.InvalidArgument, "clusters: 2.5 is not allowed"),
        (lambda s: vc.KMeansSteps(TABLE, clusters=2, weights=[1]), vc.InvalidArgument, "weights: there are 1 for 300"),
        (lambda s: vc.KMeansSteps(TABLE, clusters=2, metric="hamming"), vc.InvalidArgument, "metric: .*hamming"),
        (lambda s: vc.KMeansSteps(TABLE, clusters=2, k=3), TypeError, r"KMeansSteps\(\) got an unexpected"),
        (lambda s: vc.KMeansSteps(TABLE * np.nan, clusters=2), vc.BadData, "row 0, column 0"),
        (lambda s: vc.KMeansSteps(TABLE, clusters=2, memory_limit=1000), vc.OverMemory, "KMeansSteps"),
        (lambda s: s.assign(), vc.InvalidArgument, "assign: there are no centers yet; call start before"),
        (lambda s: s.start(TABLE[:2]), vc.InvalidArgument, "centres: are 2 x 3, but must be 3 x 3"),
        (lambda s: s.start(None), vc.InvalidArgument, "centres: "),
        (lambda s: s.start(TABLE[:3] * np.inf), vc.BadData, "centres: row 0, column 0"),
        (lambda s: (s.start(TABLE[:3]), s.move_row(0, 0)), vc.InvalidArgument, "move_row: there are no labels yet"),
        (lambda s: (s.start(TABLE[:3]), s.assign(), s.move_row(300, 0)), vc.InvalidArgument, "row: is 300"),
        (lambda s: (s.start(TABLE[:3]), s.assign(), s.move_row(0, 2**40)), vc.InvalidArgument, f"cluster: is {2**40},"),
        (lambda s: (s.start(TABLE[:3]), s.assign(), s.move_row(0.5, 0)), vc.InvalidArgument, "row: 0.5 is not allowed"),
        (lambda s: vc.KMeansSteps.assign(3), vc.InvalidArgument, "steps: 3 is not allowed; expected a KMeansSteps"),
        (lambda s: pickle.dumps(s), TypeError, "pickle"),
        (lambda s: setattr(s, "rows", 3), AttributeError, "KMeansSteps.rows cannot be set"),
    ],
)
def test_bad_calls(call, kind, sentence):
    with pytest.raises(kind, match=sentence):
        call(vc.KMeansSteps(TABLE, clusters=3))


def test_they_hold_the_table_and_let_it_go():
    table = TABLE.copy()
    seen = weakref.ref(table)
    steps = vc.KMeansSteps(table, clusters=2)
    steps.start(TABLE[:2])
    del table
    gc.collect()
    assert seen() is not None
    steps.assign()
    del steps
    gc.collect()
    assert seen() is None


def test_a_second_thread_is_refused():
    table = np.random.default_rng(1).normal(size=(200_000, 16))
    steps = vc.KMeansSteps(table, clusters=64)
    steps.start(table[:64])
    refused, done = [], threading.Event()

    def other():
        while not done.is_set():
            try:
                steps.sizes()
            except vc.InvalidArgument as error:
                refused.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    passed = 0
    for _ in range(40):
        try:
            steps.assign()
            steps.means()
            passed += 1
        except vc.InvalidArgument as error:
            refused.append(str(error))
    done.set()
    thread.join()
    assert passed + len(refused) > 0
    others = {text for text in refused if "another thread is using it" not in text}
    assert all("there are no" in text for text in others)
    steps.start(table[:64])
    assert steps.assign().changed == len(table)


def test_two_sessions_side_by_side():
    """Each has its own context, so that calls between do not disturb it."""
    one, two = vc.KMeansSteps(TABLE, clusters=4), vc.KMeansSteps(TABLE, clusters=4, threads=1)
    for steps in (one, two):
        steps.start(TABLE[:4])
    for _ in range(5):
        done = one.assign(), two.assign()
        vc.knn(TABLE, k=3)
        assert done[0] == done[1] and one.means() == two.means()
    assert (one.labels() == two.labels()).all()
    assert (copy.copy(one).labels() == one.labels()).all()

"""Pipelines, grid search, pickles, output containers and metadata routing."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from conftest import NAMES, same, vs
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def outputs(estimator, rows):
    """What a fitted estimator answers."""
    found = []
    for method in ("predict", "predict_proba", "transform", "kneighbors", "score_samples"):
        if hasattr(estimator, method):
            answer = getattr(estimator, method)(rows)
            found += (
                answer if isinstance(answer, tuple) else [answer.toarray() if hasattr(answer, "toarray") else answer]
            )
    if not found:
        found = [getattr(estimator, name) for name in ("labels_", "row_labels_") if hasattr(estimator, name)]
    return found


def fitted(name, blobs):
    keywords = {"novelty": True} if name == "LocalOutlierFactor" else {}
    if hasattr(getattr(vs, name)(), "radius") and "Radius" in name:
        keywords["radius"] = 5.0
    if hasattr(getattr(vs, name)(), "random_state"):
        keywords["random_state"] = 0
    return getattr(vs, name)(**keywords).fit(*blobs)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dump", ["pickle", "joblib"])
def test_pickles(name, dump, blobs, tmp_path):
    estimator = fitted(name, blobs)
    if dump == "pickle":
        again = pickle.loads(pickle.dumps(estimator))
    else:
        joblib.dump(estimator, tmp_path / "model")
        again = joblib.load(tmp_path / "model")
    assert type(again) is type(estimator) and again.get_params() == estimator.get_params()
    before, after = outputs(estimator, blobs[0]), outputs(again, blobs[0])
    assert len(before) == len(after) > 0
    for left, right in zip(before, after):
        same(left, right)


def test_pickled_neighbors_have_the_same_ties(blobs):
    """Also where a search is among equal rows: what is loaded is searched by vicinal, too."""
    rows = np.round(blobs[0])
    estimator = vs.NearestNeighbors(n_neighbors=8).fit(rows)
    same(pickle.loads(pickle.dumps(estimator)).kneighbors(rows)[1], estimator.kneighbors(rows)[1])


def test_pipeline(blobs, queries):
    pipeline = make_pipeline(StandardScaler(), vs.KNeighborsClassifier(3, threads=1)).fit(*blobs)
    assert pipeline.predict(queries).shape == (40,)
    pipeline.set_params(kneighborsclassifier__device="cpu", kneighborsclassifier__threads=2)
    assert pipeline.fit(*blobs).score(*blobs) == 1.0
    graph = make_pipeline(
        vs.KNeighborsTransformer(n_neighbors=12), vs.KNeighborsClassifier(5, metric="precomputed")
    ).fit(*blobs)
    same(graph.predict(queries), vs.KNeighborsClassifier(5).fit(*blobs).predict(queries))


def test_grid_search(blobs):
    for n_jobs in (1, 2):
        search = GridSearchCV(
            vs.KNeighborsClassifier(),
            {"n_neighbors": [1, 5], "weights": ["uniform", "distance"], "threads": [1]},
            n_jobs=n_jobs,
        ).fit(*blobs)
        assert search.best_score_ == 1.0 and search.best_estimator_.threads == 1
    scores = cross_val_score(vs.KMeans(3, random_state=0), blobs[0], cv=3, n_jobs=2)
    assert np.isfinite(scores).all()


def test_workers_share_the_cores():
    def threads():
        from vicinal._hooks import engine, registry

        return engine.threads_of(registry.Settings())

    found = joblib.Parallel(n_jobs=2)(joblib.delayed(lambda: threads())() for _ in range(4))
    assert 2 * max(found) <= max(2, joblib.cpu_count())


@pytest.mark.parametrize("name", ["KMeans", "MiniBatchKMeans", "LocallyLinearEmbedding"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output(name, library, blobs):
    frames = pytest.importorskip(library)
    estimator = getattr(vs, name)(random_state=0).set_output(transform=library)
    prefix = name.lower()
    for answer in (estimator.fit_transform(blobs[0]), estimator.transform(blobs[0])):
        assert isinstance(answer, frames.DataFrame) and list(answer.columns)[:2] == [f"{prefix}0", f"{prefix}1"]
    assert list(estimator.get_feature_names_out())[:2] == [f"{prefix}0", f"{prefix}1"]


def test_names_of_columns(blobs):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(blobs[0], columns=list("abcde"))
    estimator = vs.KNeighborsRegressor().fit(frame, blobs[1])
    assert estimator.feature_names_in_.tolist() == list("abcde")
    with pytest.warns(
        UserWarning, match="X does not have valid feature names, but KNeighborsRegressor was fitted with"
    ):
        estimator.predict(blobs[0])


def test_metadata_routing(blobs):
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = vs.KMeans(3, random_state=0).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, estimator)
        weights = np.linspace(1, 2, 300)
        pipeline.fit(blobs[0], sample_weight=weights)
        expected = vs.KMeans(3, random_state=0).fit(StandardScaler().fit_transform(blobs[0]), sample_weight=weights)
        same(pipeline[-1].cluster_centers_, expected.cluster_centers_)
        request = vs.KNeighborsClassifier().set_score_request(sample_weight=True).get_metadata_routing()
        assert request.score.requests == {"sample_weight": True}
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="KMeans.fit"):
            make_pipeline(scaler, vs.KMeans(3)).fit(blobs[0], sample_weight=weights)


def test_sample_weight_in_score(blobs):
    weights = np.linspace(1, 2, 300)
    assert vs.KNeighborsClassifier().fit(*blobs).score(*blobs, sample_weight=weights) == 1.0


def test_hooks_are_made_once(blobs):
    """However often they are placed: nothing grows with the number of calls."""
    from vicinal._hooks import trees

    vs.NearestNeighbors().fit(blobs[0])
    made = len(trees._lazy_kinds)
    for _ in range(3):
        vs.NearestNeighbors().fit(blobs[0]).kneighbors(blobs[0][:2])
    assert len(trees._lazy_kinds) == made == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_pickle_of_another_scikit_learn_is_warned_of(name, blobs, monkeypatch):
    estimator = fitted(name, blobs)
    state = estimator.__getstate__()
    assert state["_sklearn_version"] == sklearn.__version__
    kept = pickle.dumps(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "_sklearn_version" not in vars(pickle.loads(kept))
    again = type(estimator).__new__(type(estimator))
    with pytest.warns(InconsistentVersionWarning, match=f"unpickle estimator {name} from version 1.9.99") as seen:
        again.__setstate__({**state, "_sklearn_version": "1.9.99"})
    assert seen[0].message.original_sklearn_version == "1.9.99"
    assert again.get_params() == estimator.get_params() and "_sklearn_version" not in vars(again)

"""Models with the patch, after it and without vicinal: pickles name scikit-learn's classes alone."""

import copy
import pickle

import numpy as np
from conftest import LABELS, TABLE, answers, close, models, run, used

import vicinal as vc


def test_patched_models_load_where_vicinal_is_not(tmp_path):
    stored = {}
    with vc.patched_sklearn():
        fitted = {name: model.fit(TABLE, LABELS) for name, model in models().items()}
        for name, model in fitted.items():
            stored[f"{name}, patched"] = (pickle.dumps(model), used(model))
    for name, model in fitted.items():
        stored[name] = (pickle.dumps(model), used(model))
    for name, (content, _) in stored.items():
        assert b"vicinal" not in content, name
    (tmp_path / "stored").write_bytes(pickle.dumps(stored))
    script = f"""
        import pickle, sys
        sys.modules["vicinal"] = None
        import numpy as np
        table = pickle.loads({pickle.dumps(TABLE[:20])!r})
        stored = pickle.load(open({str(tmp_path / "stored")!r}, "rb"))
        for name, (content, expected) in stored.items():
            model = pickle.loads(content)
            method = next((m for m in ("predict", "transform", "kneighbors") if hasattr(model, m)), None)
            words = {{"return_distance": False}} if method == "kneighbors" else {{}}
            found = getattr(model, method)(table, **words) if method else model.labels_
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9, err_msg=name)
        print(len(stored), "loaded")
    """
    assert run(script).strip() == f"{2 * len(models())} loaded"


def test_stock_models_are_used_patched():
    fitted = {name: model.fit(TABLE, LABELS) for name, model in models().items()}
    expected = {name: used(model) for name, model in fitted.items()}
    loaded = {name: pickle.loads(pickle.dumps(model)) for name, model in fitted.items()}
    with vc.patched_sklearn():
        for name in fitted:
            close(used(fitted[name]), expected[name])
            close(used(loaded[name]), expected[name])
    assert answers("KDTree.query") > 0 and answers("BallTree.query") > 0 and answers("ArgKmin.compute") > 0


def test_patched_models_are_used_stock():
    with vc.patched_sklearn():
        fitted = {name: model.fit(TABLE, LABELS) for name, model in models().items()}
        expected = {name: used(model) for name, model in fitted.items()}
    calls = vc.patch_report()
    for name, model in fitted.items():
        close(used(model), expected[name])
        close(used(copy.deepcopy(model)), expected[name])
    assert vc.patch_report() == calls


def test_trees_are_built_when_asked_for():
    from sklearn import neighbors
    from sklearn.neighbors import _base

    import vicinal._hooks.trees as hooked

    plain = neighbors.KDTree(TABLE, 10)
    with vc.patched_sklearn():
        for use in (
            lambda tree: tree.kernel_density(TABLE[:4], 0.5),
            lambda tree: tree.two_point_correlation(TABLE[:4], 0.5),
            lambda tree: tree.get_arrays()[1],
            lambda tree: tree.data,
            lambda tree: tree.sum_weight,
            lambda tree: tree.node_bounds,
            lambda tree: pickle.loads(pickle.dumps(tree)).get_arrays()[3],
            lambda tree: copy.copy(tree).get_arrays()[3],
            lambda tree: copy.deepcopy(tree).get_arrays()[3],
        ):
            tree = _base.KDTree(TABLE, 10)
            assert hooked._is_lazy(tree)
            tree.query(TABLE[:2])
            assert hooked._is_lazy(tree) and isinstance(tree, neighbors.KDTree) and isinstance(tree, _base.KDTree)
            assert isinstance(plain, _base.KDTree) and issubclass(neighbors.KDTree, _base.KDTree)
            np.testing.assert_array_equal(use(tree), use(plain))
            assert type(tree) is neighbors.KDTree
            close(tree.query(TABLE[:2], 3)[0], plain.query(TABLE[:2], 3)[0])
        tree = _base.BallTree(TABLE)
    assert hooked._is_lazy(tree)
    ids, distances = tree.query_radius(TABLE[:1], 1.0, return_distance=True)
    assert type(tree) is neighbors.BallTree and len(ids[0]) == len(distances[0])

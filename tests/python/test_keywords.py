"""Keywords are C++'s: names and defaults come from its structs, types from vicinal._options."""

import ast
import pathlib
import typing

import numpy as np
import pytest

import vicinal as vc
from vicinal import _core, _options

TABLE = np.random.default_rng(0).normal(size=(30, 3))


@pytest.mark.parametrize("struct", _core.defaults())
def test_types_have_the_names_of_the_struct(struct):
    told = set(typing.get_type_hints(getattr(_options, struct)))
    assert told - set(typing.get_type_hints(_options.Common)) == set(_core.defaults()[struct])


@pytest.mark.parametrize("struct", _core.defaults())
def test_words_are_those_of_the_library(struct):
    """Each word that a type allows is one that the library knows; of defaults that are words, all are allowed."""
    hints = typing.get_type_hints(getattr(_options, struct))
    for name, default in _core.defaults()[struct].items():
        words = [word for part in (hints[name], *typing.get_args(hints[name])) for word in typing.get_args(part)]
        if isinstance(default, str) and default and words:
            assert default in words, name


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: vc.knn(TABLE, metrc="cosine"),
            r"knn\(\) got an unexpected keyword argument 'metrc'; did you mean 'metric'\?",
        ),
        (lambda: vc.knn(TABLE, n_neighbors=3), r"knn\(\) got an unexpected keyword argument 'n_neighbors'"),
        (
            lambda: vc.knn(TABLE, xyzzy=3),
            "'xyzzy'; there are device, device_memory_limit, exclude, filter, k, max_radius, memory_limit",
        ),
        (lambda: vc.kmeans(TABLE, cluster=3), "did you mean 'clusters'"),
        (lambda: vc.Index(TABLE, tre=True), r"Index\(\) .*did you mean 'tree'"),
        (lambda: vc.doctor(thread=2), "did you mean 'threads'"),
        (lambda: vc.dbscan(TABLE, epsilon=2), r"dbscan\(\) .*did you mean 'eps'"),
        (lambda: vc.classify(TABLE, TABLE, [1] * 30, max_radius=2.0), r"classify\(\) got an unexpected keyword"),
    ],
)
def test_unknown_keyword(call, sentence):
    with pytest.raises(TypeError, match=sentence):
        call()


def test_numbers_of_numpy_count():
    graph = vc.knn(TABLE, k=np.int32(4), p=np.float32(2), threads=np.int64(1))
    assert graph.k == 4 and graph.plan.threads == 1


def test_none_is_the_default():
    assert vc.knn(TABLE, k=None, threads=None, filter=None).k == _core.defaults()["KnnOptions"]["k"]
    assert vc.classify(TABLE, TABLE, [1] * 30, k=3, radius=None).labels.tolist() == [1] * 30
    assert vc.classify(TABLE, TABLE, [1] * 30, k=None, radius=0.5).labels.tolist() == [1] * 30


def test_every_word():
    for metric in typing.get_args(_options.Metric):
        vc.knn(TABLE, metric=metric, p=2)
    hints = typing.get_type_hints(_options.LofOptions)
    for duplicates in typing.get_args(hints["duplicates"]):
        vc.lof(TABLE, k=3, duplicates=duplicates)
    for variant in typing.get_args(typing.get_type_hints(_options.LleOptions)["variant"]):
        vc.lle(TABLE, k=10, variant=variant)
    for selection in typing.get_args(typing.get_type_hints(_options.HdbscanOptions)["selection"]):
        vc.hdbscan(TABLE, selection=selection)
    for init in typing.get_args(typing.get_type_hints(_options.KMeansOptions)["init"]):
        vc.kmeans(TABLE, clusters=3, init=init)


def test_docstrings_have_the_defaults():
    assert "k=5, metric='euclidean'" in " ".join(vc.knn.__doc__.split())
    assert "init='k-means++', centres=None, clusters=8" in " ".join(vc.kmeans.__doc__.split())


def test_the_stub_has_what_the_extension_has():
    stub = pathlib.Path(vc.__file__).with_name("_core.pyi")
    told = {
        node.name: [argument.arg for argument in node.args.args]
        for node in ast.parse(stub.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    there = {name for name in vars(_core) if callable(getattr(_core, name)) and name != "Native"}
    assert set(told) == {name for name in there if not name.startswith("__")}
    for name, arguments in told.items():
        signature = getattr(_core, name).__doc__.partition("\n")[0]
        assert all(f"{argument}: " in signature for argument in arguments), signature

"""The patch on a CUDA device, or on the fake one: the answers of the processor, and models that go where no device
is."""
# fake device: *

import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from conftest import LABELS, TABLE, close, models, used

import vicinal as vc

MISSING = vc.doctor(device="cpu").cuda_missing
pytestmark = pytest.mark.skipif(MISSING != "", reason=MISSING)


def fitted(device):
    with vc.patched_sklearn(device=device):
        made = {name: model.fit(TABLE, LABELS) for name, model in models().items()}
        return made, {name: used(model) for name, model in made.items()}


def test_answers_are_those_of_the_processor():
    answers, calls = {}, {}
    for device in ("cpu", "cuda"):
        _, answers[device] = fitted(device)
        calls[device] = vc.patch_report()
    for name, expected in answers["cpu"].items():
        close(answers["cuda"][name], expected)
    # Nothing went to scikit-learn instead.
    for name, count in calls["cuda"].items():
        assert count["ours"] == 2 * calls["cpu"][name]["ours"], name
        assert {reason: calls // 2 for reason, calls in count["stock"].items()} == calls["cpu"][name]["stock"], name


def test_the_device_computes():
    from sklearn.neighbors import NearestNeighbors

    from vicinal._hooks import engine

    seen = []
    knn = engine._neighbors.knn

    def noting(*arguments, **keywords):
        graph = knn(*arguments, **keywords)
        seen.append(graph.plan.device)
        return graph

    with pytest.MonkeyPatch.context() as patch, vc.patched_sklearn(device="cuda"):
        patch.setattr(engine._neighbors, "knn", noting)
        for algorithm in ("brute", "kd_tree"):
            NearestNeighbors(algorithm=algorithm).fit(TABLE).kneighbors()
    assert seen == ["cuda:0", "cuda:0"]


def test_models_of_a_device_predict_on_a_processor(tmp_path):
    """With the patch on the CPU, and without it."""
    made, expected = fitted("cuda")
    (tmp_path / "models").write_bytes(pickle.dumps((TABLE[:20], made, expected)))
    script = """
        import contextlib, pickle, sys
        import numpy as np
        import vicinal as vc
        assert vc.doctor(device="cpu").cuda_missing, "a device is there"
        for patch in (lambda: vc.patched_sklearn(device="cpu"), vc.patched_sklearn, contextlib.nullcontext):
            with open(sys.argv[1], "rb") as file, patch():
                table, models, expected = pickle.load(file)
                for name, model in models.items():
                    method = next((m for m in ("predict", "transform", "kneighbors") if hasattr(model, m)), None)
                    words = {"return_distance": False} if method == "kneighbors" else {}
                    found = getattr(model, method)(table, **words) if method else model.labels_
                    np.testing.assert_allclose(found, expected[name], rtol=1e-7, atol=1e-9, err_msg=name)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "models")],
        env={**os.environ, "VICINAL_CUDA_PLUGIN": "/nowhere/libvicinal_cuda.so"},
        text=True,
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_a_device_that_is_not_there():
    for device in ("cuda:9", "cuda:x"):
        with pytest.raises(vc.Error, match=device):
            vc.patch_sklearn(device=device)
    assert np.array_equal(vc.knn(TABLE, k=1).ids, vc.knn(TABLE, k=1, device="cpu").ids)

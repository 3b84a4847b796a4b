"""GridSearchCV with two workers starts no more threads than there are cores, whoever computes."""

# ctest: COST 40

import json
import os

import pytest
from conftest import run

SCRIPT = """
    import json, os, pathlib, threading
    import numpy as np
    import vicinal as vc
    from sklearn.model_selection import GridSearchCV
    {imports}

    draw = np.random.default_rng(0)
    table = draw.normal(size=(3000, 24))
    labels = (table[:, 0] > 0).astype(int)
    folder = pathlib.Path({folder!r})

    def score(model, X, y):
        counts, done = [], threading.Event()

        def count():
            while not done.is_set():
                counts.append(len(os.listdir("/proc/self/task")) - 1)  # without this thread
                done.wait(0.0005)

        counter = threading.Thread(target=count)
        counter.start()
        try:
            value = model.score(X, y)
            while len(counts) < 20:  # on a busy machine the counter may see nothing of a short call
                model.score(X, y)
        finally:
            done.set()
            counter.join()
        with open(folder / str(os.getpid()), "a") as file:
            print(max(counts), file=file)
        return value

    if __name__ == "__main__":
        {patch}
        grid = {{"n_neighbors": [3, 5]}} if hasattr(model, "n_neighbors") else {{"n_clusters": [3, 5]}}
        GridSearchCV(model, grid, scoring=score, cv=3, n_jobs=2, error_score="raise").fit(table, labels)
        print(json.dumps([max(map(int, path.read_text().split())) for path in folder.iterdir()]))
"""
NEIGHBORS = "from sklearn.neighbors import KNeighborsClassifier as Model"
CLUSTERS = "from sklearn.cluster import KMeans as Model"
MODELS = {NEIGHBORS: "model = Model(algorithm='brute')", CLUSTERS: "model = Model(random_state=0)"}
CASES = {
    "patched neighbors": (NEIGHBORS, f"vc.patch_sklearn(); {MODELS[NEIGHBORS]}", NEIGHBORS),
    "patched with many threads": (NEIGHBORS, f"vc.patch_sklearn(threads=64); {MODELS[NEIGHBORS]}", NEIGHBORS),
    "patched k-means": (CLUSTERS, f"vc.patch_sklearn(); {MODELS[CLUSTERS]}", CLUSTERS),
    "own neighbors": ("from vicinal.sklearn import KNeighborsClassifier as Model", MODELS[NEIGHBORS], NEIGHBORS),
}


def most(imports, patch, folder):
    """Threads of the worker that has most while a model works."""
    folder.mkdir()
    return max(json.loads(run(SCRIPT.format(imports=imports, patch=patch, folder=str(folder)))))


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    """Those that scikit-learn's and joblib's own code has."""
    folder = tmp_path_factory.mktemp("stock")
    return {imports: most(imports, model, folder / str(at)) for at, (imports, model) in enumerate(MODELS.items())}


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
@pytest.mark.parametrize("case", CASES)
def test_no_more_threads_than_cores(case, tmp_path, stock):
    """Of two workers each computes with half of them, by a thread of its own: the first one waits for signals."""
    imports, patch, of = CASES[case]
    started = most(imports, patch, tmp_path / "workers") - stock[of]
    assert 1 <= started <= max(1, os.cpu_count() // 2), started

"""Embeddings of the command `vicinal lle` beside scikit-learn's: are they the same, and how good.

    lle.py --command build/release/cli/vicinal [-o result.json] [SECTION...]

    same     sine of the angle between the two spaces, for every variant scikit-learn has (dense eigensolver)
    quality  variance of the true parameters that no affine map of the embedding gives, Swiss roll and S curve of 2,000
    time     Swiss rolls of 10,000 to a million rows, all variants, beside scikit-learn (sparse eigensolver) up to 30,000

A tolerance that is not kept is an error in the end. It needs the Python of `./dev bench --peers`.
"""

import argparse
import datetime
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import sklearn
from sklearn import datasets
from sklearn.manifold import LocallyLinearEmbedding

PAIRS = {"standard": "standard", "modified": "modified", "ltsa": "ltsa", "hessian_sklearn": "hessian"}
# Their own dense eigenvectors of M, the square of what is decomposed here, are good to about this.
MOST_SINE = 1e-6
# Affine residuals: standard as in the reference table, rounded as there, the others up to twice its figures.
MOST_LEFT = {("swiss", "standard"): 1.25e-2, ("swiss", "modified"): 2e-4, ("swiss", "ltsa"): 5e-5, ("swiss", "hessian"): 2.4e-5,
             ("curve", "standard"): 1.4e-2, ("curve", "modified"): 4e-5, ("curve", "ltsa"): 4e-6, ("curve", "hessian"): 2.4e-5}


def embed(command, rows, variant, k):
    with tempfile.TemporaryDirectory() as folder:
        given, made = pathlib.Path(folder, "rows.npy"), pathlib.Path(folder, "points.npy")
        np.save(given, rows)
        subprocess.run([command, "lle", given, "-k", str(k), "--variant", variant, "-o", made, "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        return np.load(made)


def same(command):
    # Whole numbers tie: which of two equally far rows is the k-th neighbor is decided by id here, by chance there.
    digits = datasets.load_digits().data[:1000]
    digits = digits + 1e-3 * np.random.default_rng(0).standard_normal(digits.shape)
    sets = {"swiss": datasets.make_swiss_roll(800, random_state=0)[0], "curve": datasets.make_s_curve(800, random_state=0)[0],
            "noisy": datasets.make_swiss_roll(800, noise=0.5, random_state=0)[0], "digits": digits}
    for name, rows in sets.items():
        for ours, theirs in PAIRS.items():
            if name == "digits" and theirs in ("ltsa", "hessian"):
                continue  # M has more zeros than are asked for: any two of their vectors are right
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = LocallyLinearEmbedding(n_neighbors=12, n_components=2, method=theirs, eigen_solver="dense")
                basis, _ = np.linalg.qr(model.fit_transform(rows))
            points = embed(command, rows, ours, 12)
            sine = np.linalg.svd(points - basis @ (basis.T @ points), compute_uv=False)[0]
            print(f"same     {name:7} {ours:16} {sine:.1e}", flush=True)
            yield sine <= MOST_SINE, f"{name}, {ours}: sine {sine}"


def quality(command):
    for name, make in {"swiss": datasets.make_swiss_roll, "curve": datasets.make_s_curve}.items():
        rows, t = make(2000, random_state=0)
        along = (t * np.sqrt(1 + t * t) + np.arcsinh(t)) / 2 if name == "swiss" else t  # the curve's length
        known = np.column_stack([along, rows[:, 1]])
        known -= known.mean(0)
        for variant in ("standard", "modified", "hessian", "ltsa"):
            points = embed(command, rows, variant, 12)
            left = ((known - points @ (points.T @ known)) ** 2).sum() / (known**2).sum()
            print(f"quality  {name:7} {variant:16} {left:.1e}", flush=True)
            yield left <= MOST_LEFT[name, variant], f"{name}, {variant}: affine residual {left}"


SIZES = {"standard": (10_000, 30_000, 100_000, 1_000_000), "modified": (10_000, 100_000), "hessian": (10_000, 100_000),
         "ltsa": (10_000, 100_000)}
MOST_OF_SKLEARN = 30_000
times = []


def timed(command):
    for variant, sizes in SIZES.items():
        for n in sizes:
            rows = datasets.make_swiss_roll(n, random_state=0)[0]
            told = {"variant": variant, "rows": n}
            with tempfile.TemporaryDirectory() as folder:
                given = pathlib.Path(folder, "rows.npy")
                np.save(given, rows)
                start = time.perf_counter()
                said = subprocess.run([command, "lle", given, "-k", "12", "--variant", variant, "-o", given.with_name("made.npy"),
                                       "--json", "--quiet"], check=True, capture_output=True, text=True).stdout
                told["vicinal_seconds"] = time.perf_counter() - start
                told["vicinal"] = {key: value for key, value in json.loads(said).items() if key.endswith("_seconds")}
                # Of the largest so far, which is this one: sizes ascend.
                told["most_kilobytes_so_far"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            if n <= MOST_OF_SKLEARN and variant in PAIRS and (variant == "standard" or n <= 10_000):
                start = time.perf_counter()
                LocallyLinearEmbedding(n_neighbors=12, n_components=2, method=PAIRS[variant], n_jobs=-1,
                                       random_state=0).fit(rows)
                told["sklearn_seconds"] = time.perf_counter() - start
            times.append(told)
            print(json.dumps(told), flush=True)
            yield True, ""


def main():
    sections = {"same": same, "quality": quality, "time": timed}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", required=True)
    parser.add_argument("sections", nargs="*", metavar="SECTION", default=list(sections))
    parser.add_argument("-o", "--output", help="what `time` took, as JSON")
    parser.add_argument("--machine", default="unknown", help="what ran it, for whoever reads the result")
    parser.add_argument("--commit", default="unknown")
    arguments = parser.parse_intermixed_args()
    command = str(pathlib.Path(arguments.command).resolve())
    failures = [told for name in arguments.sections for holds, told in sections[name](command) if not holds]
    for told in failures:
        print("not kept:", told, file=sys.stderr)
    if arguments.output:
        date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        about = {"machine": arguments.machine, "cores": os.cpu_count(), "commit": arguments.commit, "date": date,
                 "sklearn": sklearn.__version__}
        pathlib.Path(arguments.output).write_text(json.dumps({**about, "times": times}, indent=1) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

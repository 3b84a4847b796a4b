"""Embeddings of the command `vicinal lle` beside LAPACK's, scikit-learn's and tapkee's: are they the same, how good, how quick.

    lle.py --command build/release/cli/vicinal [-o result.json] [SECTION...]

    same     two thousand rows, every variant: LAPACK's singular values and vectors of the factor that tests/cli/lle/lle_factor.py
             builds, and the sine of the angle to the space that scikit-learn finds (dense eigensolver), where it has the variant
    quality  variance of the true parameters that no affine map of the embedding gives, Swiss roll and S curve of 2,000, clean and
             noisy; trustworthiness and continuity; scikit-learn's and tapkee's beside them
    time     Swiss rolls of 10,000 to a million rows, all variants, beside scikit-learn (sparse eigensolver) up to 30,000 and
             tapkee up to 50,000
    paired   a Swiss roll (--rows N), standard variant, in turns with scikit-learn and tapkee: seconds, and how much larger
             the error |(I - W) Y|^2 of their embeddings is than ours, by weights that NumPy computes in float64
    large    what is not a surface in three columns: 300,000 points of a cube, the ten quantities of the 50,000 rows of
             Covertype, and MNIST's 70,000 images by lanczos (both of $VICINAL_DATA)

A tolerance that is not kept is an error in the end. It needs the packages of requirements-lle.txt beside it.
"""

import argparse
import gzip
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import sklearn
from sklearn import datasets
from sklearn.manifold import LocallyLinearEmbedding
from threadpoolctl import threadpool_limits

import result

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "cli" / "lle"))
import lle_factor  # noqa: E402

try:
    import tapkee
except ImportError as error:
    tapkee, no_tapkee = None, f"{type(error).__name__}: {error}"

K = 12
VARIANTS = ("standard", "modified", "hessian", "hessian_sklearn", "ltsa")
SKLEARN = {"standard": "standard", "modified": "modified", "ltsa": "ltsa", "hessian_sklearn": "hessian"}
TAPKEE = {"standard": "lle", "ltsa": "ltsa", "hessian": "hlle"}
# Their own dense eigenvectors of M, the square of what is decomposed here, are good to about this.
MOST_SINE = 1e-6
# Affine residuals: standard as in the reference table, rounded as there, the others up to twice its figures.
MOST_LEFT = {("swiss", "standard"): 1.25e-2, ("swiss", "modified"): 2e-4, ("swiss", "ltsa"): 5e-5, ("swiss", "hessian"): 2.4e-5,
             ("curve", "standard"): 1.4e-2, ("curve", "modified"): 4e-5, ("curve", "ltsa"): 4e-6, ("curve", "hessian"): 2.4e-5}
THREADS = []  # of the command: the words of --threads
kept = {"same": [], "quality": [], "times": [], "paired": [], "large": []}


def note(section, **told):
    kept[section].append(told)
    print(section, json.dumps(told), flush=True)


def run(command, rows, variant, *options, **files):
    """The embedding, what the command tells of it, its seconds, and its neighbors where they are asked for."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "rows.npy", rows)
        for key, values in files.items():
            np.save(folder / f"{key}.npy", values)
        start = time.perf_counter()
        words = [command, "lle", "rows.npy", "-k", str(K), "--variant", variant, "-o", "made.npz", "--json", "--quiet"]
        words += [*THREADS, *options]
        said = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout
        seconds = time.perf_counter() - start
        made = np.load(folder / "made.npz")
        return made["embedding"], made["piece"], json.loads(said), seconds


def neighbors(command, rows):
    with tempfile.TemporaryDirectory() as folder:
        np.save(pathlib.Path(folder, "rows.npy"), rows)
        words = [command, "knn", "rows.npy", "-k", str(K), "-o", "graph.npz", "--quiet", *THREADS]
        subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return np.load(pathlib.Path(folder, "graph.npz"))["ids"]


def by_sklearn(rows, variant, solver):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LocallyLinearEmbedding(n_neighbors=K, n_components=2, method=SKLEARN[variant], eigen_solver=solver,
                                       n_jobs=arguments.threads, random_state=0)
        return model.fit_transform(rows)


def by_tapkee(rows, variant):
    if tapkee is None:
        raise ImportError(no_tapkee)
    return tapkee.embed(np.asfortranarray(rows.T), method=TAPKEE[variant], num_neighbors=K, target_dimension=2)


def same(command):
    # Whole numbers tie: which of two equally far rows is the k-th neighbor is decided by id here, by chance there.
    # An even number of rows: of an odd one modified's median is a row's own share, and whether that is below itself is a matter
    # of how scikit-learn's two formulas for it are rounded.
    digits = datasets.load_digits().data[:1796]
    digits = digits + 1e-3 * np.random.default_rng(0).standard_normal(digits.shape)
    torn = datasets.make_swiss_roll(2000, random_state=0)[0]
    torn[1200:, 0] += 500
    sets = {"swiss": datasets.make_swiss_roll(2000, random_state=0)[0], "curve": datasets.make_s_curve(2000, random_state=0)[0],
            "noisy": datasets.make_swiss_roll(2000, noise=0.5, random_state=0)[0], "digits": digits, "torn": torn}
    for name, rows in sets.items():
        ids = neighbors(command, rows)
        for variant in VARIANTS:
            points, piece, told, _ = run(command, rows, variant, "--solver", "direct")
            factor = lle_factor.factor_of(rows, ids, variant, 2)
            ratios = {}
            for p, one in enumerate(told["pieces"]):
                inside = piece == p
                part = factor[np.any(factor[:, inside] != 0, axis=1)][:, inside]
                for what, ratio in lle_factor.differences(part, points[inside], one).items():
                    ratios[what] = float(max(ratio, ratios.get(what, 0)))
            sine = None
            # Of digits, ltsa's M has more zeros than are asked for: any two of their vectors are right.
            if variant in SKLEARN and len(told["pieces"]) == 1 and (name != "digits" or variant in ("standard", "modified")):
                basis = np.linalg.qr(by_sklearn(rows, variant, "dense"))[0]
                sine = float(np.linalg.svd(points - basis @ (basis.T @ points), compute_uv=False)[0])
            note("same", data=name, rows=len(rows), variant=variant, of_bound=ratios, sine_to_sklearn=sine)
            yield max(ratios.values()) <= 1 and (sine is None or sine <= MOST_SINE), f"{name}, {variant}: {ratios}, sine {sine}"


def quality(command):
    for name, make, noise in (("swiss", datasets.make_swiss_roll, 0), ("curve", datasets.make_s_curve, 0),
                              ("noisy", datasets.make_swiss_roll, 0.5)):
        rows, t = make(2000, noise=noise, random_state=0)
        along = t if name == "curve" else (t * np.sqrt(1 + t * t) + np.arcsinh(t)) / 2  # the curve's length
        known = np.column_stack([along, make(2000, random_state=0)[0][:, 1]])
        known -= known.mean(0)

        def left_by(points):
            basis = np.linalg.qr(points - points.mean(0))[0]
            return float(((known - basis @ (basis.T @ known)) ** 2).sum() / (known**2).sum())

        for variant in ("standard", "modified", "hessian", "ltsa"):
            points, _, told, _ = run(command, rows, variant, "--quality", "--quality-rows", "0", "--parameters", "known.npy", known=known)
            left = told["parameters"]["affine_residual"]
            theirs = {"sklearn": left_by(by_sklearn(rows, variant, "dense"))} if variant in SKLEARN else {}
            if variant in TAPKEE:
                theirs["tapkee"] = left_by(by_tapkee(rows, variant))
            note("quality", data=name, variant=variant, affine=left, procrustes=told["parameters"]["procrustes"],
                 trustworthiness=told["quality"]["trustworthiness"], continuity=told["quality"]["continuity"],
                 error=told["eigenvalue_sum"], affine_of=theirs)
            yield left <= MOST_LEFT.get((name, variant), 1) and abs(left - left_by(points)) <= 1e-12, f"{name}, {variant}: {left}"


SIZES = (10_000, 30_000, 50_000, 100_000, 1_000_000)
MOST_OF_SKLEARN = 30_000
MOST_OF_TAPKEE = 50_000


def seconds_of(call, *arguments):
    """Seconds of a peer, or the words of its failure: what we took is worth keeping without it."""
    start = time.perf_counter()
    try:
        call(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return time.perf_counter() - start


def timed_run(command, rows, variant, solver="automatic"):
    """Seconds, of the processor, too, and the most memory of one call of the command."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(pathlib.Path(folder, "rows.npy"), rows)
        with open(pathlib.Path(folder, "said.json"), "w+") as said:
            start = time.perf_counter()
            words = [command, "lle", "rows.npy", "-k", str(K), "--variant", variant, "--solver", solver]
            words += ["-o", "made.npy", "--json", "--quiet", *THREADS]
            child = subprocess.Popen(words, cwd=folder, stdout=said, stderr=subprocess.PIPE, text=True)
            refused = child.stderr.read()
            _, status, used = os.wait4(child.pid, 0)
            told = {"variant": variant, "solver": solver, "rows": len(rows), "vicinal_seconds": time.perf_counter() - start,
                    "vicinal_cpu_seconds": used.ru_utime + used.ru_stime, "vicinal_kilobytes": used.ru_maxrss}
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode != 0:
                return {**told, "refused": refused.strip()}
            said.seek(0)
            found = json.load(said)
    told["vicinal"] = {key: value for key, value in found.items() if key.endswith("_seconds")}
    told["pieces"] = len(found["pieces"])
    for key in ("fill", "flops", "iterations"):
        told[key] = sum(piece[key] for piece in found["pieces"])
    return told


def timed(command):
    for variant in VARIANTS:
        for n in SIZES:
            rows = datasets.make_swiss_roll(n, random_state=0)[0]
            told = timed_run(command, rows, variant)
            if n <= MOST_OF_SKLEARN and variant in SKLEARN and (variant == "standard" or n <= 10_000):
                told["sklearn_seconds"] = seconds_of(by_sklearn, rows, variant, "auto")
            if n <= MOST_OF_TAPKEE and variant in TAPKEE:
                told["tapkee_seconds"] = seconds_of(by_tapkee, rows, variant)
            note("times", **told)
            yield "refused" not in told, f"{variant}, {n}: {told.get('refused')}"


def error_of(factor, points):
    """|(I - W) Y|^2 of an embedding, made orthonormal and free of the constant vector: what LLE minimizes."""
    basis = np.linalg.qr(points - points.mean(0))[0]
    return float(np.square(factor @ basis).sum())


def paired(command):
    """Ours is the whole command, which reads the rows and writes the embedding, too."""
    from lu import factor_of

    rows = datasets.make_swiss_roll(arguments.rows, random_state=0)[0]
    factor = factor_of(rows, neighbors(command, rows))
    peers = {"sklearn": lambda: by_sklearn(rows, "standard", "auto"), "tapkee": lambda: by_tapkee(rows, "standard")}
    told = {"data": "swiss", "rows": len(rows), "variant": "standard", "error": {}, "failed": {}}
    told["seconds"] = {name: [] for name in ("vicinal", *peers)}
    for _ in range(arguments.repeat):
        points, _, said, seconds = run(command, rows, "standard")
        told["seconds"]["vicinal"].append(seconds)
        told["error"]["vicinal"] = error_of(factor, points)
        for name, call in peers.items():
            if name in told["failed"]:
                continue
            start = time.perf_counter()
            try:
                theirs = call()
            except Exception as error:  # a library that is not there, or that fails
                told["failed"][name] = f"{type(error).__name__}: {error}"
                continue
            told["seconds"][name].append(time.perf_counter() - start)
            told["error"][name] = error_of(factor, theirs)
    # What the command computes from its own factor; the errors are small differences of large terms.
    told["eigenvalue_sum"] = said["eigenvalue_sum"]
    norm = abs(factor).sum(1).max() * abs(factor).sum(0).max()
    off = abs(told["error"]["vicinal"] - said["eigenvalue_sum"])
    told["off_eigenvalues"] = off / said["eigenvalue_sum"]
    note("paired", **told)
    yield off <= 1e-6 * said["eigenvalue_sum"] + 2.0**-52 * norm, f"paired: error {told['error']['vicinal']}"


def covertype(folder):
    quantities = np.loadtxt(folder / "covtype/covertype_sample.csv.gz", delimiter=",", skiprows=1, usecols=range(10))
    return (quantities - quantities.mean(0)) / quantities.std(0)


def mnist(folder):
    parts = []
    for name in ("train", "t10k"):
        with gzip.open(folder / f"mnist/{name}-images-idx3-ubyte.gz") as file:
            parts.append(np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28 * 28))
    return np.concatenate(parts)


def large(command):
    folder = pathlib.Path(os.environ.get("VICINAL_DATA", "nowhere"))
    sets = {"cube": (lambda: np.random.default_rng(0).random((300_000, 3)), "automatic"),
            "covertype": (lambda: covertype(folder), "automatic"), "mnist": (lambda: mnist(folder), "lanczos")}
    for name, (rows, solver) in sets.items():
        try:
            told = timed_run(command, rows(), "standard", solver)
        except OSError as error:
            told = {"refused": str(error)}
        note("large", data=name, **told)
        yield "refused" not in told, f"{name}: {told.get('refused')}"


def main():
    global arguments
    sections = {"same": same, "quality": quality, "time": timed, "paired": paired, "large": large}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", required=True)
    parser.add_argument("sections", nargs="*", metavar="SECTION", default=list(sections))
    parser.add_argument("--rows", type=int, default=10_000, help="of paired")
    parser.add_argument("--repeat", type=int, default=3, help="turns of paired")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of the command and the peers")
    result.add_options(parser)
    arguments = parser.parse_intermixed_args()
    command = str(pathlib.Path(arguments.command).resolve())
    THREADS.extend(["--threads", str(arguments.threads)])
    failures = []
    about = {"sklearn": sklearn.__version__, "tapkee": importlib.metadata.version("tapkee") if tapkee else None,
             "threads": arguments.threads}
    # The libraries that are loaded by now: BLAS, and OpenMP of scikit-learn and tapkee.
    with threadpool_limits(arguments.threads):
        for name in arguments.sections:
            for holds, told in sections[name](command):
                if not holds:
                    failures.append(told)
                result.write(arguments, {**about, **{section: told for section, told in kept.items() if told}})
    for told in failures:
        print("not kept:", told, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Missing values filled by the nearest rows: `vicinal impute` beside scikit-learn's KNNImputer, in turns, in one run.

    missing.py [-o FILE.json] [--rows N] [--columns D] [--share S] [-k K] [--threads N] [--repeat N]
               [--commit C]

The table is normal, of a few latent factors, 100,000 x 20 with 5 % missing unless options say otherwise. Both read the
same .npy and are timed in processes of their own: seconds are of filling alone for scikit-learn (fit_transform), and of
the whole command for vicinal, with reading and writing. Values that differ by more than 1e-9 of the column's range are
counted: they can only be ties that scikit-learn's rounding breaks, of which a normal table has next to none.
VICINAL_COMMAND names the command.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
from result import processor  # noqa: E402

THEIRS = """
import sys, time, numpy, sklearn.impute
rows = numpy.load(sys.argv[1])
start = time.perf_counter()
filled = sklearn.impute.KNNImputer(n_neighbors=int(sys.argv[3])).fit_transform(rows)
print(time.perf_counter() - start, sklearn.__version__)
numpy.save(sys.argv[2], filled)
"""


def table_of(rows, columns, share):
    draw = np.random.default_rng(1)
    factors = draw.normal(size=(rows, max(1, columns // 4))) @ draw.normal(size=(max(1, columns // 4), columns))
    table = factors + 0.5 * draw.normal(size=(rows, columns))
    gaps = draw.random(table.shape) < share
    gaps[0] = False
    return np.where(gaps, np.nan, table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("-k", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)),
                        help="of vicinal, and of BLAS and OpenMP in scikit-learn, whose KNNImputer has no n_jobs")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    ours, theirs, version = [], [], ""
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(variables, str(options.threads))}
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(pathlib.Path(folder) / name) for name in ("rows.npy", "ours.npy", "theirs.npy")]
        rows = table_of(options.rows, options.columns, options.share)
        np.save(paths[0], rows)
        command = os.environ.get("VICINAL_COMMAND", "vicinal")
        for _ in range(options.repeat):
            done = subprocess.run([command, "impute", paths[0], "-k", str(options.k), "-o", paths[1], "--json", "-q",
                                   "--threads", str(options.threads)], check=True, capture_output=True, text=True)
            told = json.loads(done.stdout)
            ours.append(told["seconds"])
            done = subprocess.run([sys.executable, "-c", THEIRS, paths[0], paths[2], str(options.k)], check=True,
                                  capture_output=True, text=True, env=environment)
            seconds, version = done.stdout.split()
            theirs.append(float(seconds))
        ranges = np.nanmax(rows, axis=0) - np.nanmin(rows, axis=0)
        differing = np.abs(np.load(paths[1]) - np.load(paths[2])) > 1e-9 * ranges
    ratio = statistics.median(theirs) / statistics.median(ours)
    result = {"script": "bench/missing.py", "machine": processor(), "threads": options.threads,
              "commit": options.commit, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
              "rows": options.rows, "columns": options.columns, "share": options.share, "k": options.k,
              "filled": told["filled"], "differing": int(differing.sum()), "vicinal": {"seconds": ours},
              "scikit_learn": {"version": version, "seconds": theirs}, "ratio": ratio}
    print(f"{told['filled']} values: vicinal {statistics.median(ours):.2f} s, scikit-learn {version} "
          f"{statistics.median(theirs):.2f} s, {ratio:.1f} times as long; {result['differing']} values differ")
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Compares a vicinal classification of Fashion-MNIST with scikit-learn's KNeighborsClassifier (brute, k = 5).

Usage: against_scikit_learn.py DATA_FOLDER LABELS_CSV VICINAL_SECONDS

Two runs. The comparison is made in float64, where scikit-learn's |x|^2 - 2xy + |y|^2 is exact for pixels (every term
is a whole number below 2^53), so both programs rank by the same true distances. The time is that of a run in float32,
scikit-learn's fastest way, so that the faster of its two ways is the one compared with. Both use every core.
"""

import csv
import gzip
import pathlib
import sys
import time

import numpy as np
import sklearn
from sklearn.neighbors import KNeighborsClassifier


def read_idx(path):
    with gzip.open(path) as file:
        data = file.read()
    header = 4 + 4 * data[3]  # byte 3 is the number of dimensions, each a big-endian uint32
    shape = np.frombuffer(data[4:header], ">u4")
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape[0], -1)


def predict(train, labels, test, dtype):
    train, test = train.astype(dtype), test.astype(dtype)
    started = time.perf_counter()
    predicted = KNeighborsClassifier(n_neighbors=5, algorithm="brute", n_jobs=-1).fit(train, labels).predict(test)
    return predicted, time.perf_counter() - started


def main():
    folder, labels_csv, seconds = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    train, test = (read_idx(folder / f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k"))
    labels, truth = (read_idx(folder / f"{part}-labels-idx1-ubyte.gz").ravel() for part in ("train", "t10k"))
    with open(labels_csv, newline="") as file:
        ours = np.array([int(line["label"]) for line in csv.DictReader(file)])
    assert ours.shape == truth.shape, f"{labels_csv} holds {ours.size} labels for {truth.size} images"

    single, single_seconds = predict(train, labels, test, np.float32)
    double, double_seconds = predict(train, labels, test, np.float64)
    print(f"vicinal              {seconds:6.1f} s  accuracy {np.mean(ours == truth):.4f}  (file reading and report included)")
    print(f"scikit-learn {sklearn.__version__:7} {single_seconds:6.1f} s  accuracy {np.mean(single == truth):.4f}  float32, "
          f"{np.sum(single != double)} of its labels differ from its float64 run")
    print(f"scikit-learn {sklearn.__version__:7} {double_seconds:6.1f} s  accuracy {np.mean(double == truth):.4f}  float64")
    different = np.flatnonzero(ours != double)
    if different.size:
        print(f"FAILED: {different.size} predictions differ from scikit-learn's; the first rows: {different[:10].tolist()}")
        return 1
    print(f"All {ours.size:,} predictions equal scikit-learn's.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

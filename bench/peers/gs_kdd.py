"""The GS paper's robustness experiment on KDD Cup 99, beside scikit-learn's classifier.

    gs_kdd.py [-o FILE.json] [--draws N] [--commit C] [--synthetic]

A draw: 5,000 training rows (4,900 normal ones, 100 attacks) of $VICINAL_DATA/kddcup99/kddcup.data_10_percent.gz, and 500
test rows of corrected.gz (400 normal ones, 100 attacks of kinds that the training rows do not have); each
kind of attack has the same chance, whatever its rows. Both classifiers get
the same rows: text columns as numbers in sorted order, a text not seen in training as the number after the last, columns
to mean 0 and deviation 1. Ours reads them as text from CSV files and prepares them itself (`vicinal classify --categories
ordinal --scale standard`); VICINAL_COMMAND names the command.

Printed for each k, over all draws: detection rate (attacks called attacks), false alarms (normal rows called attacks),
and how many predictions differ. A row may differ only where its k-th and next neighbor are equally far, within 1e-12:
those rows are counted, and any other difference ends the script with 1. Where the files are not there, or by --synthetic,
rows are made by `vicinal generate` with the same columns, types and repeated rows, and everything says "synthetic".
"""

import argparse
import csv
import datetime
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import sklearn
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.preprocessing import StandardScaler

from result import processor

COLUMNS, TEXT_COLUMNS = 41, (1, 2, 3)
NORMAL, ATTACKS, TEST_NORMAL, TEST_ATTACKS = 4900, 100, 400, 100
NEIGHBORS = (1, 3, 5, 7, 9, 15, 25, 51)
TIED = 1e-12


def command():
    return os.environ.get("VICINAL_COMMAND", "vicinal")


def read(path):
    """Rows of texts and the kind of each."""
    with gzip.open(path, "rt") as lines:
        rows = [line.rstrip("\n").rstrip(".").split(",") for line in lines if line.strip()]
    return [row[:COLUMNS] for row in rows], np.array([row[COLUMNS] for row in rows])


def made(folder, seed):
    """A twin: clusters as kinds, half of them normal; text columns, and so few values in the others that rows repeat."""
    points, labels = folder / "made.npy", folder / "made_labels.npy"
    subprocess.run([command(), "generate", "blobs", "-n", "40000", "-d", str(COLUMNS), "--centers", "24", "--noise", "0.4",
                    "--seed", str(seed), "-o", points, "--labels", labels, "--quiet"], check=True)
    numbers = np.round(np.load(points) / 2).astype(int)
    numbers[:, 8:] *= numbers[:, 8:] > 3  # most columns are mostly 0
    words = [["icmp", "tcp", "udp"], [f"service_{i}" for i in range(11)], [f"S{i}" for i in range(7)]]
    rows = [[str(v) for v in row] for row in numbers]
    for row, values in zip(rows, numbers):
        for j, names in zip(TEXT_COLUMNS, words):
            row[j] = names[values[j] % len(names)]
    kinds = np.load(labels)
    return rows, np.where(kinds % 2 == 0, "normal", np.char.add("attack_", kinds.astype(str)))


def evenly(generator, rows, kinds, count):
    """Rows drawn such that each kind has the same chance, however many rows it has: smurf alone is half of the file."""
    _, kind, counts = np.unique(kinds[rows], return_inverse=True, return_counts=True)
    chances = 1 / counts[kind]
    return generator.choice(rows, count, replace=False, p=chances / chances.sum())


def draw(generator, train, test):
    """Positions of training and test rows."""
    kinds, test_kinds = train[1], test[1]
    normal, attacks = np.flatnonzero(kinds == "normal"), np.flatnonzero(kinds != "normal")
    # Half of the kinds of attacks are not drawn, so that some are left to be unseen.
    some = generator.permutation(np.unique(kinds[attacks]))
    attacks = attacks[np.isin(kinds[attacks], some[: (len(some) + 1) // 2])]
    rows = np.concatenate([generator.choice(normal, NORMAL, replace=False), evenly(generator, attacks, kinds, ATTACKS)])
    unseen = np.flatnonzero(~np.isin(test_kinds, kinds[rows]) & (test_kinds != "normal"))
    asked = np.concatenate([generator.choice(np.flatnonzero(test_kinds == "normal"), TEST_NORMAL, replace=False),
                            evenly(generator, unseen, test_kinds, TEST_ATTACKS)])
    return rows, asked


def numbers_of(train, test):
    """Codes of texts and scaled columns, by the training rows."""
    tables = [np.empty((len(rows), COLUMNS)) for rows in (train, test)]
    for j in range(COLUMNS):
        columns = [[row[j] for row in rows] for rows in (train, test)]
        if j in TEXT_COLUMNS:
            code = {text: i for i, text in enumerate(sorted(set(columns[0])))}
            columns = [[code.get(text, len(code)) for text in column] for column in columns]
        for table, column in zip(tables, columns):
            table[:, j] = column
    scaler = StandardScaler().fit(tables[0])
    return scaler.transform(tables[0]), scaler.transform(tables[1])


def write(path, rows, classes):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([f"c{j}" for j in range(COLUMNS)] + ["class"])
        writer.writerows(row + [name] for row, name in zip(rows, classes))


def ours(folder, k):
    subprocess.run([command(), "classify", "train.csv", "test.csv", "--label", "class", "-k", str(k), "--categories",
                    "ordinal", "--scale", "standard", "-o", "said.csv", "--quiet"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    with open(folder / "said.csv") as lines:
        return np.array([line["label"] for line in csv.DictReader(lines)])


def rates(said, truth):
    attack = truth == "attack"
    return float(np.mean(said[attack] == "attack")), float(np.mean(said[~attack] == "attack"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--commit", default="")
    parser.add_argument("--synthetic", action="store_true")
    options = parser.parse_args()
    data = pathlib.Path(os.environ.get("VICINAL_DATA", "nowhere")) / "kddcup99"
    synthetic = options.synthetic or not (data / "corrected.gz").is_file()
    lines = {k: {"ours": [], "scikit_learn": [], "different": 0, "tied": 0, "different_untied": 0} for k in NEIGHBORS}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if synthetic:
            train = test = made(folder, 1999)
        else:
            train, test = read(data / "kddcup.data_10_percent.gz"), read(data / "corrected.gz")
        for number in range(options.draws):
            rows, asked = draw(np.random.Generator(np.random.PCG64(number)), train, test)
            texts = [train[0][i] for i in rows], [test[0][i] for i in asked]
            classes = [np.where(part == "normal", "normal", "attack") for part in (train[1][rows], test[1][asked])]
            for path, part, truth in zip(("train.csv", "test.csv"), texts, classes):
                write(folder / path, part, truth)
            table, queries = numbers_of(*texts)
            # Of scikit-learn's searches its tree takes plain differences; brute force expands the square, and cancels.
            search = NearestNeighbors(algorithm="kd_tree").fit(table)
            distances, _ = search.kneighbors(queries, max(NEIGHBORS) + 1)
            for k, line in lines.items():
                theirs = KNeighborsClassifier(k, algorithm="kd_tree").fit(table, classes[0]).predict(queries)
                mine = ours(folder, k)
                tied = distances[:, k] - distances[:, k - 1] <= TIED * distances[:, k]
                line["ours"].append(rates(mine, classes[1]))
                line["scikit_learn"].append(rates(theirs, classes[1]))
                line["tied"] += int(tied.sum())
                line["different"] += int((mine != theirs).sum())
                line["different_untied"] += int(((mine != theirs) & ~tied).sum())
    report(options, synthetic, lines)


def report(options, synthetic, lines):
    source = "synthetic" if synthetic else "KDD Cup 99"
    print(f"{source}: {options.draws} draws of {NORMAL + ATTACKS} training and {TEST_NORMAL + TEST_ATTACKS} test rows; "
          "means over draws, in percent")
    print("  k  detected  scikit-learn  false alarms  scikit-learn  tied rows  different  of these not tied")
    results = []
    for k, line in lines.items():
        mean = {who: [statistics.fmean(draw[i] for draw in line[who]) for i in (0, 1)] for who in ("ours", "scikit_learn")}
        print(f"{k:3}  {100 * mean['ours'][0]:8.2f}  {100 * mean['scikit_learn'][0]:12.2f}  "
              f"{100 * mean['ours'][1]:12.3f}  {100 * mean['scikit_learn'][1]:12.3f}  {line['tied']:9}  "
              f"{line['different']:9}  {line['different_untied']:17}")
        results.append({"k": k, **line})
    wrong = sum(line["different_untied"] for line in lines.values())
    asked = options.draws * (TEST_NORMAL + TEST_ATTACKS) * len(lines)
    print(f"{asked} predictions, {wrong} differ on rows that are not tied ({source})")
    if options.output:
        head = {"script": "bench/peers/gs_kdd.py", "data": source, "machine": processor(), "commit": options.commit,
                "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
                "scikit_learn": sklearn.__version__, "tied_within": TIED, "draws": options.draws,
                "rates": "[detection, false alarms] a draw"}
        pathlib.Path(options.output).write_text(json.dumps({**head, "lines": results}, indent=1) + "\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

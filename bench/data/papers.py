"""The data of the LOF paper: 20,000 rows and 5,000 queries of KDD Cup 99, Poker and Covertype, float32.

    papers.py FOLDER

reads what $VICINAL_DATA has of kddcup99/kddcup.data_10_percent.gz, poker/poker-hand-testing.data.xz and
adbench/10_cover.npz, and writes FOLDER/kdd-table.npy, FOLDER/kdd-queries.npy and so on for `vicinal-bench papers lof
--data-dir`, and FOLDER/kdd-pool.npy for `gs-attacks`: 60,000 rows of KDD with the number of their kind (0: normal) as
the last column. KDD has 41 columns, of which a text one becomes the position of its value among the sorted ones; Poker
has the 10 of its cards and Covertype its 10 quantities. Nothing is scaled. Rows and queries are different lines, drawn
with a fixed seed.
"""

import gzip
import lzma
import os
import pathlib
import sys

import numpy as np

ROWS, QUERIES = 20_000, 5_000
POOL, RARE = 60_000, 10_000


def lines_of(path, columns, opened):
    with opened(path, "rt") as lines:
        return [line.split(",")[:columns] for line in lines if line.strip()]


def kdd(folder):
    return numbers_of(lines_of(folder / "kddcup99" / "kddcup.data_10_percent.gz", 41, gzip.open))


def kdd_pool(folder):
    """Rows drawn such that rare kinds are all there, and a column of their kinds."""
    records = lines_of(folder / "kddcup99" / "kddcup.data_10_percent.gz", 42, gzip.open)
    kinds = np.array([record[41].strip().rstrip(".") for record in records])
    names = ["normal", *sorted(set(kinds) - {"normal"})]
    numbers = numbers_of([record[:41] for record in records])
    rows = np.column_stack([numbers, [names.index(kind) for kind in kinds]]).astype(np.float32)
    order = np.random.Generator(np.random.PCG64(2019)).permutation(len(rows))
    rare = [name for name in names if np.sum(kinds == name) < RARE]
    kept = np.isin(kinds[order], rare)
    return np.concatenate([rows[order[kept]], rows[order[~kept]][: POOL - kept.sum()]])


def numbers_of(records):
    numbers = np.empty((len(records), 41), np.float32)
    for j, column in enumerate(zip(*records)):
        if j in (1, 2, 3):  # protocol, service, flag
            code = {value: i for i, value in enumerate(sorted(set(column)))}
            column = [code[value] for value in column]
        numbers[:, j] = np.array(column, np.float64)
    return numbers


def poker(folder):
    return np.array(lines_of(folder / "poker" / "poker-hand-testing.data.xz", 10, lzma.open), np.float32)


def covertype(folder):
    return np.load(folder / "adbench" / "10_cover.npz")["X"].astype(np.float32)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    if "VICINAL_DATA" not in os.environ:
        sys.exit("papers.py: VICINAL_DATA does not name the folder that holds kddcup99/, poker/ and adbench/")
    source = pathlib.Path(os.environ["VICINAL_DATA"])
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for make in (kdd, poker, covertype):
        try:
            numbers = make(source)
        except FileNotFoundError as error:
            print(f"papers.py: {make.__name__}: no {error.filename}; `bench papers` makes rows instead")
            continue
        order = np.random.Generator(np.random.PCG64(2015)).permutation(len(numbers))
        np.save(target / f"{make.__name__}-table.npy", numbers[order[:ROWS]])
        np.save(target / f"{make.__name__}-queries.npy", numbers[order[ROWS : ROWS + QUERIES]])
    if (source / "kddcup99" / "kddcup.data_10_percent.gz").exists():
        np.save(target / "kdd-pool.npy", kdd_pool(source))


if __name__ == "__main__":
    main()

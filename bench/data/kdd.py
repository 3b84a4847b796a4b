"""KDD Cup 99 (10 percent) as numbers: 100,000 rows and 10,000 queries of 41 columns, float32.

    kdd.py FOLDER

reads $VICINAL_DATA/kddcup99/kddcup.data_10_percent.gz and writes FOLDER/kdd-table.npy and FOLDER/kdd-queries.npy for
`vicinal-bench knn --table-file --queries-file`. A text column becomes the position of its value among the sorted ones;
nothing is scaled. Table and queries are different lines of the file, drawn with a fixed seed. Two thirds of the file's
lines repeat another one, so the table is full of exact ties.
"""

import gzip
import os
import pathlib
import sys

import numpy as np

TEXT_COLUMNS = (1, 2, 3)  # protocol, service, flag
ROWS, QUERIES, COLUMNS = 100_000, 10_000, 41


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    if "VICINAL_DATA" not in os.environ:
        sys.exit("kdd.py: VICINAL_DATA does not name the folder that holds kddcup99/")
    source = pathlib.Path(os.environ["VICINAL_DATA"]) / "kddcup99" / "kddcup.data_10_percent.gz"
    with gzip.open(source, "rt") as lines:
        records = [line.split(",")[:COLUMNS] for line in lines if line.strip()]
    columns = list(zip(*records))
    numbers = np.empty((len(records), COLUMNS), np.float32)
    for j, column in enumerate(columns):
        if j in TEXT_COLUMNS:
            code = {value: i for i, value in enumerate(sorted(set(column)))}
            column = [code[value] for value in column]
        numbers[:, j] = np.array(column, np.float64)
    # PCG64 and its choice of whole permutations are as stable as NumPy's bit streams are.
    order = np.random.Generator(np.random.PCG64(1999)).permutation(len(numbers))
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "kdd-table.npy", numbers[order[:ROWS]])
    np.save(folder / "kdd-queries.npy", numbers[order[ROWS : ROWS + QUERIES]])


if __name__ == "__main__":
    main()

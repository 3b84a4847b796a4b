"""Real data for the measurements on a CUDA device (bench/gpu), in two folders that may travel apart.

    gpu.py FOLDER

writes FOLDER/real (36 MB): kdd.npz (KDD Cup 99, all lines of the 10 percent file: a table of 484,021 rows and 10,000
queries of 41 columns, float32, made as kdd.py makes them; two thirds of the lines repeat another one), and
Fashion-MNIST's four files as Debian's dataset-fashion-mnist has them (VICINAL_FASHION names another folder); and
FOLDER/papers (8 MB): what papers.py writes, and the classical k-means tools' data. It reads $VICINAL_DATA. What is
not there is left out and said.
"""

import os
import pathlib
import shutil
import sys

import numpy as np

import papers

QUERIES = 10_000
FASHION = "/usr/share/datasets/fashion-mnist"


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    if "VICINAL_DATA" not in os.environ:
        sys.exit("gpu.py: VICINAL_DATA does not name the folder that holds kddcup99/, poker/ and adbench/")
    folder = pathlib.Path(sys.argv[1]) / "real"
    folder.mkdir(parents=True, exist_ok=True)
    sys.argv[1] = str(pathlib.Path(sys.argv[1]) / "papers")
    papers.main()
    try:
        numbers = papers.kdd(pathlib.Path(os.environ["VICINAL_DATA"]))
        order = np.random.Generator(np.random.PCG64(1999)).permutation(len(numbers))
        np.savez_compressed(folder / "kdd.npz", table=numbers[order[:-QUERIES]], queries=numbers[order[-QUERIES:]])
    except FileNotFoundError as error:
        print(f"gpu.py: no {error.filename}")
    images = pathlib.Path(os.environ["VICINAL_DATA"]) / "image_data"
    for source in images.glob("*"):
        shutil.copy(source, sys.argv[1])
    if not images.exists():
        print(f"gpu.py: no {images}")
    fashion = pathlib.Path(os.environ.get("VICINAL_FASHION", FASHION))
    for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        source = fashion / f"{part}-ubyte.gz"
        if source.exists():
            shutil.copy(source, folder)
        else:
            print(f"gpu.py: no {source}")


if __name__ == "__main__":
    main()

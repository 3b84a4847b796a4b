"""The choice of k on Fashion-MNIST, and what one search takes: k = 1 to 25 by 5 folds against k = 25 within the table.

    cross_validation.py [-o FILE.json] [--repeat N] [--commit C]

Both are timed by turns, in processes of their own; VICINAL_COMMAND names the command. Seconds are the command's own, from
the table in memory on: preparing it and one search within it; and for the choice the same with all that follows, lists
without the rows of a row's fold, rows topped up, votes for every k. Processor seconds are those of the whole process, so
that other work on the machine does not show in them. The images come from Debian's dataset-fashion-mnist.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
from result import processor  # noqa: E402

FOLDER = pathlib.Path("/usr/share/datasets/fashion-mnist")
IMAGES, LABELS = FOLDER / "train-images-idx3-ubyte.gz", FOLDER / "train-labels-idx1-ubyte.gz"


def run(arguments):
    """What the command says, and the processor seconds that it took."""
    before = os.times()
    done = subprocess.run([os.environ.get("VICINAL_COMMAND", "vicinal"), *map(str, arguments), "--json", "--quiet"],
                          check=True, capture_output=True, text=True)
    after = os.times()
    return json.loads(done.stdout), after.children_user + after.children_system - before.children_user - before.children_system


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    if not IMAGES.is_file():
        sys.exit(f"cross_validation.py: {IMAGES} is not there (Debian's dataset-fashion-mnist)")
    times = {name: {"seconds": [], "processor_seconds": []} for name in ("search", "choice")}
    for _ in range(options.repeat):
        told, spent = run(["knn", IMAGES, "-k", 25])
        times["search"]["seconds"].append(told["stats"]["prepare_seconds"] + told["stats"]["search_seconds"])
        times["search"]["processor_seconds"].append(spent)
        told, spent = run(["classify", IMAGES, "--labels", LABELS, "--k", "1..25", "--cv", 5, "--seed", 1])
        chosen = told["cross_validation"]
        times["choice"]["seconds"].append(told["stats"]["prepare_seconds"] + chosen["search_seconds"] + chosen["score_seconds"])
        times["choice"]["processor_seconds"].append(spent)
    result = {"script": "bench/cross_validation.py", "machine": processor(), "commit": options.commit,
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "rows": 60000, "columns": 784,
              "threads": told["plan"]["threads"], "k": chosen["k"], "accuracy": chosen["best"],
              "topped_up": chosen["topped_up"], "neighbors_searched": chosen["neighbors_searched"], **times}
    for clock in ("seconds", "processor_seconds"):
        middle = {name: statistics.median(one[clock]) for name, one in times.items()}
        result[f"{clock}_ratio"] = middle["choice"] / middle["search"]
        print(f"{clock}: one search {middle['search']:.2f}, the choice {middle['choice']:.2f}, "
              f"{result[f'{clock}_ratio']:.2f} times as much")
    print(f"k = {chosen['k']} with {100 * chosen['best']:.2f} % right")
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""What `vicinal lle` takes on a CUDA device, from the command's start to the embedding in host memory.

    lle_device.py --command build/release/cli/vicinal [-o result.json] [--mnist train-images-idx3-ubyte.gz] [--most 10000000]

Swiss rolls of 100,000, a million and ten million rows by every variant, a million of them on the host alone, 300,000 points of a
cube, and what is not cheap to factor: MNIST's training images by products, by the factor, and as `automatic` chooses.
It needs NumPy, and 64 GB of device memory for the largest.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

import numpy as np

import result

VARIANTS = ("standard", "modified", "hessian", "hessian_sklearn", "ltsa")
RUNS = {100_000: 3, 1_000_000: 3, 10_000_000: 2}
OF_PIECES = ("fill", "flops", "iterations", "counted")


def run(command, file, *options):
    """What the command tells, its own clock's seconds among it."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([command, "lle", str(file), "-k", "12", "--dim", "2", "--json", "--quiet", "-o", f"{folder}/made.npy", *options],
                              text=True, capture_output=True)
    if done.returncode != 0:
        return {"refused": done.stderr.strip()}
    said = json.loads(done.stdout)
    told = {key: value for key, value in said.items() if key == "seconds" or key.endswith("_seconds")}
    told["solver"] = said["pieces"][0]["solver"]
    told["device_memory"] = said["plan"]["device_memory_bytes"]
    for key in OF_PIECES:
        told[key] = said["pieces"][0].get(key)
    return told


def median_of(runs):
    refused = [told for told in runs if "refused" in told]
    if refused:
        return refused[0]
    return {key: statistics.median(told[key] for told in runs) if isinstance(value, float) else value for key, value in runs[0].items()}


def measured(arguments, folder):
    command = arguments.command

    def row(data, file, count, *options, **about):
        return {"data": data, **about, "runs": count, **median_of([run(command, file, *options) for _ in range(count)])}

    for n, count in RUNS.items():
        if n > arguments.most:
            continue
        file = folder / f"swiss-{n}.npy"
        subprocess.run([command, "generate", "swiss-roll", "--rows", str(n), "-o", str(file)], check=True, capture_output=True)
        for variant in VARIANTS:
            options = ["--device", "cuda", "--solver", "direct", "--variant", variant]
            yield row("swiss-roll", file, count, *options, "--no-count", rows=n, variant=variant, device="cuda")
            if n < 10_000_000:
                yield row("swiss-roll", file, count, *options, rows=n, variant=variant, device="cuda", count_asked=True)
        if n == 1_000_000:
            yield row("swiss-roll", file, 1, "--device", "cpu", "--no-count", rows=n, variant="standard", device="cpu")
        file.unlink()
    np.save(folder / "cube.npy", np.random.default_rng(0).random((300_000, 3)))
    for solver in ("direct", "automatic"):
        yield row("cube", folder / "cube.npy", 2, "--device", "cuda", "--solver", solver, rows=300_000, variant="standard", device="cuda",
                  asked=solver)
    if arguments.mnist:
        for solver in ("direct", "lanczos", "automatic"):
            yield row("mnist", arguments.mnist, 2, "--device", "cuda", "--solver", solver, rows=60_000, variant="standard",
                      device="cuda", asked=solver)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", required=True)
    parser.add_argument("--mnist", help="MNIST's 60,000 training images")
    parser.add_argument("--most", type=int, default=max(RUNS), help="rows of a Swiss roll")
    result.add_options(parser)
    arguments = parser.parse_args()
    arguments.command = str(pathlib.Path(arguments.command).resolve())
    kept = []
    with tempfile.TemporaryDirectory() as folder:
        for told in measured(arguments, pathlib.Path(folder)):
            print(json.dumps(told), flush=True)
            kept.append(told)
            result.write(arguments, {"rows": kept})


if __name__ == "__main__":
    main()

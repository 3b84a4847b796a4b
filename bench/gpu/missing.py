"""Missing values filled by the nearest rows, on the CPU and on a CUDA device in turns, in one run.

  python3 missing.py FOLDER [-o FILE.json] [--rows N] [--columns D] [--share S] [-k K] [--repeat N]

FOLDER holds the command, the library and its plug-in (carry.sh). The table is normal, of a few latent factors,
100,000 x 20 with 10 % missing unless options say otherwise. Seconds are those of the whole command, with reading and
writing .npy; the first run on the device, which also loads the kernels, is left out. Exits with 1 where the bits differ.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np


def table_of(rows, columns, share):
    draw = np.random.default_rng(1)
    factors = draw.normal(size=(rows, max(1, columns // 4))) @ draw.normal(size=(max(1, columns // 4), columns))
    table = factors + 0.5 * draw.normal(size=(rows, columns))
    gaps = draw.random(table.shape) < share
    gaps[0] = False
    return np.where(gaps, np.nan, table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("-k", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    folder = options.folder.resolve()
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}",
                   "VICINAL_CUDA_PLUGIN": str(folder / "libvicinal_cuda.so")}
    seconds = {"cpu": [], "cuda": []}
    plans = {}
    with tempfile.TemporaryDirectory() as place:
        given = pathlib.Path(place) / "rows.npy"
        np.save(given, table_of(options.rows, options.columns, options.share))
        for turn in range(options.repeat + 1):
            for device in seconds:
                if turn == 0 and device == "cpu":
                    continue
                done = subprocess.run([folder / "vicinal", "impute", given, "-k", str(options.k), "--device", device,
                                       "-o", pathlib.Path(place) / f"{device}.npy", "--json", "-q"],
                                      check=True, capture_output=True, text=True, env=environment)
                told = json.loads(done.stdout)
                plans[device] = told["plan"]
                if turn > 0:
                    seconds[device].append(told["seconds"])
                print(device, told["seconds"], flush=True)
        filled = [np.load(pathlib.Path(place) / f"{device}.npy").view(np.uint64) for device in seconds]
    doctor = subprocess.run([folder / "vicinal", "doctor", "--json"], capture_output=True, text=True, env=environment)
    machine = json.loads(doctor.stdout) if doctor.returncode == 0 else None
    if machine and machine["cuda"]["plugin"]:
        machine["cuda"]["plugin"] = pathlib.Path(machine["cuda"]["plugin"]).name
    result = {"script": "bench/gpu/missing.py", "date": time.strftime("%Y-%m-%d"),
              "commit": (folder / "commit").read_text().strip() if (folder / "commit").exists() else None,
              "machine": machine, "rows": options.rows, "columns": options.columns, "share": options.share,
              "k": options.k, "filled": told["filled"], "seconds": seconds, "plans": plans,
              "ratio": statistics.median(seconds["cpu"]) / statistics.median(seconds["cuda"]),
              "values_with_other_bits": int(np.count_nonzero(filled[0] != filled[1]))}
    print(f"{told['filled']} values: cpu {statistics.median(seconds['cpu']):.2f} s, "
          f"cuda {statistics.median(seconds['cuda']):.2f} s, {result['values_with_other_bits']} with other bits")
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if result["values_with_other_bits"] else 0


if __name__ == "__main__":
    sys.exit(main())

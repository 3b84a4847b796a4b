"""How the script of a row is called, and how its process is ended when it takes too long."""

import contextlib
import json
import os
import pathlib
import random
import shlex
import signal
import subprocess
import sys

import catalog
from environments import PEERS, Unavailable, last_line

SOURCE = PEERS.parents[1]
SCRIPTS = {"kmeans": PEERS / "kmeans.py", "lof": PEERS / "lof.py", "lof_packages": PEERS / "lof.py",
           "lle": PEERS / "lle.py", "ordering": PEERS / "ordering.py", "density": PEERS / "density.py",
           "optics": PEERS / "density.py",
           "match": PEERS / "match.py", "ready": PEERS / "ready_index.py", "read": PEERS / "read_csv.py",
           "missing": SOURCE / "bench/missing.py", "cudss": PEERS / "cudss.py"}
GPU_SCRIPTS = {"gpu_knn": "knn.py", "gpu_kmeans": "kmeans.py"}
# What libraries read that are not told their number of threads by a call.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Builds:
    """Programs and libraries of the build tree that `vicinal-bench` is in."""

    def __init__(self, bench):
        self.bench = pathlib.Path(bench).resolve()
        self.root = self.bench.parent.parent

    def command(self):
        return self.need(self.root / "cli/vicinal", "vicinal_cli")

    def package(self):
        self.need(self.root / "python/vicinal/__init__.py", "the Python package (VICINAL_BUILD_PYTHON)")
        return self.root / "python"

    def need(self, path, target):
        if not path.exists():
            raise Unavailable(f"{path} is not there; build {target}")
        return path

    def version(self):
        done = subprocess.run([self.bench, "--version"], capture_output=True, text=True)
        return done.stdout.strip().split()[-1] if done.stdout.strip() else "unknown"


class Run:
    """One row at one size. Files that rows share are in `work`."""

    def __init__(self, row, size, options, builds, python, work, folder):
        self.row, self.size, self.options, self.builds = row, size, options, builds
        self.python, self.work, self.output = python, work, folder / "result.json"
        self.folder = folder

    def words(self):
        text = catalog.words(self.row, self.size)
        return shlex.split(text.format(work=shlex.quote(str(self.work)), data=os.environ.get("VICINAL_DATA", "")))

    def command(self):
        """(words, environment) of the script's process."""
        row, options, threads = self.row, self.options, str(self.options.threads)
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **dict.fromkeys(THREAD_VARIABLES, threads)}
        if row.script == "knn":
            return [self.builds.bench, "knn", *self.words(), "--verify", "--threads", threads, "--device", "cpu",
                    "--peers", ",".join(row.peers), "--peers-python", self.python, "--peers-dir", PEERS,
                    "--peer-timeout", max(1, int(options.timeout / (len(row.peers) + 1))), "--commit", options.commit,
                    "-o", self.output, "--quiet"], environment
        if row.script in GPU_SCRIPTS:
            carried = self.carried()
            folders = [str(carried), environment.get("LD_LIBRARY_PATH")]
            environment["LD_LIBRARY_PATH"] = ":".join(folder for folder in folders if folder)
            environment["VICINAL_CUDA_PLUGIN"] = str(carried / "libvicinal_cuda.so")
            return [self.python, carried / GPU_SCRIPTS[row.script], carried, *self.words(), "-o", self.output,
                    "--commit", options.commit, "--threads", threads], environment
        environment["VICINAL_COMMAND"] = str(self.builds.command())
        words = [self.python, SCRIPTS[row.script]]
        if row.script == "match":
            words.append(self.builds.command())
        elif row.script in ("ready", "read"):
            words += ["--bench" if row.script == "ready" else "--command", self.builds.bench]
        elif row.script != "missing":
            words += ["--command", self.builds.command()]
        if row.script in ("ready", "density"):
            environment["PYTHONPATH"] = str(self.builds.package())
        # The full size of `ready` has searches on one thread, too; PDX has no others.
        one_too = row.script == "ready" and self.size == "full" and options.threads > 1
        words += ["--threads", f"1,{threads}" if one_too else threads]
        if row.script == "kmeans":
            words += ["--peers", ",".join(row.peers)]
        if row.script == "density":
            words += [word for peer in row.peers for word in ("--peer", peer)]
            words += ["--timeout", str(min(600, options.timeout / (len(row.peers) + 1)))]
        if row.script == "cudss":
            words += ["--library", self.cudss(), "--ours", "cuda"]
        return [*words, *self.words(), "--commit", options.commit, "-o", self.output], environment

    def carried(self):
        """The folder of bench/gpu/carry.sh, made from this build."""
        self.builds.need(self.builds.root / "src/libvicinal_cuda.so", "vicinal_cuda")
        folder = self.work / "gpu"
        done = subprocess.run([SOURCE / "bench/gpu/carry.sh", self.builds.root, folder], capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(f"bench/gpu/carry.sh failed: {last_line(done.stderr)}")
        return folder

    def cudss(self):
        ask = "import nvidia.cu13, pathlib; print(*pathlib.Path(nvidia.cu13.__path__[0]).rglob('libcudss.so*'))"
        done = subprocess.run([self.python, "-c", ask], capture_output=True, text=True)
        if done.returncode != 0 or not done.stdout.strip():
            raise Unavailable("nvidia-cudss-cu13 is not installed")
        return done.stdout.split()[0]

    def result(self):
        """(what the script wrote or None, why it ended badly or None)."""
        words, environment = self.command()
        log = self.folder / "log"
        with open(log, "w") as out:
            child = subprocess.Popen(list(map(str, words)), env=environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=out, start_new_session=True)
            try:
                code, fault = child.wait(self.options.timeout), None
            except subprocess.TimeoutExpired:
                code, fault = None, f"it did not end in {self.options.timeout:g} s (--timeout)"
            finally:
                end(child)
        if code:
            fault = f"its script ended with exit code {code}: {last_line(log.read_text(errors='replace'))[:300]}"
        try:
            return json.loads(self.output.read_text()), fault
        except (OSError, ValueError):
            return None, fault or "its script wrote no result"


def end(child):
    """Ends a script that still runs: it may first end what it has started in process groups of their own."""
    for kind, seconds in ((signal.SIGTERM, 10), (signal.SIGKILL, None)):
        if child.poll() is None:
            os.killpg(child.pid, kind)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(seconds)


def missing_need(row, size):
    """Why the data of a row is not there, or None."""
    need = row.quick_needs if size != "full" and row.quick_needs is not None else row.needs
    if need.startswith("/"):
        return None if pathlib.Path(need).exists() else f"{need} is not there (Debian's dataset-fashion-mnist)"
    if not need:
        return None
    data = os.environ.get("VICINAL_DATA")
    if not data:
        return f"VICINAL_DATA does not name a folder that has {need}"
    return None if (pathlib.Path(data) / need).exists() else f"VICINAL_DATA has no {need}"


def missing_device():
    """Why rows of a device cannot be run, or None."""
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return "there is no CUDA device (nvidia-smi cannot be run)"
    return None if done.returncode == 0 and "GPU" in done.stdout else "there is no CUDA device (nvidia-smi lists none)"


def prepare(row, size, python, work):
    """Makes the files that the words of a row name."""
    text = catalog.words(row, size)
    if "kdd-table" in text and not (work / "kdd-queries.npy").exists():
        done = subprocess.run([python, SOURCE / "bench/data/kdd.py", work], capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(f"bench/data/kdd.py failed: {last_line(done.stderr)}")
    for word in shlex.split(text):
        if "squares-" in word and word.endswith("-old.geojson"):
            make_squares(work, int(word.split("squares-")[1].split("-")[0]))


def make_squares(work, count):
    """Two maps of about `count` rectangles: those of the second are moved and resized, and some are new."""
    draws, side = random.Random(1), round(count**0.5)

    def rectangle(i, j, shift):
        x, y = 30 * i + draws.uniform(0, shift), 30 * j + draws.uniform(0, shift)
        width, height = 20 + draws.uniform(0, shift), 20 + draws.uniform(0, shift)
        corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
        # Degrees, about a meter each unit.
        ring = [[1e-5 * easting, 1e-5 * northing] for easting, northing in corners]
        code = f"{i}-{j}"  # by which topo-tools names pairs
        return {"type": "Feature", "properties": {"code": code}, "geometry": {"type": "Polygon", "coordinates": [ring]}}

    for name, shift in (("old", 0.0), ("new", 9.0)):
        features = [rectangle(i, j, shift) for i in range(side) for j in range(side)
                    if name == "old" or draws.random() < 0.9]
        path = work / f"squares-{count}-{name}.geojson"
        path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


if __name__ == "__main__":
    sys.exit("command.py is a part of `vicinal-bench peers`")

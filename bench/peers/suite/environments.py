"""Virtual environments of the peers: which packages each has, and how it is made from the package registry.

An environment is a folder below bench/ with a file `made-from`, the hash of its requirements. It is made again when
these change. A Python that the user names is taken as it is.
"""

import dataclasses
import hashlib
import os
import pathlib
import shutil
import subprocess

PEERS = pathlib.Path(__file__).resolve().parents[1]


class Unavailable(Exception):
    """Why something could not be used, in one sentence."""


@dataclasses.dataclass(frozen=True)
class Environment:
    folder: str
    requirements: str
    pythons: tuple[str, ...] = ("3.11", "3.12", "3.13")
    native: str = ""  # the part of build_native.py that is compiled into it
    no_dependencies: bool = False  # whether the requirements name all that is needed, and pip must add nothing


ENVIRONMENTS = {
    "knn": Environment(".venv-peers", "requirements.txt", native="knn"),
    "kmeans": Environment(".venv-peers-kmeans", "requirements-kmeans.txt", pythons=("3.11",)),
    "outliers": Environment(".venv-peers-outliers", "requirements-outliers.txt", no_dependencies=True),
    "lle": Environment(".venv-peers-lle", "requirements-lle.txt", native="lle"),
    "density": Environment(".venv-peers-density", "requirements-density.txt"),
    "match": Environment(".venv-peers-match", "requirements-match.txt"),
    "csv": Environment(".venv-peers-csv", "requirements-csv.txt"),
    "gpu": Environment(".venv-peers-gpu", "requirements-gpu.txt", pythons=("3.12",)),
}


def text_of(requirements):
    """The text of a requirements file and of those that it includes."""
    text = requirements.read_text()
    for line in text.splitlines():
        if line.startswith("-r "):
            text += text_of(requirements.parent / line.removeprefix("-r ").strip())
    return text


def python_of(versions):
    """A Python of one of these versions that can make virtual environments."""
    ask = "import sys, venv, ensurepip, ssl, ctypes, zlib, bz2, lzma; print('%d.%d' % sys.version_info[:2])"
    for name in ("python3", "/usr/bin/python3", *(f"python{version}" for version in versions)):
        path = shutil.which(name)
        done = path and subprocess.run([path, "-c", ask], capture_output=True, text=True)
        if done and done.returncode == 0 and done.stdout.strip() in versions:
            return path
    raise Unavailable(f"there is no Python {' or '.join(versions)} that can make a virtual environment")


def last_line(text):
    return (text.strip().splitlines() or ["no message"])[-1].strip()


class Environments:
    """Finds the Python of an environment, and makes the environment at its first use. `pythons` maps names of
    environments to Pythons that the user chose; the key "" stands for all others."""

    def __init__(self, pythons, install, say):
        self.pythons, self.install, self.say, self.known = pythons, install, say, {}

    def python(self, name):
        """Path of the Python; raises Unavailable."""
        if name not in self.known:
            try:
                self.known[name] = self.find(name)
            except Unavailable as why:
                self.known[name] = why
        if isinstance(self.known[name], Unavailable):
            raise self.known[name]
        return self.known[name]

    def find(self, name):
        chosen = self.pythons.get(name) or self.pythons.get("") or os.environ.get("VICINAL_PEERS_PYTHON")
        if chosen:
            path = shutil.which(chosen)
            if path is None:
                raise Unavailable(f"there is no Python '{chosen}'")
            return os.path.abspath(path)
        environment = ENVIRONMENTS[name]
        folder = PEERS.parent / environment.folder
        python = folder / "bin" / "python"
        wanted = hashlib.sha256(text_of(PEERS / environment.requirements).encode()).hexdigest()
        marker = folder / "made-from"
        if not (marker.is_file() and marker.read_text().strip() == wanted and os.access(python, os.X_OK)):
            if not self.install:
                raise Unavailable(f"there is no environment bench/{environment.folder} of the current requirements, "
                                  "and --no-install forbids to make it")
            self.make(environment, folder, python)
            marker.write_text(wanted + "\n")
        if environment.native and self.install:
            words = [python, PEERS / "build_native.py", "--part", environment.native]
            self.call(words, f"compiling the C++ peers of bench/{environment.folder}")
        return str(python)

    def make(self, environment, folder, python):
        base = python_of(environment.pythons)
        self.say(f"Making bench/{environment.folder} from bench/peers/{environment.requirements}")
        shutil.rmtree(folder, ignore_errors=True)
        self.call([base, "-m", "venv", folder], f"making bench/{environment.folder}")
        words = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:"]
        words += ["--no-deps"] if environment.no_dependencies else []
        self.call([python, *words, "-r", PEERS / environment.requirements], f"installing {environment.requirements}")

    def call(self, words, doing):
        done = subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(f"{doing} failed: {last_line(done.stderr)}")

"""Compiles nanoflann_ann.cpp for knn.py and cholmod_order.cpp for ordering.py, into the Python environment that runs
this script.

nanoflann is the header that --nanoflann or VICINAL_NANOFLANN names; else the pinned release from its project page; else
(offline) the one that libnanoflann-dev installed. libann comes from libann-dev, METIS and CHOLMOD from libmetis-dev
and libsuitesparse-dev. What is missing is left out, and knn.py says so.
"""

import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "1.12.1"
SHA256 = "8918fc2b1492e1f5b790915e1555141125adfe27786434d391cf6f071d42ca7a"
ADDRESS = f"https://raw.githubusercontent.com/jlblancoc/nanoflann/{VERSION}/include/nanoflann.hpp"


def nanoflann_header(given):
    """The header's bytes, or None: then the compiler takes Debian's, where it is installed."""
    if given:
        return pathlib.Path(given).read_bytes()
    try:
        with urllib.request.urlopen(ADDRESS, timeout=30) as answer:
            header = answer.read()
    except OSError as error:
        print(f"nanoflann {VERSION} could not be downloaded ({error}); Debian's is taken where it is installed")
        return None
    if hashlib.sha256(header).hexdigest() != SHA256:
        sys.exit(f"{ADDRESS} is not the release that was pinned: its sha256 differs")
    return header


def build_cholmod_order(force):
    program = pathlib.Path(sys.prefix, "bin", "cholmod_order")
    source = HERE / "cholmod_order.cpp"
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime and not force:
        return
    if not all(pathlib.Path("/usr/include", name).exists() for name in ("metis.h", "suitesparse/cholmod.h")):
        print("ordering.py has no METIS and CHOLMOD: libmetis-dev or libsuitesparse-dev is missing")
        return
    subprocess.run(["g++", "-std=c++17", "-O2", str(source), "-o", str(program), "-lmetis", "-lcholmod"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nanoflann", metavar="HEADER", default=os.environ.get("VICINAL_NANOFLANN"))
    parser.add_argument("--part", choices=["all", "knn", "lle"], default="all", help="compile what these scripts need")
    parser.add_argument("--force", action="store_true", help="also where the library is newer than its source")
    options = parser.parse_args()
    if options.part != "knn":
        build_cholmod_order(options.force)
    if options.part == "lle":
        return
    library = pathlib.Path(sys.prefix) / "lib" / "libnanoflann_ann.so"
    source = HERE / "nanoflann_ann.cpp"
    if library.exists() and library.stat().st_mtime > source.stat().st_mtime and not options.force:
        return
    include = pathlib.Path(sys.prefix) / "include" / "nanoflann"
    include.mkdir(parents=True, exist_ok=True)
    header = nanoflann_header(options.nanoflann)
    if header:
        (include / "nanoflann.hpp").write_bytes(header)
    flags = "-std=c++17 -O3 -march=native -shared -fPIC -pthread".split()
    links = ["-lann"] if pathlib.Path("/usr/include/ANN/ANN.h").exists() else []
    subprocess.run(["g++", *flags, f"-I{include}", str(source), "-o", str(library), *links], check=True)


if __name__ == "__main__":
    main()

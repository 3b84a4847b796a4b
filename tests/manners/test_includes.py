"""The architecture: which folder of the sources may include which (docs/architecture.md, "Layers").

Usage: test_includes.py SOURCE_TREE.
"""

import pathlib
import re
import sys

# Everything may include the public headers, which include nothing but the standard library and each other.
MAY_INCLUDE = {
    "core": set(),
    "formulas": {"core"},
    "simd": {"core", "formulas"},
    "solver": {"core", "formulas", "simd"},
    "geo": {"core", "formulas", "simd"},
    "backend": {"core", "formulas", "solver", "geo"},
    "cpu": {"core", "formulas", "simd", "solver", "geo", "backend"},
    "ops": {"core", "formulas", "solver", "geo", "backend", "io"},
    "io": {"core", "plugin", "plugin/gdal"},
    "plugin": {"core"},
    "plugin/abi": {"core", "formulas"},
    "plugin/gdal": {"core", "plugin", "plugin/abi"},
    "plugin/mpi": {"core", "plugin", "plugin/abi"},
    "plugin/cuda": {"core", "formulas", "solver", "geo", "backend", "plugin", "plugin/abi"},
    "cuda": {"core", "formulas", "plugin/abi"},
    "gdal": {"plugin/abi"},
    "mpi": {"core", "plugin/abi"},
    "reference": set(),
}
SUBJECTS = {"nearest", "kmeans", "lof", "lle", "graph", "overlap", "metrics", "density"}
# The subject in a path is what the folder serves; a subject stands on those before it.
STANDS_ON = {"nearest": set(), "kmeans": {"nearest"}, "lof": {"nearest"}, "lle": {"nearest", "kmeans"},
             "graph": set(), "overlap": {"graph"}, "metrics": {"nearest", "kmeans"},
             "density": {"nearest"}}
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def layer_of(path):
    """Of a path below src."""
    folders = pathlib.PurePath(path).parts[:-1]
    return "/".join(folders[:2]) if folders[0] == "plugin" else folders[0]


def subject_of(path):
    return next((folder for folder in pathlib.PurePath(path).parts[:-1] if folder in SUBJECTS), "")


def faults_of(sources, public):
    """{path below src: text} to a sentence for each include that goes another way."""
    for path, text in sorted(sources.items()):
        layer, subject = layer_of(path), subject_of(path)
        for included in INCLUDE.findall(text):
            if included in public:
                continue
            if included not in sources:
                yield f"{path} includes {included}, which is neither in src nor in include"
                continue
            to = layer_of(included)
            if to != layer and to not in MAY_INCLUDE[layer]:
                yield f"{path} includes {included}: {layer} may include {', '.join(sorted(MAY_INCLUDE[layer])) or 'nothing'}"
            other = subject_of(included)
            if subject and other and other != subject and other not in STANDS_ON[subject]:
                yield f"{path} includes {included}: {subject} does not stand on {other}"


def self_check():
    sources = {"ops/lof/a.cpp": '#include "cpu/lof/b.hpp"\n#include "vicinal/lof.hpp"\n#include "ops/lle/c.hpp"\n',
               "cpu/lof/b.hpp": '#include "core/d.hpp"\n#include "none.hpp"\n', "ops/lle/c.hpp": "", "core/d.hpp": ""}
    found = list(faults_of(sources, {"vicinal/lof.hpp"}))
    assert len(found) == 3 and "neither" in found[0] and "ops may" in found[1] and "stand on lle" in found[2], found


def main():
    self_check()
    root = pathlib.Path(sys.argv[1])
    files = [file for file in (root / "src").rglob("*") if file.suffix in (".cpp", ".hpp", ".cu", ".cuh")]
    sources = {str(file.relative_to(root / "src")): file.read_text() for file in files}
    public = {str(file.relative_to(root / "include")) for file in (root / "include").rglob("*.hpp")}
    unknown = {layer_of(path) for path in sources} - MAY_INCLUDE.keys()
    faults = [f"src/{folder} has no place in the architecture" for folder in sorted(unknown)]
    faults = faults or list(faults_of(sources, public))
    # The Python package is a user of the library like any other, and of the command as a whole.
    package = {file.name: file.read_text() for file in (root / "python" / "src").iterdir()}
    assert "call.hpp" in package, root
    for file, text in sorted(package.items()):
        for included in INCLUDE.findall(text):
            if included not in public | {"run_vicinal.hpp"} and included not in package:
                faults.append(f"python/src/{file} includes {included}, which is no public header")
    for header in sorted(public):
        for included in INCLUDE.findall((root / "include" / header).read_text()):
            if included not in public:
                faults.append(f"include/{header} includes {included}, which is no public header")
    print("\n".join(faults) or f"{len(sources) + len(package)} sources include what they may")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

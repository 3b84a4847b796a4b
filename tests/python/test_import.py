"""`import vicinal` is light: no thread, no scikit-learn, no pandas, one library file."""

import json
import subprocess
import sys

SCRIPT = """
import json, pathlib, sys, time
import numpy
before = set(sys.modules)
began = time.process_time()
import vicinal
seconds = time.process_time() - began
threads = len(list(pathlib.Path("/proc/self/task").iterdir()))
mapped = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
print(json.dumps({"modules": sorted(set(sys.modules) - before), "threads": threads, "seconds": seconds,
                  "mapped": sorted(mapped), "version": vicinal.__version__, "all": vicinal.__all__,
                  "missing": [name for name in vicinal.__all__ if not hasattr(vicinal, name)]}))
"""


def look(python=sys.executable, environment=None):
    """What `import vicinal` loads and starts in a new process."""
    plain = "import numpy, pathlib; print(len(list(pathlib.Path('/proc/self/task').iterdir())))"
    words = {"check": True, "capture_output": True, "text": True, "env": environment}
    threads = int(subprocess.run([python, "-c", plain], **words).stdout)
    seen = json.loads(subprocess.run([python, "-c", SCRIPT], **words).stdout)
    return seen | {"started": seen["threads"] - threads}


def check(seen):
    """tests/release/wheel.py asks the same of the wheels."""
    assert seen["started"] == 0
    assert seen["missing"] == []
    loaded = {name.partition(".")[0] for name in seen["modules"]}
    assert not loaded & {
        "sklearn",
        "pandas",
        "scipy",
        "tqdm",
        "torch",
        "matplotlib",
        "shapely",
        "pyarrow",
        "threadpoolctl",
    }, loaded
    assert "importlib.metadata" not in seen["modules"]  # with which packages of plug-ins are found
    assert len(seen["modules"]) < 40, seen["modules"]
    assert not [
        name
        for name in seen["mapped"]
        if "cuda" in name or "nvidia" in name or "gdal" in name or "blas" in name.lower() and "numpy" not in name
    ]


def test_import():
    check(look())


def test_every_public_name_is_documented():
    import vicinal as vc

    for name in vc.__all__:
        thing = getattr(vc, name)
        if callable(thing):
            assert thing.__doc__ and thing.__doc__.strip(), name

"""`import vicinal` is light: no thread, no scikit-learn, no pandas, one library file."""

import json
import subprocess
import sys

SCRIPT = """
import json, pathlib, sys, time
import numpy
before = set(sys.modules)
began = time.perf_counter()
import vicinal
seconds = time.perf_counter() - began
threads = len(list(pathlib.Path("/proc/self/task").iterdir()))
mapped = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
print(json.dumps({"modules": sorted(set(sys.modules) - before), "threads": threads, "seconds": seconds,
                  "mapped": sorted(mapped), "version": vicinal.__version__, "all": vicinal.__all__,
                  "missing": [name for name in vicinal.__all__ if not hasattr(vicinal, name)]}))
"""


def test_import():
    plain = "import numpy, pathlib; print(len(list(pathlib.Path('/proc/self/task').iterdir())))"
    threads = int(subprocess.run([sys.executable, "-c", plain], check=True, capture_output=True, text=True).stdout)
    done = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    told = json.loads(done.stdout)
    assert told["threads"] == threads  # NumPy's own
    assert told["missing"] == []
    loaded = {name.partition(".")[0] for name in told["modules"]}
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
    assert len(told["modules"]) < 40, told["modules"]
    assert not [
        name
        for name in told["mapped"]
        if "cuda" in name or "gdal" in name or "blas" in name.lower() and "numpy" not in name
    ]


def test_every_public_name_is_documented():
    import vicinal as vc

    for name in vc.__all__:
        thing = getattr(vc, name)
        if callable(thing):
            assert thing.__doc__ and thing.__doc__.strip(), name

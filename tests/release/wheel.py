"""Checks the wheel that `./dev wheel` has made: its name and tag, the files that it holds, its size, what its extension
links, and that it works in an environment that holds it and NumPy alone.

Usage: wheel.py FOLDER, by a Python that has auditwheel. The new environment takes NumPy from the one that runs this.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MAX_BYTES = 4_000_000
MAX_TAG = (2, 34)  # RHEL 9 and what is as old
ALLOWED = {"libc.so.6", "libm.so.6", "libz.so.1", "libgcc_s.so.1", "libstdc++.so.6", "libpthread.so.0", "libdl.so.2",
           "ld-linux-x86-64.so.2"}
SMOKE = """
import numpy as np, vicinal as vc
points = np.array([[0.0], [1], [3], [7]])
assert vc.knn(points, k=1).ids.tolist() == [[1], [0], [1], [2]]
assert vc.doctor().self_test and vc.__version__ == "{version}"
try:
    vc.knn(points, device="cuda")
except vc.DeviceUnavailable as error:
    assert "\\n" not in str(error)
try:
    import vicinal.sklearn
except ImportError as error:
    assert "pip install 'vicinal[sklearn]'" in str(error)
else:
    raise AssertionError("scikit-learn is not here")
print("vicinal", vc.__version__, "answers in", vc.doctor().device)
"""


def output(*words):
    return subprocess.run([str(word) for word in words], check=True, text=True, stdout=subprocess.PIPE).stdout


def main():
    (wheel,) = pathlib.Path(sys.argv[1]).glob("*.whl")
    version = re.search(r"project\(vicinal VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
    this = f"{sys.version_info.major}{sys.version_info.minor}"
    tag = "cp312-abi3" if sys.version_info >= (3, 12) else f"cp{this}-cp{this}"
    assert re.fullmatch(rf"vicinal-{re.escape(version)}-{tag}-\w+\.whl", wheel.name), wheel.name

    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        everything = {name for name in archive.namelist() if not name.endswith("/")}
        names = {name for name in everything if name.startswith("vicinal/")}
        brought = {pathlib.PurePath(name).name for name in everything if name.startswith("vicinal.libs/")}
        assert {re.match(r"lib(lzma|bz2)-", name)[1] for name in brought} == {"lzma", "bz2"}, brought
        licences = {pathlib.PurePath(name).name for name in everything if ".dist-info/licenses/" in name}
        assert {"LICENSE", "NOTICES"} <= licences, licences
        sources = (path for path in (SOURCE / "python/vicinal").rglob("*") if path.is_file() and path.suffix != ".pyc")
        modules = {str(path.relative_to(SOURCE / "python")) for path in sources}
        (extension,) = names - modules
        assert modules <= names and re.fullmatch(r"vicinal/_core\.[\w.-]+\.so", extension), names ^ modules
        installed = pathlib.Path(archive.extract(extension, folder))
        size = installed.stat().st_size
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-d", installed)))
        assert ".debug_info" not in output("readelf", "-SW", installed), "the extension is not stripped"
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, its extension {size / 1e6:.2f} MB, links {sorted(needed)}")
    assert size <= MAX_BYTES and wheel.stat().st_size <= MAX_BYTES
    assert needed <= ALLOWED | brought, needed - ALLOWED - brought

    shown = output(sys.executable, "-m", "auditwheel", "show", wheel)
    reached = re.search(r"manylinux_(\d+)_(\d+)_x86_64", shown.partition("consistent with")[2])
    print(" ".join(shown.split()))
    assert reached and tuple(map(int, reached.groups())) <= MAX_TAG, shown

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = f"{folder}/bin/python"
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps",
                        wheel], check=True)
        (packages,) = pathlib.Path(folder).glob("lib/python*/site-packages")
        import numpy
        for name in ("numpy", "numpy.libs"):
            source = pathlib.Path(numpy.__file__).parents[1] / name
            if source.exists():
                (packages / name).symlink_to(source)
        print(output(python, "-c", SMOKE.format(version=version)).strip())


if __name__ == "__main__":
    main()

"""Checks the wheels that `./dev wheel` has made: names and tags, the files that they hold, sizes, what their binaries
link, what they require. Then it types docs/python.md's Install in a bare environment of each Python (no compiler, no
network, NumPy's wheel in a folder) and lets Python and the command answer there.

Usage: wheel.py build/wheel PYTHON..., by a Python that has auditwheel.
"""

import email
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
from test_import import check, look  # noqa: E402
from type_readme import FENCE, check_architectures  # noqa: E402

MAX_TAG = (2, 34)  # RHEL 9 and what is as old
MAX_WHEEL = 4_000_000
MAX_PLUGIN_WHEEL = 30_000_000
MAX_PLUGIN = 60_000_000
# Of the extension alone manylinux allows libz, too.
ALLOWED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1",
           "ld-linux-x86-64.so.2"}
EXTRAS = {"geo", "plot", "progress", "sklearn", "dask", "ray", "mpi", "spark"}
SMOKE = """
import pickle, numpy as np, vicinal as vc
points = np.array([[0.0], [1], [3], [7]])
assert vc.knn(points, k=1).ids.tolist() == [[1], [0], [1], [2]]
rows = vc.generate("blobs", rows=300, seed=1).points
for answer in (vc.radius(rows, radius=1.0).ids, vc.lof(rows, k=5).scores, vc.kmeans(rows, clusters=3, seed=1).labels,
               vc.classify(rows, rows, np.arange(300) % 3, k=5).labels, vc.lle(rows, k=12).embedding):
    assert len(answer) >= 300
vc.write("rows.npy", rows)
assert np.array_equal(np.asarray(vc.read("rows.npy")), rows)
assert np.array_equal(pickle.loads(pickle.dumps(vc.Index(rows))).knn(k=3).ids, vc.knn(rows, k=3).ids)
vc.write("graph.npz", vc.knn(rows, k=3))
seen = vc.doctor()
assert seen.self_test and vc.__version__ == "{version}"
try:
    import vicinal.sklearn
except ImportError as error:
    assert "pip install 'scikit-learn==1.9.*'" in str(error)
else:
    raise AssertionError("scikit-learn is not here")
if seen.cuda_missing:
    try:
        vc.knn(points, device="cuda")
    except vc.DeviceUnavailable as error:
        assert seen.cuda_missing in str(error) and "\\n" not in str(error)
        print("device='cuda':", error)
    else:
        raise AssertionError("there is no device")
print("vicinal", vc.__version__, "answers on", seen.device)
"""


def output(*words):
    return subprocess.run([str(word) for word in words], check=True, text=True, stdout=subprocess.PIPE).stdout


def needed(file):
    """The libraries that a binary links, once it is known to be stripped."""
    sections = output("readelf", "-SW", file)
    assert not re.search(r"\.(symtab|debug_\w+|nv_debug\w*)\b", sections), f"{file} is not stripped"
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-dW", file)))


def check_tag(wheel):
    """auditwheel's verdict, which may be that older systems will do, too."""
    shown = " ".join(output(sys.executable, "-m", "auditwheel", "show", wheel).split())
    print(shown)
    reached = re.search(r"manylinux_(\d+)_(\d+)_x86_64", shown.partition("consistent with")[2])
    assert reached and tuple(map(int, reached.groups())) <= MAX_TAG, shown


def unpack(wheel, folder):
    """The names of a wheel's files, and its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        names = {name for name in archive.namelist() if not name.endswith("/")}
    information = {name.partition(".dist-info/")[2]: name for name in names if ".dist-info/" in name}
    licenses = {pathlib.PurePath(name).name for name in information if name.startswith("licenses/")}
    assert {"LICENSE", "NOTICES"} <= licenses, licenses
    entries = (folder / information["entry_points.txt"]).read_text().split("\n")
    metadata = email.message_from_string((folder / information["METADATA"]).read_text())
    return names - set(information.values()), metadata, [line for line in entries if line]


def check_wheel(wheel, version, folder):
    names, metadata, entries = unpack(wheel, folder)
    assert metadata["Name"] == "vicinal" and metadata["Version"] == version, metadata
    required = metadata.get_all("Requires-Dist")
    assert [line for line in required if "extra ==" not in line] == ["numpy>=1.24"], required
    assert set(metadata.get_all("Provides-Extra")) == EXTRAS, metadata
    assert entries == ["[console_scripts]", "vicinal = vicinal._command:main"], entries
    brought = {pathlib.PurePath(name).name for name in names if name.startswith("vicinal.libs/")}
    assert {re.match(r"lib(lzma|bz2)-", name)[1] for name in brought} == {"lzma", "bz2"}, brought
    package = {name for name in names if not name.startswith("vicinal.libs/")}
    sources = (path for path in (SOURCE / "python/vicinal").rglob("*") if path.is_file() and path.suffix != ".pyc")
    modules = {str(path.relative_to(SOURCE / "python")) for path in sources}
    (extension,) = package - modules
    assert modules <= package and re.fullmatch(r"vicinal/_core\.[\w.-]+\.so", extension), package ^ modules
    links = needed(folder / extension)
    assert links <= ALLOWED | {"libz.so.1"} | brought, links
    size = (folder / extension).stat().st_size
    packed = wheel.stat().st_size
    print(f"{wheel.name}: {packed / 1e6:.2f} MB, its extension {size / 1e6:.2f} MB, links {sorted(links)}")
    assert packed <= MAX_WHEEL


def check_plugin_wheel(wheel, version, folder):
    names, metadata, entries = unpack(wheel, folder)
    assert metadata["Name"] == "vicinal-cu13" and metadata["Version"] == version, metadata
    assert metadata.get_all("Requires-Dist") == [f"vicinal=={version}"], metadata
    assert entries == ["[vicinal.plugins]", "cuda = vicinal_cu13"], entries
    assert names == {"vicinal_cu13/__init__.py", "vicinal_cu13/libvicinal_cuda.so"}, names
    plugin = folder / "vicinal_cu13/libvicinal_cuda.so"
    assert needed(plugin) <= ALLOWED, needed(plugin)
    check_architectures(folder)
    installed = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, installed {installed / 1e6:.2f} MB")
    assert wheel.stat().st_size <= MAX_PLUGIN_WHEEL and installed <= MAX_PLUGIN


class Bare:
    """An environment of a Python without a compiler and without the network."""

    def __init__(self, python, folder, numpy):
        self.folder = folder
        self.python = folder / "bin/python"
        subprocess.run([python, "-m", "venv", folder], check=True)
        self.environment = {"PATH": str(folder / "bin"), "HOME": str(folder), "PIP_NO_INDEX": "1",
                            "PIP_FIND_LINKS": str(numpy), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_QUIET": "1"}

    def run(self, *words, status=0, where=None, **variables):
        """What a command prints, on both streams."""
        done = subprocess.run([self.folder / "bin" / words[0], *words[1:]], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, cwd=where or self.folder, check=False,
                              env=self.environment | variables)
        assert done.returncode == status, f"{words}: exit code {done.returncode}, expected {status}:\n{done.stdout}"
        return done.stdout

    def type(self, lines):
        for line in lines:
            print("bare$", line, flush=True)
            subprocess.run(["/bin/bash", "-e", "-c", line], check=True, cwd=SOURCE, env=self.environment)


def install_lines(plugin):
    """docs/python.md's Install without its first line, which makes the wheels; without those of the plug-in, too, where
    it was not made."""
    page = (SOURCE / "docs/python.md").read_text()
    (section,) = re.findall(r"^## Install\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    ((_, commands),) = FENCE.findall(section)
    first, *lines = commands.splitlines()
    assert re.fullmatch(r"\./dev wheel( +#.*)?", first), first
    assert any("vicinal-cu13" in line for line in lines), lines
    return [line for line in lines if plugin or "vicinal-cu13" not in line]


def check_import(bare):
    """What `import vicinal` loads; prints the processor's time that it takes beyond NumPy."""
    seconds = []
    for _ in range(5):
        seen = look(bare.python, bare.environment)
        check(seen)
        seconds.append(seen["seconds"])
    print(f"import vicinal: {statistics.median(seconds):.3f} s beyond NumPy, {len(seen['modules'])} modules")


def check_command(bare, version):
    assert bare.run("vicinal", "--version") == f"vicinal {version}\n"
    print(bare.run("vicinal", "doctor"))
    assert bare.run("python", "-m", "vicinal", "doctor", "--json").startswith("{")
    bare.run("vicinal", "knn", "rows.npy", "-k", "3", "-o", "command.npz", "-q")
    same = "import numpy as np; a, b = np.load('graph.npz'), np.load('command.npz'); " \
           "assert all(np.array_equal(a[name], b[name]) for name in ('ids', 'distances'))"
    bare.run("python", "-c", same)
    assert "nothing.npy" in bare.run("vicinal", "knn", "nothing.npy", status=3)
    assert "--neighbours" in bare.run("vicinal", "knn", "rows.npy", "--neighbours", "3", status=2)
    bare.run("vicinal", "knn", "rows.npy", "--memory-limit", "1", status=4)


def check_plugin(bare):
    """The plug-in is found in its package, by Python and by the command; here the driver is the tests' own."""
    driver = bare.folder / "driver"
    driver.mkdir()
    subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", SOURCE / "tests/fake_device/driver.cpp", "-o",
                    driver / "libcuda.so.1"], check=True)
    name = "vicinal_cu13/libvicinal_cuda.so"
    there = {"LD_LIBRARY_PATH": str(driver)}
    show = "import sys, vicinal as vc; print(vc.doctor(device='cpu').cuda_plugin); " \
           "assert 'vicinal_cu13' not in sys.modules"
    assert bare.run("python", "-c", show, **there).strip().endswith(f"/site-packages/{name}")
    shown = bare.run("vicinal", "doctor", "--device", "cpu", **there)
    assert f"{name}, for architectures" in shown, shown
    missing = bare.run("python", "-c", "import vicinal as vc; print(vc.doctor(device='cpu').cuda_missing)").strip()
    answer = bare.run("vicinal", "knn", "rows.npy", "--device", "cuda", status=5 if missing else 0)
    print(answer, end="")
    assert not missing or answer.count("\n") == 1 and missing in answer, answer
    # As an upgrade of one package alone would leave it.
    (metadata,) = bare.folder.glob("lib/python*/site-packages/vicinal_cu13-*.dist-info/METADATA")
    metadata.write_text(re.sub(r"^Version: .*$", "Version: 0.0.1", metadata.read_text(), flags=re.MULTILINE))
    refused = bare.run("vicinal", "knn", "rows.npy", "--device", "cuda", status=5, **there)
    print(refused, end="")
    assert refused.count("\n") == 1 and "vicinal-cu13 0.0.1" in refused, refused


def main():
    folder, *pythons = sys.argv[1:]
    folder = pathlib.Path(folder).resolve()
    version = re.search(r"project\(vicinal VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
    wheels = sorted((folder / "dist").iterdir())
    plugin = False
    for wheel in wheels:
        with tempfile.TemporaryDirectory() as unpacked:
            if wheel.name.startswith("vicinal_cu13-"):
                plugin = True
                assert re.fullmatch(rf"vicinal_cu13-{re.escape(version)}-py3-none-\w+\.whl", wheel.name), wheel.name
                check_plugin_wheel(wheel, version, pathlib.Path(unpacked))
            else:
                tag = "(cp311-cp311|cp312-abi3)"
                assert re.fullmatch(rf"vicinal-{re.escape(version)}-{tag}-\w+\.whl", wheel.name), wheel.name
                check_wheel(wheel, version, pathlib.Path(unpacked))
        check_tag(wheel)
    if not plugin:
        print("There is no nvcc 13 on this machine: NO WHEEL OF THE CUDA PLUG-IN WAS MADE")
    lines = install_lines(plugin)
    for python in pythons:
        with tempfile.TemporaryDirectory() as bare_folder:
            print("\nbare environment of", output(python, "--version").strip())
            bare = Bare(python, pathlib.Path(bare_folder).resolve(), folder / "numpy")
            bare.type(lines)
            check_import(bare)
            print(bare.run("python", "-c", SMOKE.format(version=version)), end="")
            check_command(bare, version)
            if plugin:
                check_plugin(bare)


if __name__ == "__main__":
    main()

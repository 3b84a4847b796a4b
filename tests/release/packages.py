"""Checks what `./dev release` has packed: which packages there are, which files they hold, what they depend on, that
everything is stripped, and that the CUDA plug-in holds every architecture and is within its size. The packages are
unpacked, not installed; the command runs from there, and so does a program found by find_package and by pkg-config.

Takes seconds. tests/release/bare.py installs the same packages, which takes minutes.
"""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

from type_readme import SOURCE, check_architectures, only, run

PACKAGES = SOURCE / "build/release/packages"
MAX_PLUGIN_BYTES = 20_000_000  # 71 MB if nvcc does not compress machine code
LIBRARIES = "usr/lib/x86_64-linux-gnu"
# libdl and libpthread are of their own in a C library older than Debian 12's.
C_LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libstdc++.so.6",
               "libgcc_s.so.1", "ld-linux-x86-64.so.2"}


def output(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, text=True, stdout=subprocess.PIPE,
                          **options).stdout


def cached(name):
    cache = (SOURCE / "build/release/CMakeCache.txt").read_text()
    return "".join(re.findall(rf"^{name}:\w+=(.*)$", cache, re.MULTILINE))


def expected_files(version):
    """Of each package, in order; its copyright beside them."""
    headers = [f"usr/include/vicinal/{path.name}" for path in (SOURCE / "include/vicinal").glob("*.hpp")]
    package = [f"{LIBRARIES}/cmake/vicinal/vicinal{name}.cmake"
               for name in ("Config", "ConfigVersion", "Targets", "Targets-release")]
    files = {
        "libvicinal0": [f"{LIBRARIES}/libvicinal.so.0", f"{LIBRARIES}/libvicinal.so.{version}"],
        "libvicinal-dev": [*headers, *package, f"{LIBRARIES}/libvicinal.so", f"{LIBRARIES}/pkgconfig/vicinal.pc"],
        "vicinal": ["usr/bin/vicinal", "usr/share/bash-completion/completions/vicinal",
                    "usr/share/zsh/vendor-completions/_vicinal", "usr/share/fish/vendor_completions.d/vicinal.fish",
                    "usr/share/man/man1/vicinal.1.gz"],
        "vicinal-geo": [f"{LIBRARIES}/libvicinal_geo.so"],
        "vicinal-mpi": [f"{LIBRARIES}/libvicinal_mpi.so"],
    }
    # Where cmake/plugins.cmake has found one.
    compiler = cached("CMAKE_CUDA_COMPILER")
    if compiler and not compiler.endswith("NOTFOUND"):
        files["vicinal-cuda13"] = [f"{LIBRARIES}/libvicinal_cuda.so"]
    else:
        print("There is no CUDA compiler on this machine: NO PACKAGE OF THE CUDA PLUG-IN WAS MADE")
    return {name: sorted([*held, f"usr/share/doc/{name}/copyright"]) for name, held in files.items()}


def check_package(path, name, files, version):
    """Its control fields and its list of files; returns the bytes of these."""
    fields = dict(re.findall(r"^([\w-]+): (.*)$", output("dpkg-deb", "-f", path), re.MULTILINE))
    assert fields["Package"] == name and fields["Version"] == version, fields
    assert fields["Description"].startswith("exact nearest-neighbor machine learning, "), fields
    depends = set(re.split(r",\s*", fields["Depends"]))
    names = {entry.split()[0] for entry in depends}
    wanted = {f"libvicinal0 (= {version})"} if name != "libvicinal0" else set()
    assert wanted <= depends and (name == "libvicinal-dev" or {"libc6", "libstdc++6"} <= names), fields
    assert name != "vicinal-geo" or any(entry.startswith("libgdal") for entry in names), fields
    assert name != "vicinal-mpi" or any(entry.startswith("libopenmpi") for entry in names), fields
    # CUDA's runtime is in the plug-in.
    assert name != "vicinal-cuda13" or names == {"libvicinal0", "libc6", "libgcc-s1", "libstdc++6"}, fields
    held, total = [], 0
    for line in output("dpkg-deb", "-c", path).splitlines():
        mode, owner, size, _, _, file = line.split(maxsplit=5)
        total += int(size)
        assert owner == "root/root", line
        if mode[0] != "d":
            held.append(file.split(" -> ")[0].removeprefix("./"))
        allowed = {"l": "lrwxrwxrwx", "d": "drwxr-xr-x"}.get(mode[0], "-rwxr-xr-x" if "/bin/" in file else "-rw-r--r--")
        assert mode == allowed, line
    assert sorted(held) == files, f"{path.name}: {sorted(set(held) ^ set(files))} too few or too many"
    return total


def check_binary(path):
    sections = output("readelf", "-SW", path)
    assert not re.search(r"\.(symtab|debug_\w+|nv_debug\w*)\b", sections), f"{path} is not stripped"
    dynamic = output("readelf", "-dW", path)
    assert not re.search(r"R(UN)?PATH", dynamic), f"{path} looks for libraries where it was built"
    return set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))


def check_unpacked(root, version, folder):
    """The packages' files, all unpacked below `root`."""
    binaries = [path for path in [root / "usr/bin/vicinal", *(root / LIBRARIES).glob("*.so*")] if not path.is_symlink()]
    needed = {path.name: check_binary(path) for path in binaries}
    plugin = root / LIBRARIES / "libvicinal_cuda.so"
    if plugin.exists():
        assert needed[plugin.name] <= C_LIBRARIES, needed[plugin.name]
        assert plugin.stat().st_size <= MAX_PLUGIN_BYTES, f"{plugin.stat().st_size} bytes"
        check_architectures(root / "usr")
    environment = dict(os.environ, LD_LIBRARY_PATH=str(root / LIBRARIES),
                       PKG_CONFIG_PATH=str(root / LIBRARIES / "pkgconfig"))
    assert output(root / "usr/bin/vicinal", "--version", env=environment) == f"vicinal {version}\n"
    run("bash", "-n", root / "usr/share/bash-completion/completions/vicinal")
    page = gzip.decompress((root / "usr/share/man/man1/vicinal.1.gz").read_bytes()).decode()
    assert page.startswith(".TH VICINAL 1 ") and '.SH VICINAL KNN\n' in page, page[:200]
    for name in os.listdir(root / "usr/share/doc"):
        notice = (root / "usr/share/doc" / name / "copyright").read_text()
        assert all(word in notice for word in ("Apache-2.0", "libfmt-dev", "libhwy-dev", "nlohmann-json3-dev"))
    consumer = SOURCE / "tests/consumer"
    run("cmake", "-S", consumer, "-B", folder / "build", "-G", "Ninja", "-DCMAKE_CXX_COMPILER_LAUNCHER=",
        f"-DCMAKE_PREFIX_PATH={root / 'usr'}", stdout=subprocess.DEVNULL)
    run("cmake", "--build", folder / "build", stdout=subprocess.DEVNULL)
    run(folder / "build/consumer", env=environment)
    flags = output("pkg-config", "--cflags", "--libs", "vicinal", env=environment).split()
    run("c++", "-std=c++20", consumer / "main.cpp", "-o", folder / "consumer", *flags)
    run(folder / "consumer", env=environment)


def check_archive(path, version, folder, plugins):
    with tarfile.open(path) as archive:
        archive.extractall(folder)
    top = only(list(folder.iterdir()), "folder of the archive")
    assert output(top / "bin/vicinal", "--version") == f"vicinal {version}\n"
    assert (top / "lib/pkgconfig/vicinal.pc").exists() and (top / "share/doc/vicinal/LICENSE").exists()
    held = {file.name for file in (top / "lib").glob("libvicinal_*.so")}
    assert held == plugins, f"{path.name} holds {held}, and the packages {plugins}"


def main():
    project = (SOURCE / "CMakeLists.txt").read_text()
    version = only(re.findall(r"^project\(vicinal VERSION (\S+)", project, re.MULTILINE), "version")
    folder = SOURCE / "build/release/unpacked"
    shutil.rmtree(folder, ignore_errors=True)
    root = folder / "root"
    root.mkdir(parents=True)
    expected = expected_files(version)
    made = {path.name for path in PACKAGES.glob("*.deb")}
    assert made == {f"{name}_{version}_amd64.deb" for name in expected}, f"made were {sorted(made)}"
    rows = []
    for name, files in expected.items():
        path = PACKAGES / f"{name}_{version}_amd64.deb"
        rows.append((path.name, path.stat().st_size, check_package(path, name, files, version)))
        run("dpkg-deb", "-x", path, root)
    check_unpacked(root, version, folder)
    archive = only(list(PACKAGES.glob("*.tar.gz")), "archive")
    (folder / "archive").mkdir()
    plugins = {path.name for path in (root / LIBRARIES).glob("libvicinal_*.so")}
    check_archive(archive, version, folder / "archive", plugins)
    total = sum(path.lstat().st_size for path in (folder / "archive").rglob("*") if not path.is_dir())
    rows.append((archive.name, archive.stat().st_size, total))
    print(f"\n{'package':44} {'MB':>8} {'installed MB':>13}")
    for name, packed, installed in rows:
        print(f"{name:44} {packed / 1e6:8.2f} {installed / 1e6:13.2f}")
    plugin = root / LIBRARIES / "libvicinal_cuda.so"
    if plugin.exists():
        print(f"{plugin.name}: {plugin.stat().st_size / 1e6:.2f} MB, at most {MAX_PLUGIN_BYTES / 1e6:.0f}")


if __name__ == "__main__":
    main()

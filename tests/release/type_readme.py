"""Types what README.md tells a user to type, on this checkout: Install's commands as they stand, into a prefix of the
test's own, then README's program in a project of README's lines against what was installed, and README's commands with
the installed `vicinal`. The CUDA plug-in must hold every architecture that the build was told. At the end it types
Install's commands for packages: ./dev checks what it has packed (packages.py), and the files to install must be there.

Nothing is copied from README here: a section, block or command that is not found is a failure.
"""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "docs"))
from run import FENCE  # noqa: E402

# `sudo apt-get install`: ./dev has installed what it knows of; README must not leave out anything of that, nor the
# other way round. `sudo cmake --install`: as for root, but under the prefix.
SHIMS = {
    "sudo": 'exec env DESTDIR="$VICINAL_DESTDIR" "$@"',
    "apt-get": '[[ $1 == install ]] || exit 2; shift; printf "%s\\n" "$@" >"$VICINAL_DESTDIR/packages"',
}
MAGIC = struct.pack("<I", 0xBA55ED50)
KINDS = {1: "ptx", 2: "elf"}
PROJECT = "cmake_minimum_required(VERSION 3.25)\nproject(app LANGUAGES CXX)\nadd_executable(app main.cpp)\n"


def run(*words, **options):
    print("+", *words, flush=True)
    return subprocess.run([str(word) for word in words], check=True, text=True, **options)


def only(found, what):
    assert len(found) == 1, f"README.md: {what}: found {len(found)} times, expected once"
    return found[0]


def install_commands(readme):
    """Install's two blocks of commands: those that build and install, and those that make and install packages."""
    section = only(re.findall(r"^## Install\n(.*?)(?=^## |\Z)", readme, re.MULTILINE | re.DOTALL), "section Install")
    blocks = [code for tag, code in FENCE.findall(section) if tag == "sh"]
    assert len(blocks) == 2, f"README.md: Install has {len(blocks)} blocks of commands, expected 2"
    return blocks


def type_commands(commands, folder):
    """Types the commands; returns what they told apt-get to install."""
    shims = folder / "shims"
    shims.mkdir(exist_ok=True)
    for name, body in SHIMS.items():
        (shims / name).write_text(f"#!/usr/bin/env bash\n{body}\n")
        (shims / name).chmod(0o755)
    environment = dict(os.environ, PATH=f"{shims}{os.pathsep}{os.environ['PATH']}", VICINAL_DESTDIR=str(folder))
    run("bash", "-e", "-o", "pipefail", "-x", "-c", commands, cwd=SOURCE, env=environment)
    return set((folder / "packages").read_text().split())


def install(commands, folder):
    """Types the commands that build and install; returns where they installed."""
    # As in a fresh clone: no answer of an earlier configuration.
    (SOURCE / "build/release/CMakeCache.txt").unlink(missing_ok=True)
    listed = type_commands(commands, folder)
    packages = re.findall(r"BUILD_PACKAGES=\((.*?)\)", (SOURCE / "dev").read_text(), re.DOTALL)
    known = set(only(packages, "packages of ./dev").split())
    assert listed == known, f"README's packages and those of ./dev differ: {sorted(listed ^ known)}"
    return folder / "usr/local"


def consume(readme, prefix, folder):
    """README's whole program, in a project of README's lines and by pkg-config."""
    lines = only([code for tag, code in FENCE.findall(readme) if tag == "cmake"], "block of CMake")
    program = only([code for tag, code in FENCE.findall(readme) if tag == "cpp" and "int main(" in code], "program")
    (folder / "main.cpp").write_text(program)
    (folder / "CMakeLists.txt").write_text(PROJECT + lines)
    run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", folder / "build")
    run(folder / "build/app")
    assert "`pkg-config vicinal`" in readme
    pc = only(list(prefix.glob("**/pkgconfig/vicinal.pc")), "vicinal.pc")
    flags = run("pkg-config", "--cflags", "--libs", "vicinal", env=dict(os.environ, PKG_CONFIG_PATH=str(pc.parent)),
                stdout=subprocess.PIPE).stdout.split()
    run("c++", "-std=c++20", folder / "main.cpp", "-o", folder / "app", *flags, f"-Wl,-rpath,{pc.parent.parent}")
    run(folder / "app")


def fat_binaries(plugin):
    """What each fat binary in a file holds, as {("elf", 75), ("ptx", 120)}: read by hand, as not every installation that
    has nvcc has cuobjdump. A container (magic, version, header, size) holds entries (kind, header, size, architecture).
    """
    data = plugin.read_bytes()
    found, at = [], data.find(MAGIC)
    while at >= 0:
        version, header, size = struct.unpack_from("<HHQ", data, at + 4)
        entry, end = at + header, at + header + size
        if version == 1 and header == 16 and 0 < size and end <= len(data):
            held = set()
            while entry < end:
                kind, _, entry_header, payload = struct.unpack_from("<HHIQ", data, entry)
                held.add((KINDS[kind], struct.unpack_from("<I", data, entry + 28)[0]))
                entry += entry_header + payload
            found.append(held)
        at = data.find(MAGIC, at + 4)
    return found


def check_architectures(prefix):
    """75-real: machine code; 75-virtual: PTX; 75: both. Of each compiled source."""
    cache = (SOURCE / "build/release/CMakeCache.txt").read_text()
    plugins = list(prefix.glob("**/libvicinal_cuda.so"))
    # Where cmake/plugins.cmake has found one.
    if not re.search(r"^CMAKE_CUDA_COMPILER:\w+=.*(?<!NOTFOUND)$", cache, re.MULTILINE):
        assert not plugins, "a plug-in without a compiler"
        print("There is no CUDA compiler on this machine: NOTHING OF THE CUDA PLUG-IN WAS TESTED")
        return
    wanted = only(re.findall(r"^VICINAL_CUDA_COMPILED:\w+=(.*)$", cache, re.MULTILINE), "architectures").split(";")
    expected = {(kind, int(re.match(r"\d+", name).group())) for name in wanted
                for kind, other in (("elf", "-virtual"), ("ptx", "-real")) if not name.endswith(other)}
    binaries = fat_binaries(only(plugins, "libvicinal_cuda.so"))
    assert binaries, "the plug-in holds no fat binary"
    for held in binaries:
        assert held == expected, f"the plug-in holds {sorted(held)}, and should hold {sorted(expected)}"
    print(f"{len(binaries)} fat binaries of the plug-in hold {sorted(expected)} each")


def main():
    folder = SOURCE / "build/release-test"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    readme = (SOURCE / "README.md").read_text()
    build_commands, package_commands = install_commands(readme)
    prefix = install(build_commands, folder)
    consume(readme, prefix, folder)
    library = only(list(prefix.glob("**/libvicinal.so")), "libvicinal.so")
    run(sys.executable, HERE.parent / "docs/run.py", "--source", SOURCE, "--library", library, "--command",
        prefix / "bin/vicinal", "--compiler", "c++", "--page", "README.md")
    check_architectures(prefix)
    told = type_commands(package_commands, folder)
    made = {f"./{path.relative_to(SOURCE)}" for path in SOURCE.glob("build/release/packages/*.deb")}
    assert told == made, f"README installs {sorted(told)}, and made were {sorted(made)}"


if __name__ == "__main__":
    main()

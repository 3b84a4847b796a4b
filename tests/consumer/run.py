"""Builds and runs the consumer project one way (see tests/CMakeLists.txt); any failing step fails the test."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def run(*command, **options):
    print("+", *command, flush=True)
    return subprocess.run([str(word) for word in command], check=True, text=True, **options)


def configure_and_build(folder, launcher, *definitions):
    """A fresh build folder, so that nothing found by an earlier run can hide a fault."""
    shutil.rmtree(folder, ignore_errors=True)
    run("cmake", "-S", HERE, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_CXX_FLAGS_RELEASE=-O0", f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}", *definitions)
    run("cmake", "--build", folder)
    run(folder / "consumer")


def by_pkg_config(prefix, folder, compiler, static):
    folder.mkdir(parents=True, exist_ok=True)
    [pc] = prefix.glob("**/pkgconfig/vicinal.pc")
    environment = dict(os.environ, PKG_CONFIG_PATH=str(pc.parent))
    words = ["pkg-config", "--cflags", "--libs", "vicinal"] + (["--static"] if static else [])
    flags = run(*words, env=environment, stdout=subprocess.PIPE).stdout.split()
    run(compiler, "-std=c++20", "-O1", HERE / "main.cpp", "-o", folder / "consumer", *flags,
        f"-Wl,-rpath,{pc.parent.parent}")
    run(folder / "consumer")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("way")
    parser.add_argument("--source", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--compiler")
    parser.add_argument("--launcher", default="")
    arguments = parser.parse_args()
    root = arguments.build / "consumer"
    shared, static = root / "shared-prefix", root / "static-prefix"
    folder = root / arguments.way
    if arguments.way == "install":
        shutil.rmtree(shared, ignore_errors=True)
        run("cmake", "--install", arguments.build, "--prefix", shared, stdout=subprocess.DEVNULL)
        if (shared / "bin").exists():  # the command must find the library beside itself
            run(shared / "bin" / "vicinal", "--version")
    elif arguments.way == "add_subdirectory":
        configure_and_build(folder, arguments.launcher, f"-DVICINAL_SOURCE={arguments.source}",
                            "-DBUILD_SHARED_LIBS=OFF", "-DVICINAL_UNITY=ON")
        shutil.rmtree(static, ignore_errors=True)
        run("cmake", "--install", folder, "--prefix", static, stdout=subprocess.DEVNULL)
    elif arguments.way.startswith("find_package"):
        prefix = static if arguments.way.endswith("_static") else shared
        configure_and_build(folder, arguments.launcher, f"-DCMAKE_PREFIX_PATH={prefix}")
    elif arguments.way.startswith("pkg_config"):
        is_static = arguments.way.endswith("_static")
        by_pkg_config(static if is_static else shared, folder, arguments.compiler, is_static)
    else:
        sys.exit(f"unknown way {arguments.way}")


if __name__ == "__main__":
    main()

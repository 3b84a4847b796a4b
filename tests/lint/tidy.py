"""clang-tidy over the library and the command, several sources at a time: what they include is checked once.

Usage: tidy.py BUILD_TREE [--jobs N] [--batch N] [--area AREA]. Sources with the same options are joined in
BUILD_TREE/tidy rather than included: clang's analyzer follows paths in a main file only. Where anything is found in
joined sources, or where they cannot be compiled together, each half is asked again, down to one source, which has the
last word. That each source includes what it needs, joined ones do not show: the compiler reads each alone, with the
precompiled headers of its target. (What it needs of those, tests/manners/test_standard_headers.py asks.)
"""

import argparse
import concurrent.futures
import itertools
import json
import pathlib
import re
import shlex
import subprocess
import sys

# The reference is written for the reader and in __float128, which clang-tidy's compiler does not have; nor has it all
# of GCC's options.
# Sources of packages that Python has installed (nanobind) are not ours.
CHECKED = re.compile(r"^(?!.*/site-packages/).*/(src|cli|bench/command)/(?!reference/).*\.cpp$")
TESTS = pathlib.Path(__file__).resolve().parents[1]
# The analyzer follows calls in its shallow mode, and at most as many states of a function: by default 75,000, which took
# three quarters of the time of all checks. It looks at statements that it has not seen first, and what is left out are
# further ways to the same ones: of 217 null pointers written to at the ends of functions it found the same 172 with
# either number, and with 5,000 one less. What happens across functions, the tests under the sanitizers and the fuzzers see.
ANALYZER = [f"--extra-arg={word}" for config in ("mode=shallow", "max-nodes=10000")
            for word in ("-Xclang", "-analyzer-config", "-Xclang", config)]
# Clang has no use for what GCC has precompiled.
PRECOMPILED = re.compile(r" -Winvalid-pch -include (\S+/cmake_pch\.hxx)")
OPTIONS = ["--quiet", "--extra-arg=-Wno-ignored-optimization-argument", *ANALYZER]


def options_of(entry):
    """The command less what differs from one source to the next."""
    return re.sub(r" -o \S+ -c \S+$", "", entry["command"])


def area_of(source):
    """The innermost folder below src or cli that the tests have too, else core."""
    folders = pathlib.PurePath(re.search(r"/(?:src|cli|bench)/(.*)$", source)[1]).parts[:-1]
    areas = {folder.name for kind in ("unit", "contract", "cli") for folder in (TESTS / kind).iterdir() if folder.is_dir()}
    return next((folder for folder in reversed(folders) if folder in areas), "core")


def batches_of(entries, size):
    """(compiler and options, sources), in order; a source of several targets comes with the options of each."""
    checked = sorted((PRECOMPILED.sub("", options_of(e)), e["file"]) for e in entries)
    for options, group in itertools.groupby(checked, lambda entry: entry[0]):
        sources = [file for _, file in group]
        for start in range(0, len(sources), size):
            yield shlex.split(options), sources[start:start + size]


def precompile(tree, entries):
    headers = {header for entry in entries for header in PRECOMPILED.findall(entry["command"])}
    targets = sorted(f"{pathlib.Path(header).relative_to(tree)}.gch" for header in headers)
    if targets:
        subprocess.run(["cmake", "--build", tree, "--target", *targets], check=True)


def compile_alone(entry):
    """What the compiler finds."""
    command = [*shlex.split(options_of(entry)), "-fsyntax-only", entry["file"]]
    return [subprocess.run(command, text=True, stderr=subprocess.PIPE, cwd=entry["directory"]).stderr]


def tidy(joined, options, sources):
    """What clang-tidy finds in them."""
    checked = sources[0]
    if len(sources) > 1:
        checked = joined
        joined.write_text("\n".join(pathlib.Path(source).read_text() for source in sources))
        # What a source includes by the name alone lies beside it.
        options = [*options, *sorted({f"-iquote{pathlib.Path(source).parent}" for source in sources})]
    done = subprocess.run(["clang-tidy", *OPTIONS, checked, "--", *options], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, cwd=joined.parent)
    if done.returncode == 0:
        return []
    if len(sources) == 1:
        return [done.stdout]
    print(f"{len(sources)} sources are asked again in halves:", *re.findall(r"error: .*", done.stdout)[:1], flush=True)
    half = len(sources) // 2
    return tidy(joined, options, sources[:half]) + tidy(joined, options, sources[half:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--area", default="")
    arguments = parser.parse_args()
    tree = arguments.tree.resolve()
    folder = tree / "tidy"
    folder.mkdir(exist_ok=True)
    entries = json.loads((tree / "compile_commands.json").read_text())
    entries = [e for e in entries if CHECKED.search(e["file"]) and arguments.area in ("", area_of(e["file"]))]
    batches = list(batches_of(entries, arguments.batch))
    assert batches, f"no sources of ours in {tree}"
    precompile(tree, entries)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = [pool.submit(tidy, folder / f"{number}.cpp", command[1:], sources)
                   for number, (command, sources) in enumerate(batches)]
        running += [pool.submit(compile_alone, entry) for entry in entries]
        found = [finding for task in running for finding in task.result() if finding]
    print("\n".join(found) or f"{sum(len(sources) for _, sources in batches)} sources, nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""clang-tidy over the library and the command, several sources at a time, which parses and checks what they include once.

Usage: tidy.py COMPILE_COMMANDS FOLDER [--jobs N] [--batch N]. Sources with the same options are joined in FOLDER, whole
and with their own names and lines, rather than included: clang's analyzer follows paths in a main file only.
"""

import argparse
import concurrent.futures
import itertools
import json
import pathlib
import re
import subprocess
import sys

# The reference is written for the reader and in __float128, which clang-tidy's compiler does not have; nor has it all
# of GCC's options.
CHECKED = re.compile(r"/(src|cli)/(?!reference/).*\.cpp$")
OPTIONS = ["--quiet", "--extra-arg=-Wno-ignored-optimization-argument"]


def options_of(entry):
    """The command less what differs from one source to the next."""
    return re.sub(r" -o \S+ -c \S+$", "", entry["command"])


def batches_of(entries, size):
    """(options, directory, sources); sources of one folder tree and the same options, in order."""
    checked = sorted((e for e in entries if CHECKED.search(e["file"])), key=lambda e: (options_of(e), e["file"]))
    for (options, directory), group in itertools.groupby(checked, lambda e: (options_of(e), e["directory"])):
        # One source may be in several targets: once is enough.
        sources = [e["file"] for e in group]
        for start in range(0, len(sources), size):
            yield options, directory, sources[start:start + size]


def join(sources, joined):
    joined.write_text("".join(f'#line 1 "{source}"\n{pathlib.Path(source).read_text()}\n' for source in sources))


def tidy(folder, joined):
    done = subprocess.run(["clang-tidy", "-p", folder, *OPTIONS, joined], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    lines = [line for line in done.stdout.splitlines() if not re.search(r"\d+ warnings? .*generated", line)]
    return done.returncode, "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("compile_commands", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=8)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    commands = []
    for number, (options, directory, sources) in enumerate(
            batches_of(json.loads(arguments.compile_commands.read_text()), arguments.batch)):
        joined = folder / f"{number}.cpp"
        join(sources, joined)
        commands.append({"directory": directory, "file": str(joined), "command": f"{options} -c {joined}"})
    assert commands, f"no sources of ours in {arguments.compile_commands}"
    (folder / "compile_commands.json").write_text(json.dumps(commands))
    failed = False
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for status, output in pool.map(lambda command: tidy(folder, command["file"]), commands):
            failed |= status != 0
            if output:
                print(output, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

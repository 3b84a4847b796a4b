"""Writes what ctest is to know of a GoogleTest executable: a test each, with its kind and its area as labels.

Usage: discover.py EXECUTABLE KIND OUTPUT [NAME=VALUE...]. The area is the folder of the test's source (see
areas.cmake); the tests run with these variables in their environment.
"""

import json
import pathlib
import subprocess
import sys
import tempfile


def tests_of(executable):
    """(name, source) of each."""
    with tempfile.TemporaryDirectory() as folder:
        listed = pathlib.Path(folder) / "tests.json"
        subprocess.run([executable, "--gtest_list_tests", f"--gtest_output=json:{listed}"], check=True,
                       stdout=subprocess.DEVNULL, timeout=120)
        for suite in json.loads(listed.read_text())["testsuites"]:
            for test in suite["testsuite"]:
                yield f"{suite['name']}.{test['name']}", pathlib.PurePath(test["file"])


def main():
    executable, kind, output, *variables = sys.argv[1:]
    environment = f' ENVIRONMENT "{";".join(variables)}"' if variables else ""
    lines = []
    for name, source in tests_of(executable):
        test = f"{kind}.{name}"
        lines.append(f'add_test("{test}" "{executable}" "--gtest_filter={name}")\n'
                     f'set_tests_properties("{test}" PROPERTIES LABELS "{kind};{source.parent.name}" '
                     f'SKIP_REGULAR_EXPRESSION "\\\\[  SKIPPED \\\\]"{environment})\n')
    pathlib.Path(output).write_text("".join(lines))


if __name__ == "__main__":
    main()

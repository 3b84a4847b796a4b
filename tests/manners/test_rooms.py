"""Every test has one room (tests/rooms.cmake), and one without is refused when the build is configured.

Usage: test_rooms.py SOURCE_TREE BUILD_TREE.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

PREFIX = "room-"


def faults_of(tests):
    """(name, labels) of each test to a sentence for each that has not one room."""
    for name, labels in tests:
        rooms = [label for label in labels if label.startswith(PREFIX)]
        if len(rooms) != 1:
            yield f"{name} has {len(rooms)} rooms: {' '.join(rooms)}"


def room_of(source, words):
    """What rooms.cmake says: exit code and output."""
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "ask.cmake"
        script.write_text(f'include("{source}/tests/rooms.cmake")\n'
                          f'vicinal_room_of("{words}" room)\nmessage("<${{room}}>")\n')
        done = subprocess.run(["cmake", "-P", script], text=True, stderr=subprocess.PIPE)
    return done.returncode, done.stderr


def main():
    source, build = sys.argv[1:]
    assert list(faults_of([("a", ["unit", "room-lof"]), ("b", ["unit"]), ("c", ["room-lof", "room-lle"])])) == [
        "b has 0 rooms: ", "c has 2 rooms: room-lof room-lle"]
    known = {"io_csv": "foundation", "io_formats": "formats", "lof_file": "lof", "lof_tomorrow": "lof"}
    for words, room in known.items():
        assert room_of(source, words) == (0, f"<{room}>\n"), words
    status, output = room_of(source, "lofty")
    assert status != 0 and "'lofty' belongs to no room" in output and "tests/rooms.cmake" in output, output

    sys.path.insert(0, f"{source}/tests/lint")
    import tidy
    rooms = tidy.rooms_of(pathlib.Path(f"{source}/tests/rooms.cmake").read_text())
    sources = {"/x/src/core/table.cpp": "foundation", "/x/src/solver/factor.cpp": "lle", "/x/src/cpu/lof.cpp": "lof",
               "/x/cli/bench_papers_km.cpp": "papers", "/x/src/plugin/tree.cpp": "trees", "/x/src/io/npy.cpp": "foundation"}
    for file, room in sources.items():
        assert tidy.room_of(file, rooms) == room, file

    shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, check=True, text=True, stdout=subprocess.PIPE)
    tests = json.loads(shown.stdout)["tests"]
    labels = lambda test: next((p["value"] for p in test["properties"] if p["name"] == "LABELS"), [])
    assert tests, "no tests"
    # Of an executable that is not built ctest knows nothing, and fails for it.
    faults = list(faults_of((test["name"], labels(test)) for test in tests if not test["name"].endswith("_NOT_BUILT")))
    print("\n".join(faults) or f"{len(tests)} tests, each in one room")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

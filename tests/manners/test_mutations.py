"""Every mutation of tests/mutate is one of the sources as they are: its text stands there exactly once.

Usage: test_mutations.py SOURCE_TREE.
"""

import pathlib
import sys
import tempfile

FORM = """# a list
one
  src/a.cpp; unit; A*
  - x + 1
  - y
  + x
  = because
"""


def main():
    root = pathlib.Path(sys.argv[1])
    sys.path.insert(0, str(root / "tests" / "mutate"))
    import run
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        (tree / "src").mkdir()
        (tree / "list.txt").write_text(FORM)
        (one,) = run.read_list(tree / "list.txt")
        assert (one.file, one.kind, one.filter) == ("src/a.cpp", "unit", "A*")
        assert (one.text, one.replacement, one.reason) == ("x + 1\ny", "x", ["because"])
        for content, faults in {"x + 1\ny;": 0, "x + 1\ny; x + 1\ny": 1, "x": 1}.items():
            (tree / "src" / "a.cpp").write_text(content)
            assert len(list(run.faults_of([one], tree))) == faults, content
        assert len(list(run.faults_of([one, one], tree))) == 3

    mutations = run.read_lists()
    assert len(mutations) >= 120, len(mutations)
    faults = list(run.faults_of(mutations))
    print("\n".join(faults) or f"{len(mutations)} mutations, each of a text that stands once")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

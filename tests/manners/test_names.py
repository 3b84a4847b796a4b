"""Constants and types that are a source's own are the only ones of their name in their folder's namespace, so that
sources can be compiled together (cmake/unity.cmake) whichever of them meet.

Usage: test_names.py SOURCE_TREE.
"""

import collections
import pathlib
import re
import sys

NAMESPACE = re.compile(r"namespace (\w[\w:]*) \{")
# At the beginning of a line: clang-format indents what stands in a class or a function, not in a namespace.
OWN = re.compile(r"(?:static |inline )*constexpr [^=({]*?\b(\w+)(?:\[[^\]]*\])*(?: =|\{)|(?:struct|class) (\w+)\b[^;:]*(?::[^;]*)?\{")


def names_of(text):
    """(namespace, name) of what stands at the outermost level."""
    namespace = ""
    for line in text.splitlines():
        if opened := NAMESPACE.match(line):
            namespace = opened.group(1)
        elif own := OWN.match(line):
            yield namespace, own.group(1) or own.group(2)


def shared(sources):
    """{(folder, file): text} to a sentence for each name that two files of a folder have."""
    homes = collections.defaultdict(set)
    for (folder, file), text in sources.items():
        for namespace, name in names_of(text):
            homes[folder, namespace, name].add(file)
    return [f"{folder}: {name} of {namespace} is in {', '.join(sorted(files))}"
            for (folder, namespace, name), files in sorted(homes.items()) if len(files) > 1]


def main():
    sample = ("namespace a {\nnamespace {\nconstexpr std::array<int, 2> kTwo = {1, 2};\nconstexpr int kList[] = {1};\n"
              "struct Pair {\n  constexpr int kInside = 1;\n};\nstruct Forward;\nclass Child final : public Parent {\n"
              "constexpr int of(int x) {\nconstexpr double kBraced{1};\n")
    assert [name for _, name in names_of(sample)] == ["kTwo", "kList", "Pair", "Child", "kBraced"], list(names_of(sample))
    assert shared({("f", "x"): sample, ("f", "y"): "namespace a {\nconstexpr int kTwo = 2;\n",
                   ("f", "z"): "namespace b {\nstruct Pair {\n"}) == ["f: kTwo of a is in x, y"]
    root = pathlib.Path(sys.argv[1])
    files = [*(root / "src").rglob("*.cpp"), *(root / "cli").glob("*.cpp")]
    assert {file.parent.name for file in files} >= {"core", "cpu", "cli"}, f"sources are missing under {root}"
    sources = {(str(file.parent.relative_to(root)), file.name): file.read_text() for file in files}
    faults = shared(sources)
    print("\n".join(faults) or f"{len(sources)} sources share no name")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

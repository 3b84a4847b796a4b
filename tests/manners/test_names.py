"""Constants and types are the only ones of their name in their namespace: those of headers, because a program has one
definition of each, and those that are a source's own, so that sources can be compiled together (cmake/unity.cmake)
whichever of them meet. The same holds for a source's own functions of one name and the same parameters. The pages of
cli/report are each compiled alone.

Usage: test_names.py SOURCE_TREE.
"""

import collections
import pathlib
import re
import sys

NAMESPACE = re.compile(r"namespace (\w[\w:]*) \{")
# At the beginning of a line: clang-format indents what stands in a class or a function, not in a namespace.
OWN = re.compile(r"(?:static |inline )*constexpr [^=({]*?\b(\w+)(?:\[[^\]]*\])*(?: =|\{)"
                 r"|(?:struct|class) (?:alignas\(\w+\) )?(?:VICINAL_API )?(\w+)\b[^;:]*(?::[^;]*)?\{")
# A function on one line; a test is a macro's, and main a program's.
FUNCTION = re.compile(r"(?:template <.*> )?(?!TEST|return|using)[\w:][\w:<>,&* ]*?[ &*](\w+)\((.*)\)(?: const| noexcept)* \{$")


def names_of(text):
    """(namespace, name) of what stands at the outermost level; of a source's own functions with their parameters."""
    namespace, own_ones = "", False
    for line in text.splitlines():
        if opened := NAMESPACE.match(line):
            namespace = opened.group(1)
        elif line in ("namespace {", "}  // namespace"):
            own_ones = line == "namespace {"
        elif own := OWN.match(line):
            yield namespace, own.group(1) or own.group(2)
        elif own_ones and (function := FUNCTION.match(line)):
            yield namespace, f"{function.group(1)}({function.group(2)})"


def program_of(path):
    """What a path is linked into."""
    return path.parts[1] if path.parts[1] in ("cuda", "gdal", "reference", "unit", "contract") else path.parts[0]


def shared(sources):
    """{(program, file): text} to a sentence for each name that two files of a program have."""
    homes = collections.defaultdict(set)
    for (folder, file), text in sources.items():
        for namespace, name in names_of(text):
            homes[folder, namespace, name].add(file)
    return [f"{folder}: {name} of {namespace} is in {', '.join(sorted(files))}"
            for (folder, namespace, name), files in sorted(homes.items()) if len(files) > 1]


def main():
    sample = ("namespace a {\nnamespace {\nconstexpr std::array<int, 2> kTwo = {1, 2};\nconstexpr int kList[] = {1};\n"
              "struct Pair {\n  constexpr int kInside = 1;\n};\nstruct Forward;\nclass Child final : public Parent {\n"
              "constexpr int of(int x) {\nconstexpr double kBraced{1};\nint half(int n) {\n  while (n > half(n)) {\n"
              "TEST(A, B) {\n}  // namespace\nint of_all(int n) {\n")
    names = [name for _, name in names_of(sample)]
    assert names == ["kTwo", "kList", "Pair", "Child", "of(int x)", "kBraced", "half(int n)"], names
    assert shared({("f", "x"): sample, ("f", "y"): "namespace a {\nconstexpr int kTwo = 2;\n",
                   ("f", "z"): "namespace b {\nstruct Pair {\n"}) == ["f: kTwo of a is in x, y"]
    root = pathlib.Path(sys.argv[1])
    found = [file for folder in ("src", "cli", "tests/unit", "tests/contract") for file in (root / folder).rglob("*")
             if file.suffix in (".cpp", ".hpp", ".cu", ".cuh") and file.parent.name != "report"]
    assert {program_of(file.relative_to(root)) for file in found} == {
        "src", "cuda", "gdal", "reference", "cli", "unit", "contract"}, root
    # CUDA sources are compiled together in fixed groups, where the compiler finds a name that is there twice.
    group_of = {".cpp": "sources", ".hpp": "headers", ".cuh": "headers"}
    sources = {(f"{group_of[file.suffix]} of {program_of(file.relative_to(root))}", str(file.relative_to(root))):
               file.read_text() for file in found if file.suffix in group_of}
    faults = shared(sources)
    print("\n".join(faults) or f"{len(sources)} sources share no name")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

"""Constants and types are the only ones of their name in their namespace: those of headers, because a program has one
definition of each, and those that are a source's own, so that sources can be compiled together (cmake/compile.cmake)
whichever of them meet. The same holds for a source's own functions of one name and the same parameters, and such a
function bears no name that a header declares in its namespace: in the sources behind it the header's would be hidden.

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
# What a header declares.
DECLARED = re.compile(r"(?!TEST|return|using|  )(?:template <.*> )?(?:VICINAL_API )?[\w:][\w:<>,&* ]*?[ &*](\w+)\(")


def declared_in(text):
    """(namespace, name) of the functions that a header declares."""
    namespace = ""
    for line in text.splitlines():
        if opened := NAMESPACE.match(line):
            # What tests share is known to them by a using-directive.
            namespace = re.sub(r"::\w+_testing$", "", opened.group(1))
        elif declared := DECLARED.match(line):
            yield namespace, declared.group(1)


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


def hidden(headers, sources):
    """A sentence for each source's own function that would hide a header's."""
    homes = collections.defaultdict(set)
    for file, text in headers.items():
        for name in declared_in(text):
            homes[name].add(file)
    return [f"{file}: its own {name} hides that of {', '.join(sorted(homes[namespace, name.partition('(')[0]]))}"
            for file, text in sources.items() for namespace, name in names_of(text)
            if "(" in name and (namespace, name.partition("(")[0]) in homes]


def main():
    sample = ("namespace a {\nnamespace {\nconstexpr std::array<int, 2> kTwo = {1, 2};\nconstexpr int kList[] = {1};\n"
              "struct Pair {\n  constexpr int kInside = 1;\n};\nstruct Forward;\nclass Child final : public Parent {\n"
              "constexpr int of(int x) {\nconstexpr double kBraced{1};\nint half(int n) {\n  while (n > half(n)) {\n"
              "TEST(A, B) {\n}  // namespace\nint of_all(int n) {\n")
    names = [name for _, name in names_of(sample)]
    assert names == ["kTwo", "kList", "Pair", "Child", "of(int x)", "kBraced", "half(int n)"], names
    assert shared({("f", "x"): sample, ("f", "y"): "namespace a {\nconstexpr int kTwo = 2;\n",
                   ("f", "z"): "namespace b {\nstruct Pair {\n"}) == ["f: kTwo of a is in x, y"]
    assert hidden({"h": "namespace a {\nint half(long n);\n  int of(int x);\n"}, {"x": sample}) == [
        "x: its own half(int n) hides that of h"]
    root = pathlib.Path(sys.argv[1])
    found = [file for folder in ("src", "cli", "python/src", "tests/unit", "tests/contract")
             for file in (root / folder).rglob("*")
             if file.suffix in (".cpp", ".hpp", ".cu", ".cuh")]
    assert {program_of(file.relative_to(root)) for file in found} == {
        "src", "cuda", "gdal", "reference", "cli", "python", "unit", "contract"}, root
    # CUDA sources are compiled together in fixed groups, where the compiler finds a name that is there twice.
    group_of = {".cpp": "sources", ".hpp": "headers", ".cuh": "headers"}
    sources = {(f"{group_of[file.suffix]} of {program_of(file.relative_to(root))}", str(file.relative_to(root))):
               file.read_text() for file in found if file.suffix in group_of}
    faults = shared(sources)
    texts = {file: text for (_, file), text in sources.items()}
    headers = {str(file.relative_to(root)): file.read_text() for file in (root / "include").rglob("*.hpp")}
    headers |= {file: text for file, text in texts.items() if file.endswith(".hpp")}
    faults += hidden(headers, {file: text for file, text in texts.items() if file.endswith(".cpp")})
    print("\n".join(faults) or f"{len(sources)} sources share no name")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

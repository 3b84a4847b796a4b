"""Contract clause 10, read from the sources: the library never prints, aborts, exits or changes process state. And
layers are joined by interfaces (src/backend): none asks another's object for its type.

Usage: test_manners.py SOURCE_TREE. Comments and string literals do not count.
"""

import pathlib
import re
import sys

CALLS = """abort exit _exit _Exit quick_exit terminate printf fprintf vprintf vfprintf puts fputs putchar perror
assert signal sigaction setenv putenv unsetenv setlocale fesetround feenableexcept setrlimit chdir umask system
longjmp""".split()
FORBIDDEN = [
    (re.compile(r"(?<![\w.>])(?:std::)?(%s)\s*\(" % "|".join(CALLS)), "calls"),
    (re.compile(r"\bstd::(cout|cerr|clog|wcout|wcerr)\b"), "uses"),
    (re.compile(r"(?<!\w)(stdout|stderr)\b"), "uses"),
    (re.compile(r"\bfmt::(print|println)\b"), "uses"),
    (re.compile(r"\b(dynamic_cast)\b"), "uses"),
]
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def blank(match):
    """Same number of lines, no words."""
    return "\n" * match.group().count("\n")


def faults_of(text):
    text = COMMENT_OR_STRING.sub(blank, text)
    for pattern, verb in FORBIDDEN:
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, f"{verb} {match.group(1)}"


def self_check():
    """The rule must see what it looks for, or a clean run would mean nothing."""
    seen = sorted(line for line, _ in faults_of('a();\nstd::abort();\n// exit(1)\n"puts(x)";\nexit (2);\nstd::cerr << 1;\n'
                                               'dynamic_cast<A*>(b);\n'))
    assert seen == [2, 5, 6, 7], seen


def main():
    self_check()
    root = pathlib.Path(sys.argv[1])
    files = [f for folder in ("src", "include", "python/src") for f in sorted((root / folder).rglob("*")) if f.suffix in (".cpp", ".hpp")]
    assert files, f"no sources under {root}"
    faults = [f"{file.relative_to(root)}:{line}: {what}" for file in files for line, what in faults_of(file.read_text())]
    print("\n".join(faults) or f"{len(files)} files, nothing forbidden")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

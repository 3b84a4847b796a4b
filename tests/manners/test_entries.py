"""What the library exports (contract clause 10), read from the shared object: public names alone, each function of
which begins with core::Entry (src/core/entry.hpp) and has a case in tests/contract/core/entry_test.cpp.

Usage: test_entries.py SOURCE_TREE LIBRARY. Overloads count one by one, so a new function needs a case of its own.
"""

import collections
import pathlib
import re
import subprocess
import sys

# The type that crosses the border as an exception.
ERROR = {f"{part} for vicinal::Error" for part in ("typeinfo", "typeinfo name", "vtable")}
# Neither compute with floating-point numbers nor allocate more than a name: names of enumerators, sizes and pointers
# that an object holds, views of what the caller holds.
HOLDERS = re.compile(r"""name_of|\w+_from|exit_code|Labels::\w+|TableView::\w+|BipartiteEdges::BipartiteEdges
  |format_of_suffix|Preparation::(has_texts|width)|Imputer::donors|Cocluster::group_of|Index::(rows|cols|table)|RepeatedKnn::plan
  |KMeansSteps::(rows|cols|clusters|plan)|Communicator::(rank|size|ranks_on_host|bytes_sent)
  |Context::(threads|memory_limit|map_files|isa|cancel_token|device|check_cancelled|report)
  |(io|ops)::[\w:]+  # in no public header: the command's own, which runs in the default mode""", re.VERBOSE)
ENTRY = re.compile(r"\btry \{\n  const core::Entry entry;")
EXIT = re.compile(r"^\} catch \(const std::bad_alloc&\) \{\n  core::refuse_allocation\(\);\n\}", re.MULTILINE)


def exported(library):
    listing = subprocess.run(["nm", "-DC", "--defined-only", library], check=True, text=True, capture_output=True).stdout
    return sorted({line[19:] for line in listing.splitlines()})


def name_of(symbol):
    """vicinal::Index::load(...) const: Index::load; empty for what is no function."""
    match = re.match(r"vicinal::([\w:]+)(\[abi:cxx11\])?\(", symbol)
    return match.group(1) if match else ""


def main():
    root, library = pathlib.Path(sys.argv[1]), sys.argv[2]
    symbols = exported(library)
    faults = [f"exported, and not public: {s[:100]}" for s in symbols if not s.startswith("vicinal::") and s not in ERROR]
    functions = collections.Counter(filter(None, map(name_of, symbols)))
    computing = {name: count for name, count in functions.items() if not HOLDERS.fullmatch(name)}
    assert {"knn", "Index::load", "write_npy", "Context::cpu"} <= computing.keys(), sorted(computing)

    tests = (root / "tests/contract/core/entry_test.cpp").read_text()
    cases = collections.Counter(re.findall(r'^  \{"([\w:]+)", ', tests, re.MULTILINE))
    faults += [f"{name}: {count} overloads, but {cases[name]} cases in tests/contract/core/entry_test.cpp"
               for name, count in computing.items() if cases[name] < count]
    entries = 0
    for source in sorted((root / "src").rglob("*.cpp")):
        text = source.read_text()
        entries += len(ENTRY.findall(text))
        if not len(ENTRY.findall(text)) == len(EXIT.findall(text)) == text.count("core::Entry "):
            faults.append(f"{source.relative_to(root)}: a core::Entry that is not as src/core/entry.hpp says")
    if entries < sum(computing.values()):
        faults.append(f"{sum(computing.values())} exported functions compute, but {entries} begin with core::Entry")
    print("\n".join(faults) or f"{len(symbols)} symbols, {sum(computing.values())} functions with entries and cases")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

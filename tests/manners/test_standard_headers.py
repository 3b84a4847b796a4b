"""Each source, and each header of ours, includes what it needs of the standard library. The compiler does not say so:
builds compile some standard headers once for all sources of a target (cmake/compile.cmake).

Usage: test_standard_headers.py SOURCE_TREE. A file has what it includes and what the headers of ours that it includes do;
what standard headers include of each other does not count. Asked for are the headers that are compiled for all.
"""

import functools
import pathlib
import re
import sys

# Names of std that a header declares, those of them that are in use. Names that several headers declare are left out.
NAMES = {
    "algorithm": r"""all_of any_of none_of find_if find_if_not count_if copy_if copy_n fill_n generate remove_if unique
        reverse rotate shuffle partition stable_partition is_sorted sort stable_sort nth_element partial_sort lower_bound
        upper_bound equal_range binary_search merge inplace_merge set_difference set_intersection set_union push_heap
        pop_heap make_heap sort_heap min_element max_element minmax minmax_element clamp lexicographical_compare transform
        replace for_each includes is_permutation adjacent_find""",
    "array": "array to_array",
    "atomic": "atomic atomic_ref memory_order_relaxed memory_order_acquire memory_order_release",
    "bit": "bit_cast bit_ceil bit_floor bit_width countl_zero countr_zero has_single_bit popcount rotl rotr endian",
    "charconv": "from_chars to_chars chars_format",
    "chrono": "chrono",
    "cmath": """sqrt fabs floor ceil trunc nearbyint isnan isinf isfinite signbit copysign fma frexp ldexp scalbn nextafter
        exp exp2 expm1 log log2 log10 log1p pow hypot sin cos tan asin acos atan atan2 tgamma lgamma erf fmin fmax lround
        llround""",
    "cstdint": "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t intptr_t",
    "cstring": "memcpy memcmp memmove memset memchr strlen strcmp strncmp strerror strchr strstr",
    "filesystem": "filesystem",
    "functional": "function hash less greater plus multiplies reference_wrapper ref cref invoke",
    "limits": "numeric_limits",
    "memory": "unique_ptr shared_ptr weak_ptr make_unique make_shared addressof align",
    "numeric": "iota accumulate inner_product partial_sum exclusive_scan inclusive_scan gcd lcm reduce transform_reduce",
    "optional": "optional nullopt make_optional",
    "span": "span as_bytes as_writable_bytes dynamic_extent",
    "string": "string to_string stoi stol stoll stod getline",
    "string_view": "string_view",
    "utility": "exchange index_sequence make_index_sequence as_const in_place",
    "vector": "vector",
}
HEADER_OF = {name: header for header, names in NAMES.items() for name in names.split()}
COMMENT = re.compile(r"//.*")
INCLUDE = re.compile(r'^#include (?:<([^>]+)>|"([^"]+)")', re.MULTILINE)
USE = re.compile(r"\bstd::(\w+)")
FOLDERS = ("include", "src", "cli", "bench", "python/src")


class Sources:
    """{path from the root: text}"""

    def __init__(self, texts):
        self.texts = {path: COMMENT.sub("", text) for path, text in texts.items()}

    def found(self, path, included):
        places = (pathlib.PurePath(path).parent, *FOLDERS)
        return next((str(file) for place in places if str(file := pathlib.PurePath(place) / included) in self.texts), None)

    @functools.cache
    def files_of(self, path):
        """The file and the headers of ours that it has."""
        files, left = {path}, [path]
        while left:
            at = left.pop()
            for _, ours in INCLUDE.findall(self.texts[at]):
                file = self.found(at, ours) if ours else None
                if file and file not in files:
                    files.add(file)
                    left.append(file)
        return files

    def faults(self):
        for path, text in sorted(self.texts.items()):
            has = {header for file in self.files_of(path) for header, _ in INCLUDE.findall(self.texts[file])}
            lacks = {name: header for name in USE.findall(text) if (header := HEADER_OF.get(name)) and header not in has}
            for name, header in sorted(lacks.items()):
                yield f"{path} uses std::{name} without <{header}>"


def self_check():
    texts = {"src/io/a.cpp": '#include "io/b.hpp"\n#include <vector>\nstd::vector<std::int64_t> a = std::vector{1};  // std::sort',
             "src/io/b.hpp": '#include "vicinal/c.hpp"\nstd::string b;', "include/vicinal/c.hpp": "#include <cstdint>\n"}
    found = list(Sources(texts).faults())
    assert found == ["src/io/b.hpp uses std::string without <string>"], found


def main():
    self_check()
    root = pathlib.Path(sys.argv[1])
    compiled = set(re.findall(r"<(\w+)>", (root / "cmake/compile.cmake").read_text()))
    faults = [f"NAMES lacks what <{header}> declares" for header in sorted(compiled - NAMES.keys())]
    files = [file for folder in FOLDERS for file in (root / folder).rglob("*.[ch]pp")
             if "site-packages" not in file.parts]
    sources = Sources({str(file.relative_to(root)): file.read_text() for file in files})
    faults += sources.faults()
    print("\n".join(faults) or f"{len(files)} sources include the standard headers that they need")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

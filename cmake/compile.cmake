# vicinal_compile_together(TARGET HEADER...): what most sources of a target would all parse and instantiate is compiled
# once. Headers of others are parsed once a target, which saves a third of the compiler's time. Where a source
# forgets to include one of them, tests/manners/test_standard_headers.py finds it.
# CMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without. Where VICINAL_UNITY is on, sources without options of their own
# are compiled sixteen at a time. A name in an anonymous namespace must then be the only one of its namespace
# (tests/manners/test_names.py).
option(VICINAL_UNITY "Compile several sources of the library at a time" OFF)
function(vicinal_compile_together target)
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <cstdint>
    <cstring> <filesystem> <functional> <limits> <memory> <numeric> <optional> <span> <string> <string_view> <utility>
    <vector> ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${VICINAL_UNITY} UNITY_BUILD_BATCH_SIZE 16)
  # ccache wants the first. A type that holds one of an anonymous namespace is no danger in a source file, but GCC takes
  # a file that is included for a header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${VICINAL_UNITY}>>:-Wno-subobject-linkage>)
endfunction()

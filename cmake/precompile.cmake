# vicinal_precompile(TARGET HEADER...): headers of others that most sources of a target include are parsed once a target,
# which saves a third of the compiler's time. Where the library or the command forgets to include one of them, clang-tidy
# finds it, which reads each source without (`./dev lint`). CMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without.
function(vicinal_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  # Wanted by ccache.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endfunction()

set(VICINAL_STANDARD_HEADERS <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <cstdint> <cstring>
  <filesystem> <functional> <limits> <memory> <numeric> <optional> <span> <string> <string_view> <utility> <vector>)

# Writes `copyright` in the build tree: our license, and the notices of what the binaries contain.
# Header-only libraries are compiled in, and their licenses ask that their notices travel along.
set(notices "")
# The comment at the top of a header: its notice.
function(vicinal_notice_of name header)
  file(READ ${header} text LIMIT 8192)
  string(FIND "${text}" "*/" end)
  string(SUBSTRING "${text}" 0 ${end} text)
  string(APPEND notices "\n---- ${name} ----\n\n${text}*/\n")
  set(notices "${notices}" PARENT_SCOPE)
endfunction()
foreach(library libfmt-dev libhwy-dev nlohmann-json3-dev libfast-float-dev libcli11-dev)
  set(file /usr/share/doc/${library}/copyright)
  if(EXISTS ${file})
    file(READ ${file} text)
    string(APPEND notices "\n---- ${library} ----\n\n${text}")
  endif()
endforeach()
if(VICINAL_BUILD_CUDA)
  string(APPEND notices "\n---- CUDA ----\n\nlibvicinal_cuda.so contains NVIDIA's CUDA runtime (libcudart_static.a), "
    "which the CUDA Toolkit End User\nLicense Agreement, Attachment A, lists as redistributable: "
    "https://docs.nvidia.com/cuda/eula/\n")
  find_path(VICINAL_CUB cub/cub.cuh HINTS ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} PATH_SUFFIXES cccl REQUIRED)
  vicinal_notice_of(CUB ${VICINAL_CUB}/cub/cub.cuh)
  vicinal_notice_of(Thrust ${VICINAL_CUB}/thrust/sort.h)
endif()
if(SKBUILD)
  vicinal_notice_of(robin_map ${nanobind_ROOT}/../ext/robin_map/include/tsl/robin_map.h)
endif()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/copyright @ONLY CONTENT
"Copyright: The vicinal authors
License: Apache-2.0

Licensed under the Apache License, Version 2.0: https://www.apache.org/licenses/LICENSE-2.0
On Debian its text stands in /usr/share/common-licenses/Apache-2.0.

The binaries contain code of the libraries below, whose notices follow.
@notices@")

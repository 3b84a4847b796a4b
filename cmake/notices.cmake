# Writes `copyright` in the build tree: our license, and the notices of what the binaries contain.
# Header-only libraries are compiled in, and their licences ask that their notices travel along.
set(notices "")
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
endif()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/copyright @ONLY CONTENT
"Copyright: The vicinal authors
License: Apache-2.0

Licensed under the Apache License, Version 2.0: https://www.apache.org/licenses/LICENSE-2.0
On Debian its text stands in /usr/share/common-licenses/Apache-2.0.

The binaries contain code of the libraries below, whose notices follow.
@notices@")

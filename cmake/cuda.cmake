# VICINAL_CUDA: whether the CUDA plug-in is built. AUTO: where there is a CUDA compiler, without a word where there is
# none; ON: it is an error if there is none; OFF. Part of another project it is built only when asked for.
if(PROJECT_IS_TOP_LEVEL)
  set(VICINAL_CUDA AUTO CACHE STRING "Build the CUDA plug-in: AUTO, ON or OFF")
else()
  set(VICINAL_CUDA OFF CACHE STRING "Build the CUDA plug-in: AUTO, ON or OFF")
endif()
set_property(CACHE VICINAL_CUDA PROPERTY STRINGS AUTO ON OFF)
# Machine code for each major generation, which its minor ones run (8.6 and 8.9 that of 8.0); for newer ones, code that
# their drivers compile.
set(VICINAL_CUDA_ARCHITECTURES 75-real 80-real 90a-real 100-real 120 CACHE STRING
  "Architectures the CUDA plug-in is compiled for")

set(VICINAL_BUILD_CUDA OFF)
if(VICINAL_CUDA STREQUAL "AUTO" OR VICINAL_CUDA)
  find_program(VICINAL_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  mark_as_advanced(VICINAL_NVCC)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND VICINAL_NVCC)
    set(CMAKE_CUDA_COMPILER ${VICINAL_NVCC})
  endif()
  if(CMAKE_CUDA_COMPILER OR DEFINED ENV{CUDACXX})
    # What the compiler is tried with must be something that it knows.
    set(CMAKE_CUDA_ARCHITECTURES ${VICINAL_CUDA_ARCHITECTURES})
    enable_language(CUDA)
    # CMake 3.25 has not heard of nvcc's C++20.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    set(VICINAL_BUILD_CUDA ON)
  elseif(NOT VICINAL_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "VICINAL_CUDA is ON, but there is no CUDA compiler: nvcc is neither on the PATH nor in "
      "/usr/local/cuda/bin; set CMAKE_CUDA_COMPILER to it")
  endif()
endif()

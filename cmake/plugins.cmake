# VICINAL_CUDA, VICINAL_GEO and VICINAL_MPI: whether the plug-ins for CUDA devices, for files of polygons and for ranks
# of MPI are built. AUTO: where there is what they need, without a word where there is not; ON: that is an error; OFF.
# Part of another project they are built only when asked for.
set(VICINAL_PLUGINS_BY_DEFAULT OFF)
if(PROJECT_IS_TOP_LEVEL)
  set(VICINAL_PLUGINS_BY_DEFAULT AUTO)
endif()
set(VICINAL_CUDA ${VICINAL_PLUGINS_BY_DEFAULT} CACHE STRING "Build the CUDA plug-in: AUTO, ON or OFF")
set(VICINAL_GEO ${VICINAL_PLUGINS_BY_DEFAULT} CACHE STRING "Build the plug-in for files of polygons: AUTO, ON or OFF")
set(VICINAL_MPI ${VICINAL_PLUGINS_BY_DEFAULT} CACHE STRING "Build the plug-in for ranks of MPI: AUTO, ON or OFF")
set_property(CACHE VICINAL_CUDA VICINAL_GEO VICINAL_MPI PROPERTY STRINGS AUTO ON OFF)
set(VICINAL_CUDA_ARCHITECTURES "" CACHE STRING "Architectures the CUDA plug-in is compiled for; empty: those of packages")
set(VICINAL_CUDA_COMPILED ${VICINAL_CUDA_ARCHITECTURES} CACHE INTERNAL "Architectures that the CUDA plug-in holds")
# Machine code for each major generation, which its minor ones run (8.6 and 8.9 that of 8.0); for newer ones, code that
# their drivers compile.
if(NOT VICINAL_CUDA_ARCHITECTURES)
  set(VICINAL_CUDA_COMPILED 75-real 80-real 90a-real 100-real 120 CACHE INTERNAL "")
endif()

set(VICINAL_BUILD_CUDA OFF)
if(VICINAL_CUDA)
  if(NOT DEFINED ENV{CUDACXX})
    find_program(CMAKE_CUDA_COMPILER nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  endif()
  if(CMAKE_CUDA_COMPILER OR DEFINED ENV{CUDACXX})
    # What the compiler is tried with must be something that it knows.
    set(CMAKE_CUDA_ARCHITECTURES ${VICINAL_CUDA_COMPILED})
    enable_language(CUDA)
    # CMake 3.25 has not heard of nvcc's C++20.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    list(JOIN VICINAL_CUDA_COMPILED ", " VICINAL_CUDA_NAMES)
    set(VICINAL_BUILD_CUDA ON)
  elseif(NOT VICINAL_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "VICINAL_CUDA is ON, but there is no CUDA compiler: nvcc is neither on the PATH nor in "
      "/usr/local/cuda/bin; set CMAKE_CUDA_COMPILER to it")
  endif()
endif()

set(VICINAL_BUILD_GEO OFF)
if(VICINAL_GEO)
  find_package(GDAL QUIET)
  find_package(GEOS CONFIG QUIET)
  find_package(PROJ CONFIG QUIET)
  if(GDAL_FOUND AND GEOS_FOUND AND PROJ_FOUND)
    set(VICINAL_BUILD_GEO ON)
  elseif(NOT VICINAL_GEO STREQUAL "AUTO")
    message(FATAL_ERROR "VICINAL_GEO is ON, but GDAL, GEOS or PROJ is not there: install libgdal-dev and libgeos-dev")
  endif()
endif()

set(VICINAL_BUILD_MPI OFF)
if(VICINAL_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)  # MPI's own C++ interface, which newer versions do not have
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(VICINAL_BUILD_MPI ON)
  elseif(NOT VICINAL_MPI STREQUAL "AUTO")
    message(FATAL_ERROR "VICINAL_MPI is ON, but MPI is not there: install libopenmpi-dev")
  endif()
endif()

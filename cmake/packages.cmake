# What CPack packs (`./dev release` does it): a .tar.gz of everything that is installed, and for Debian a package for
# each component. Preset `release` configures for the archive, preset `debian` for Debian's packages, in one build tree.
option(VICINAL_DEBIAN "Install as Debian's packages do: copyright and licences for each package" OFF)
mark_as_advanced(VICINAL_DEBIAN)
set(VICINAL_PACKAGE_CONTACT "The vicinal authors <vicinal@localhost>" CACHE STRING "Maintainer named in packages")
mark_as_advanced(VICINAL_PACKAGE_CONTACT)

# vicinal_package(COMPONENT PACKAGE SECTION DEPENDS SUMMARY DESCRIPTION): DEPENDS beside what dpkg-shlibdeps finds.
set(CPACK_COMPONENTS_ALL "")
set(VICINAL_PACKAGE_NAMES "")
macro(vicinal_package component package section depends summary description)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  list(APPEND VICINAL_PACKAGE_NAMES ${package})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}")
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${description}")
endmacro()

# Plug-ins and command speak to the library by an interface that may change with every version.
set(VICINAL_SAME_LIBRARY "libvicinal0 (= ${PROJECT_VERSION})")
vicinal_package(library libvicinal0 libs "" "exact nearest-neighbor machine learning, library"
"Exact k nearest neighbors and radius search, classification, regression,
k-means, local outlier factors, locally linear embedding, co-clusters and
matching of maps. Results equal those of float64 brute force bit for bit.")
# Loaded when a file of that kind is read.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS libhdf5-103-1 vicinal-geo)
vicinal_package(development libvicinal-dev libdevel "${VICINAL_SAME_LIBRARY}"
  "exact nearest-neighbor machine learning, C++ headers"
"Headers of the C++20 library libvicinal, its CMake package and its
pkg-config file.")
if(TARGET vicinal_cli)
  vicinal_package(command vicinal science "${VICINAL_SAME_LIBRARY}" "exact nearest-neighbor machine learning, command"
"The command vicinal: neighbors, classification, regression, clusters,
outliers, embeddings and matched maps of tables in files.")
  set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS vicinal-geo)
endif()
if(VICINAL_BUILD_GEO)
  vicinal_package(geo vicinal-geo science "${VICINAL_SAME_LIBRARY}"
    "exact nearest-neighbor machine learning, maps of polygons"
"The plug-in by which libvicinal and the command vicinal read and write
files of polygons (GeoPackage, Shapefile, GeoJSON, TopoJSON, FlatGeobuf).")
endif()
if(VICINAL_BUILD_CUDA)
  string(REGEX MATCH "^[0-9]+" VICINAL_CUDA_MAJOR "${CMAKE_CUDA_COMPILER_VERSION}")
  string(REPLACE ";" ", " names "${VICINAL_CUDA_ARCHITECTURES}")
  vicinal_package(cuda vicinal-cuda${VICINAL_CUDA_MAJOR} science "${VICINAL_SAME_LIBRARY}"
    "exact nearest-neighbor machine learning, CUDA plug-in"
"The plug-in by which libvicinal computes on NVIDIA devices (compiled for
${names}).
It contains CUDA's runtime and needs NVIDIA's driver for CUDA ${VICINAL_CUDA_MAJOR}.")
  list(APPEND CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS vicinal-cuda${VICINAL_CUDA_MAJOR})
  list(APPEND CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS vicinal-cuda${VICINAL_CUDA_MAJOR})
  # Named by NVIDIA's repository for Debian; a driver from elsewhere serves as well.
  set(CPACK_DEBIAN_CUDA_PACKAGE_SUGGESTS libcuda1)
endif()
list(JOIN CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS ", " CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS)
list(JOIN CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS ", " CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS)

include(${CMAKE_CURRENT_LIST_DIR}/notices.cmake)
if(VICINAL_DEBIAN)
  foreach(component package IN ZIP_LISTS CPACK_COMPONENTS_ALL VICINAL_PACKAGE_NAMES)
    install(FILES ${PROJECT_BINARY_DIR}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
      COMPONENT ${component})
  endforeach()
else()
  install(FILES ${PROJECT_BINARY_DIR}/copyright ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}
    COMPONENT library)
endif()

set(CPACK_PACKAGE_VENDOR "The vicinal authors")
set(CPACK_PACKAGE_CONTACT "${VICINAL_PACKAGE_CONTACT}")
# Of its own for each package.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" CPACK_SYSTEM_NAME)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
if(VICINAL_DEBIAN)
  set(CPACK_GENERATOR DEB)
else()
  set(CPACK_GENERATOR TGZ)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/src)
# What packages that link the library are to depend on: before 1.0 a minor version may change the interface.
math(EXPR next "${PROJECT_VERSION_MINOR} + 1")
file(WRITE ${PROJECT_BINARY_DIR}/debian/shlibs "libvicinal 0 libvicinal0 (>= ${PROJECT_VERSION}), "
  "libvicinal0 (<< ${PROJECT_VERSION_MAJOR}.${next}~)\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/shlibs)
include(CPack)

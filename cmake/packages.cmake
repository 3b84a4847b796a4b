# What CPack packs (`./dev release` does it): a .tar.gz of everything that is installed, and for Debian a package for
# each component. Preset `release` configures for the archive, preset `debian` for Debian's packages, in one build tree.
option(VICINAL_DEBIAN "Install as Debian's packages do: copyright and licences for each package" OFF)
mark_as_advanced(VICINAL_DEBIAN)
set(VICINAL_PACKAGE_CONTACT "The vicinal authors <vicinal@localhost>" CACHE STRING "Maintainer named in packages")
mark_as_advanced(VICINAL_PACKAGE_CONTACT)

set(CPACK_COMPONENTS_ALL library development)
set(plugins vicinal-geo)
if(TARGET vicinal_cli)
  list(APPEND CPACK_COMPONENTS_ALL command)
endif()
if(VICINAL_BUILD_GEO)
  list(APPEND CPACK_COMPONENTS_ALL geo)
endif()
if(VICINAL_BUILD_CUDA)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  string(REGEX MATCH "^[0-9]+" VICINAL_CUDA_MAJOR "${CMAKE_CUDA_COMPILER_VERSION}")
  string(APPEND plugins ", vicinal-cuda${VICINAL_CUDA_MAJOR}")
  list(JOIN VICINAL_CUDA_ARCHITECTURES ", " VICINAL_CUDA_NAMES)
endif()
# Loaded when a file of that kind is read, or a device is asked for. NVIDIA's repository for Debian names its driver's
# library libcuda1; a driver from elsewhere serves as well.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS "libhdf5-103-1, ${plugins}")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "${plugins}")
set(CPACK_DEBIAN_CUDA_PACKAGE_SUGGESTS libcuda1)
# packages/COMPONENT.txt: name and section of its package, summary, description.
set(packages "")
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  file(READ ${CMAKE_CURRENT_LIST_DIR}/packages/${component}.txt text)
  string(CONFIGURE "${text}" text @ONLY)
  string(REGEX MATCH "^([^ ]+) ([^\n]+)\n(.*)\n$" text "${text}")
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${CMAKE_MATCH_1})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${CMAKE_MATCH_2})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${CMAKE_MATCH_3}")
  # What speaks to the library does so by an interface that may change with every version.
  if(NOT component STREQUAL "library")
    set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "libvicinal0 (= ${PROJECT_VERSION})")
  endif()
  list(APPEND packages ${CMAKE_MATCH_1})
endforeach()

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
if(VICINAL_DEBIAN)
  foreach(component package IN ZIP_LISTS CPACK_COMPONENTS_ALL packages)
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

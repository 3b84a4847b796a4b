# What `cmake --install` puts where: library, headers, CMake package, pkg-config file, command, its completions and its
# manual page. Components are what cmake/packages.cmake makes packages of.
include(CMakePackageConfigHelpers)
set(VICINAL_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/vicinal)

if(NOT BUILD_SHARED_LIBS)
  set(VICINAL_PC_STATIC_LIBS " -lz -llzma -lbz2 -ldl -pthread")
endif()

install(TARGETS vicinal EXPORT vicinalTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT library
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

install(EXPORT vicinalTargets NAMESPACE vicinal:: DESTINATION ${VICINAL_CMAKE_DIR} COMPONENT development)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/vicinalConfig.cmake.in
  ${PROJECT_BINARY_DIR}/vicinalConfig.cmake INSTALL_DESTINATION ${VICINAL_CMAKE_DIR})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/vicinalConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vicinalConfig.cmake ${PROJECT_BINARY_DIR}/vicinalConfigVersion.cmake
  DESTINATION ${VICINAL_CMAKE_DIR} COMPONENT development)

# Relative to the file itself, so that `cmake --install --prefix` and a moved tree stay right.
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  set(VICINAL_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH VICINAL_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  set(VICINAL_PC_PREFIX "\${pcfiledir}/${VICINAL_PC_PREFIX}")
endif()
# Appending an absolute path replaces what was there, so absolute install directories work too.
cmake_path(APPEND VICINAL_PC_LIBDIR "\${prefix}" ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND VICINAL_PC_INCLUDEDIR "\${prefix}" ${CMAKE_INSTALL_INCLUDEDIR})
configure_file(${PROJECT_SOURCE_DIR}/cmake/vicinal.pc.in ${PROJECT_BINARY_DIR}/vicinal.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/vicinal.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

if(TARGET vicinal_cli)
  include(${CMAKE_CURRENT_LIST_DIR}/install_command.cmake)
endif()
if(PROJECT_IS_TOP_LEVEL)
  include(${CMAKE_CURRENT_LIST_DIR}/packages.cmake)
endif()

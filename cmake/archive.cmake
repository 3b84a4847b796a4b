# vicinal_archive: the library and the command in one static archive, which a wheel of Python links. VICINAL_ARCHIVE is
# that of another build tree: then nothing of them is compiled here.
set(VICINAL_ARCHIVE "" CACHE FILEPATH "The archive of the library and the command, of another build tree")
mark_as_advanced(VICINAL_ARCHIVE)
if(VICINAL_ARCHIVE)
  add_library(vicinal_archive STATIC IMPORTED)
  set_target_properties(vicinal_archive PROPERTIES IMPORTED_LOCATION ${VICINAL_ARCHIVE})
else()
  add_library(vicinal_archive STATIC EXCLUDE_FROM_ALL
    $<TARGET_OBJECTS:vicinal_objects> $<TARGET_OBJECTS:vicinal_cli_objects>)
  set_target_properties(vicinal_archive PROPERTIES LINKER_LANGUAGE CXX)
endif()
target_include_directories(vicinal_archive INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(vicinal_archive INTERFACE ZLIB::ZLIB LibLZMA::LibLZMA BZip2::BZip2 Threads::Threads
  ${CMAKE_DL_LIBS})

# vicinal_unity(TARGET): where VICINAL_UNITY is on, a target's sources are compiled eight at a time, which saves what
# they would all parse and instantiate again. A name in an anonymous namespace must then be the only one of its
# namespace (tests/manners/test_names.py). Sources with options of their own stay alone; `./dev lint` reads each alone.
option(VICINAL_UNITY "Compile several sources of the library at a time" OFF)
function(vicinal_unity target)
  if(NOT VICINAL_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  # A type that holds one of an anonymous namespace is no danger in a source file, but GCC takes a file that is included
  # for a header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# vicinal_join(LIST NAME SOURCE...): CUDA sources, of which CMake before 3.31 joins none. In every build these of a list
# of sources are compiled as one: nvcc parses what they include twice and once more for each architecture.
function(vicinal_join list name)
  set(content "")
  foreach(source IN LISTS ARGN)
    set(path ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    if(NOT path IN_LIST ${list})
      message(FATAL_ERROR "There is no ${path} to join")
    endif()
    list(REMOVE_ITEM ${list} ${path})
    string(APPEND content "#include \"${path}\"\n")
  endforeach()
  set(joined ${CMAKE_CURRENT_BINARY_DIR}/joined/${name}.cu)
  file(CONFIGURE OUTPUT ${joined} CONTENT "${content}")
  set(${list} ${${list}} ${joined} PARENT_SCOPE)
endfunction()

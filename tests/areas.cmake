# Areas of tests: folders of the same name in unit/, contract/ and cli/. VICINAL_AREA builds one alone.
set(VICINAL_AREAS core io nearest kmeans lof lle graph overlap metrics density device command bench python sources package docs
  fuzz)
if(VICINAL_AREA AND NOT VICINAL_AREA IN_LIST VICINAL_AREAS)
  list(JOIN VICINAL_AREAS ", " all)
  message(FATAL_ERROR "There is no area '${VICINAL_AREA}'; there are: ${all}")
endif()

# vicinal_area_of(FILE OUT): the area of a test.
function(vicinal_area_of file out)
  cmake_path(GET file PARENT_PATH folder)
  cmake_path(GET folder FILENAME area)
  if(NOT area IN_LIST VICINAL_AREAS)
    list(JOIN VICINAL_AREAS ", " all)
    message(FATAL_ERROR "${file} is in no area; an area is a folder: ${all}")
  endif()
  set(${out} ${area} PARENT_SCOPE)
endfunction()

# vicinal_asks_for(AREA OUT): whether its tests are built.
function(vicinal_asks_for area out)
  if(VICINAL_AREA STREQUAL "" OR VICINAL_AREA STREQUAL area)
    set(${out} ON PARENT_SCOPE)
  else()
    set(${out} OFF PARENT_SCOPE)
  endif()
endfunction()

# vicinal_test_sources(OUT FOLDER): the sources of tests below a folder, with what they share; none without a test. The
# fake device is asked what every contract test asks the CPU.
function(vicinal_test_sources out folder)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  file(GLOB tests CONFIGURE_DEPENDS ${folder}/*/*.cpp)
  set(tested OFF)
  foreach(file IN LISTS tests)
    vicinal_area_of(${file} area)
    vicinal_asks_for(${area} built)
    if(built OR (VICINAL_AREA STREQUAL device AND folder STREQUAL contract))
      list(APPEND sources ${file})
      set(tested ON)
    endif()
  endforeach()
  if(NOT tested)
    set(sources)
  endif()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

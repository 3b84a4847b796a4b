# Which room a test belongs to: what `./dev test --room ROOM` compiles and runs. A test's words are its file's name less
# `test` (unit/lof_file_test.cpp: lof_file; cli/test_lof.py: lof); its room is the one with the longest entry here that
# the words begin with. So a new file that is named after its room needs no edit, and one that is not, one word.
#
# foundation: what everything else stands on, nothing of what a later method added. knn, radius, Index and vote over
# every metric and dtype by brute force on the CPU; tables, contexts, memory, errors and the thread pool; npy, npz, CSV,
# idx and what is packed; the command's knn, radius, classify, info, doctor, bench and generate with its reports, bad
# input and interrupts; an installed library; the documents; what is read from the sources.
set(VICINAL_ROOMS foundation formats trees papers device kmeans lof supervised coclusters lle maps)
set(VICINAL_ROOM_foundation answers bad_input bench byte_screen command consumer context distance docs error example
  generate half index interrupt io manners memory parallel philox power random reference refusal report search simd table
  vote)
set(VICINAL_ROOM_formats convert fuzz io_formats io_round_trip)
set(VICINAL_ROOM_trees tree)
set(VICINAL_ROOM_papers papers)
set(VICINAL_ROOM_device cuda ladder plugin pretended tensor_core)
set(VICINAL_ROOM_kmeans exact_sum kmeans limbs lloyd_screen masses)
set(VICINAL_ROOM_lof lof)
set(VICINAL_ROOM_supervised neighbor_model regress supervised)
set(VICINAL_ROOM_coclusters cocluster spectral_cocluster)
set(VICINAL_ROOM_lle krylov lle solver)
set(VICINAL_ROOM_maps match overlap)
# What a room's tests need of another's to be compiled: the pretended device is asked what the CPU is.
set(VICINAL_ROOM_device_needs cocluster kmeans lof refusal regress search spectral_cocluster tree vote)

# What `./dev test --room ROOM` has clang-tidy read (lint/tidy.py): sources, or folders of them, whose names begin with an
# entry of the room above or here; foundation has the rest.
set(VICINAL_SOURCES_formats hdf5 libsvm packed_file unpack vecs xz)
set(VICINAL_SOURCES_trees box_tree)
set(VICINAL_SOURCES_papers bench_papers classical)
set(VICINAL_SOURCES_kmeans cluster empty_clusters initial_centres lloyd mini_batch seeding serial_lloyd silhouette)
set(VICINAL_SOURCES_lof detection k_distance_slot outlying outliers preparation)
set(VICINAL_SOURCES_supervised cross_validate folds regression rank_penalty value_scores)
set(VICINAL_SOURCES_coclusters closure components edges_file graph_input graphs leading_vectors places potts)
set(VICINAL_SOURCES_lle embedding projection scatter spectrum spmv)
set(VICINAL_SOURCES_maps bench_match gdal geo map polygon_file)

# vicinal_test_words(FILE OUT): the words of a test's file, empty if it holds no tests but what they share.
function(vicinal_test_words file out)
  cmake_path(GET file STEM stem)
  set(words "")
  if(stem MATCHES "^(.+)_test$|^test_(.+)$")
    set(words ${CMAKE_MATCH_1}${CMAKE_MATCH_2})
  endif()
  set(${out} ${words} PARENT_SCOPE)
endfunction()

# vicinal_room_of(WORDS OUT): the room of a test.
function(vicinal_room_of words out)
  set(longest -1)
  foreach(room IN LISTS VICINAL_ROOMS)
    foreach(name IN LISTS VICINAL_ROOM_${room})
      string(LENGTH ${name} length)
      if(length GREATER longest AND "${words}_" MATCHES "^${name}[_.]")
        set(longest ${length})
        set(found ${room})
      endif()
    endforeach()
  endforeach()
  if(longest EQUAL -1)
    list(JOIN VICINAL_ROOMS ", " all)
    message(FATAL_ERROR "The test '${words}' belongs to no room. Name its file after its room, or add '${words}' to "
      "the list of one in tests/rooms.cmake: ${all}")
  endif()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# vicinal_is_built(WORDS OUT): whether VICINAL_ROOM asks for the test, or for what needs its source.
function(vicinal_is_built words out)
  vicinal_room_of(${words} room)
  set(built ON)
  if(VICINAL_ROOM AND NOT room STREQUAL VICINAL_ROOM)
    set(built OFF)
    foreach(name IN LISTS VICINAL_ROOM_${VICINAL_ROOM}_needs)
      if("${words}_" MATCHES "^${name}_")
        set(built ON)
      endif()
    endforeach()
  endif()
  set(${out} ${built} PARENT_SCOPE)
endfunction()

# vicinal_keep_room(LIST): drops the test sources that VICINAL_ROOM does not ask for; what tests share stays with them.
function(vicinal_keep_room list)
  set(kept)
  set(tested OFF)
  foreach(file IN LISTS ${list})
    vicinal_test_words(${file} words)
    set(built ON)
    if(words)
      vicinal_is_built(${words} built)
      if(built)
        set(tested ON)
      endif()
    endif()
    if(built)
      list(APPEND kept ${file})
    endif()
  endforeach()
  if(NOT tested)
    set(kept)
  endif()
  set(${list} ${kept} PARENT_SCOPE)
endfunction()

# vicinal_room_table(FILE SOURCE...): writes a line "WORDS ROOM" for each source of tests.
function(vicinal_room_table table)
  set(lines)
  foreach(file IN LISTS ARGN)
    vicinal_test_words(${file} words)
    if(words)
      vicinal_room_of(${words} room)
      string(APPEND lines "${words} ${room}\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${table} CONTENT "${lines}")
endfunction()

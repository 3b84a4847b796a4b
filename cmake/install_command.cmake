# The installed command finds the library beside itself wherever the tree is moved; under /usr the loader knows where.
# Installed with it are the shell completions that it writes itself, and a manual page of its help.
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND NOT IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR} AND
    NOT IS_ABSOLUTE ${CMAKE_INSTALL_BINDIR})
  file(RELATIVE_PATH to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(vicinal_cli PROPERTIES INSTALL_RPATH "\$ORIGIN/${to_lib}")
endif()

option(VICINAL_INSTALL_COMPLETIONS "Install the shell completions and the help that the command writes" ON)
if(VICINAL_INSTALL_COMPLETIONS AND NOT CMAKE_CROSSCOMPILING)
  set(zsh_folder site-functions)
  # Below /usr Debian's zsh looks elsewhere.
  if(VICINAL_DEBIAN)
    set(zsh_folder vendor-completions)
  endif()
  set(shells bash zsh fish)
  set(files bash-completion/completions/vicinal zsh/${zsh_folder}/_vicinal fish/vendor_completions.d/vicinal.fish)
  foreach(shell file IN ZIP_LISTS shells files)
    cmake_path(GET file PARENT_PATH folder)
    install(CODE "
      file(MAKE_DIRECTORY \"${PROJECT_BINARY_DIR}/${folder}\")
      execute_process(COMMAND \"$<TARGET_FILE:vicinal_cli>\" completion ${shell}
        OUTPUT_FILE \"${PROJECT_BINARY_DIR}/${file}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT command)
    install(FILES ${PROJECT_BINARY_DIR}/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} COMPONENT command)
  endforeach()
  set(page ${PROJECT_BINARY_DIR}/man/vicinal.1)
  install(CODE "
    execute_process(COMMAND \"${CMAKE_COMMAND}\" \"-DVICINAL=$<TARGET_FILE:vicinal_cli>\" \"-DPAGE=${page}\"
      -DVERSION=${PROJECT_VERSION} -P \"${CMAKE_CURRENT_LIST_DIR}/man.cmake\" COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT command)
  install(FILES ${page}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)
endif()

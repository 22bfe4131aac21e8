# What `cmake --install` puts under a prefix, and the Debian packages that `cmake --workflow --preset package` makes of
# it: the component `command` is the package shardwright, the component `window` the package shardwright-gui.
#
# The command finds its data in ../share/shardwright beside its own folder (core/base/data_directory.hpp).
include(GNUInstallDirs)

install(TARGETS shardwright_cli shardwright_executor COMPONENT command)
install(DIRECTORY models hardware_profiles measurements DESTINATION share/shardwright COMPONENT command)
install(FILES LICENSE LICENCES.md DESTINATION share/doc/shardwright COMPONENT command)
# Both texts come from the description of the command line itself.
set(manual ${CMAKE_BINARY_DIR}/cli/shardwright.1)
set(completion ${CMAKE_BINARY_DIR}/cli/shardwright.bash)
set(zsh_completion ${CMAKE_BINARY_DIR}/cli/_shardwright)
add_custom_command(OUTPUT ${manual} ${completion} ${zsh_completion}
                   COMMAND shardwright_cli --manual > ${manual}
                   COMMAND shardwright_cli --bash-completion > ${completion}
                   COMMAND shardwright_cli --zsh-completion > ${zsh_completion}
                   DEPENDS shardwright_cli VERBATIM)
add_custom_target(shardwright_manual ALL DEPENDS ${manual} ${completion} ${zsh_completion})
install(FILES ${manual} DESTINATION share/man/man1 COMPONENT command)
install(FILES ${completion} DESTINATION share/bash-completion/completions RENAME shardwright COMPONENT command)
install(FILES ${zsh_completion} DESTINATION share/zsh/vendor-completions COMPONENT command)
set(CPACK_COMPONENTS_ALL command)
if(SHARDWRIGHT_GUI)
  install(TARGETS shardwright_gui COMPONENT window)
  install(FILES LICENSE LICENCES.md DESTINATION share/doc/shardwright-gui COMPONENT window)
  list(APPEND CPACK_COMPONENTS_ALL window)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "Shardwright maintainers <maintainers@shardwright.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME shardwright)
set(CPACK_DEBIAN_WINDOW_PACKAGE_NAME shardwright-gui)
set(CPACK_DEBIAN_WINDOW_PACKAGE_DEPENDS "shardwright (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "${PROJECT_DESCRIPTION}")
set(CPACK_COMPONENT_WINDOW_DESCRIPTION "Explores the plans and runs of shardwright in a window")
include(CPack)

# shardwright_library(core DEPENDS ... PRIVATE_DEPENDS ...)
#
# One static library per folder. A target sees only the headers of its own folder and of the folders
# that it depends on: each folder is linked into an include root of its own, so that an include against
# the arrows of docs/architecture.md does not compile.
function(shardwright_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    add_library(shardwright_${name} INTERFACE)
    add_library(shardwright::${name} ALIAS shardwright_${name})
    target_link_libraries(shardwright_${name} INTERFACE ${ARG_DEPENDS})
    return()
  endif()
  add_library(shardwright_${name} STATIC ${sources})
  add_library(shardwright::${name} ALIAS shardwright_${name})

  set(include_root ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${include_root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${include_root}/${name} SYMBOLIC)
  target_include_directories(shardwright_${name} PUBLIC ${include_root})
  target_link_libraries(shardwright_${name} PUBLIC ${ARG_DEPENDS}
                        PRIVATE shardwright_build_flags ${ARG_PRIVATE_DEPENDS})
endfunction()

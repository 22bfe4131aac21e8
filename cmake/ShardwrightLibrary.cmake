# shardwright_unity(TARGET SOURCES...)
#
# Compiles the sources of a folder in groups of up to SHARDWRIGHT_UNITY_SIZE files, each group as one
# translation unit: headers are parsed and templates instantiated once a group, which makes a clean build
# several times faster. Names in the anonymous namespaces of one folder are therefore distinct.
function(shardwright_unity target)
  if(NOT SHARDWRIGHT_UNITY)
    return()
  endif()
  set(previous)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    if(NOT folder STREQUAL previous)
      set(previous ${folder})
      set(files 0)
    endif()
    math(EXPR group "${files} / ${SHARDWRIGHT_UNITY_SIZE}")
    math(EXPR files "${files} + 1")
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${folder})
    string(REPLACE "/" "_" name "${name}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

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
  shardwright_unity(shardwright_${name} ${sources})
  add_library(shardwright::${name} ALIAS shardwright_${name})

  set(include_root ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${include_root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${include_root}/${name} SYMBOLIC)
  target_include_directories(shardwright_${name} PUBLIC ${include_root})
  target_link_libraries(shardwright_${name} PUBLIC ${ARG_DEPENDS}
                        PRIVATE shardwright_build_flags ${ARG_PRIVATE_DEPENDS})
endfunction()

# shardwright_unity(TARGET SOURCES...)
#
# Compiles the sources of a target in groups of up to SHARDWRIGHT_UNITY_SIZE files, each group as one
# translation unit: headers are parsed and templates instantiated once a group, which makes a clean build
# several times faster. Names in the anonymous namespaces of one target are therefore distinct: a call could otherwise mean
# the overload of another file.
function(shardwright_unity target)
  if(NOT SHARDWRIGHT_UNITY)
    return()
  endif()
  set(files 0)
  foreach(source IN LISTS ARGN)
    math(EXPR group "${files} / ${SHARDWRIGHT_UNITY_SIZE}")
    math(EXPR files "${files} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# shardwright_precompile(TARGET HEADERS...)
#
# Parses large headers of other projects once for all sources of a target, or with REUSE_FROM of several. Such headers
# never change, so that no edit compiles them anew. Sources state what they include all the same: the preset `lint` goes
# without. Only GCC accepts them from a target whose further options differ.
function(shardwright_precompile target)
  if(SHARDWRIGHT_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${target} ${ARGN})
  endif()
endfunction()

# shardwright_link_libraries_first(OPTIMISATION)
#
# Makes the programs of a folder name their libraries before their own objects: a linker takes a template or an inline
# function from the first object that has it, here from the optimised library. The variable OPTIMISATION gets the level
# that the programs' own sources need then. Only mold accepts the order; with another linker the libraries run what the
# programs' sources compile.
macro(shardwright_link_libraries_first optimisation)
  if(SHARDWRIGHT_MOLD)
    set(CMAKE_CXX_LINK_EXECUTABLE
        "<CMAKE_CXX_COMPILER> <FLAGS> <CMAKE_CXX_LINK_FLAGS> <LINK_FLAGS> <LINK_LIBRARIES> <OBJECTS> -o <TARGET>")
    set(${optimisation} -O0)
  else()
    set(${optimisation} -O1)
  endif()
endmacro()

# shardwright_include_root(TARGET FOLDER)
#
# Lets a target, and those that link it, include the headers of a folder by the folder's path, and no others.
function(shardwright_include_root target folder)
  string(REPLACE "/" "_" root "${folder}")
  set(root ${CMAKE_BINARY_DIR}/include/${root})
  cmake_path(GET folder PARENT_PATH parent)
  file(MAKE_DIRECTORY ${root}/${parent})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${folder} ${root}/${folder} SYMBOLIC)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    target_include_directories(${target} INTERFACE ${root})
  else()
    target_include_directories(${target} PUBLIC ${root})
  endif()
endfunction()

# What nearly every group of sources includes.
set(SHARDWRIGHT_COMMON_HEADERS <algorithm> <array> <cmath> <filesystem> <functional> <map> <memory> <optional> <set> <string>
                               <variant> <vector> <fmt/format.h> <fmt/ranges.h> <nlohmann/json.hpp>)

# shardwright_library(core/spec DEPENDS core/op core/schedule LINKS ... PRIVATE_LINKS ...)
#
# One static library per folder, target shardwright::core_spec; below core/ and sim/ one per subfolder. A target sees
# only the headers of its own folder and of the folders that it depends on: each folder is linked into an include root
# of its own, so that an include against the arrows of docs/architecture.md does not compile. The library of a program
# holds all but its main.cpp, so that tests can link it.
function(shardwright_library folder)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINKS;PRIVATE_LINKS" ${ARGN})
  shardwright_targets_of(depends ${ARG_DEPENDS})
  string(REPLACE "/" "_" name "${folder}")
  set(target shardwright_${name})
  if(folder MATCHES "/")
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
    # Subfolders that it depends on are libraries of their own.
    foreach(part IN LISTS ARG_DEPENDS)
      list(FILTER sources EXCLUDE REGEX "^${CMAKE_SOURCE_DIR}/${part}/")
    endforeach()
  endif()
  if(EXISTS ${CMAKE_SOURCE_DIR}/${folder}/main.cpp)
    list(REMOVE_ITEM sources ${CMAKE_SOURCE_DIR}/${folder}/main.cpp)
    string(APPEND target _library)
  endif()
  if(sources)
    add_library(${target} STATIC ${sources})
    shardwright_unity(${target} ${sources})
    target_link_libraries(${target} PUBLIC ${depends} ${ARG_LINKS}
                          PRIVATE shardwright_build_flags ${ARG_PRIVATE_LINKS})
    if(folder STREQUAL "core/base")
      shardwright_precompile(${target} PRIVATE ${SHARDWRIGHT_COMMON_HEADERS})
    else()
      shardwright_precompile(${target} REUSE_FROM shardwright_core_base)
    endif()
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${depends} ${ARG_LINKS})
  endif()
  shardwright_include_root(${target} ${folder})
  add_library(shardwright::${name} ALIAS ${target})
endfunction()

# shardwright_union(core OF core/spec ... LINKS ...)
#
# The libraries of the folders below a folder as one target, for the folders above.
function(shardwright_union folder)
  cmake_parse_arguments(ARG "" "" "OF;LINKS" ${ARGN})
  shardwright_targets_of(libraries ${ARG_OF})
  list(TRANSFORM libraries REPLACE ".+" "$<LINK_ONLY:\\0>")
  add_library(shardwright_${folder} INTERFACE)
  target_link_libraries(shardwright_${folder} INTERFACE ${libraries} ${ARG_LINKS})
  shardwright_include_root(shardwright_${folder} ${folder})
  add_library(shardwright::${folder} ALIAS shardwright_${folder})
endfunction()

function(shardwright_targets_of result)
  list(TRANSFORM ARGN REPLACE "/" "_")
  list(TRANSFORM ARGN PREPEND "shardwright::")
  set(${result} ${ARGN} PARENT_SCOPE)
endfunction()

# Switches of the build, the language level and the warnings that every target shares.
option(SHARDWRIGHT_BUILD_TESTS "Build the tests" ON)
option(SHARDWRIGHT_BUILD_BENCH "Build the benchmarks (google/benchmark)" OFF)
option(SHARDWRIGHT_BUILD_FUZZERS "Build the libFuzzer targets (needs clang)" OFF)
set(SHARDWRIGHT_WITH_SIMGRID AUTO CACHE STRING
    "Compare the flow-level network with SimGrid in tests and benchmarks: ON, OFF, or AUTO for where SimGrid is")
set_property(CACHE SHARDWRIGHT_WITH_SIMGRID PROPERTY STRINGS AUTO ON OFF)
option(SHARDWRIGHT_FMT_HEADERS "Compile fmt into the programs (slower to build), which then need no libfmt.so" OFF)
set(SHARDWRIGHT_WITH_GUI AUTO CACHE STRING "Build the Qt 6 GUI: ON, OFF, or AUTO for where Qt 6 and QCustomPlot are")
set_property(CACHE SHARDWRIGHT_WITH_GUI PROPERTY STRINGS AUTO ON OFF)
set(SHARDWRIGHT_WITH_PYTHON OFF CACHE STRING "Build the Python module: ON, OFF, or AUTO for where pybind11 is")
set_property(CACHE SHARDWRIGHT_WITH_PYTHON PROPERTY STRINGS AUTO ON OFF)
option(SHARDWRIGHT_WARNINGS_AS_ERRORS "Treat warnings as errors" OFF)
option(SHARDWRIGHT_UNITY "Compile the sources of a folder together (faster clean builds)" ON)
set(SHARDWRIGHT_UNITY_SIZE 24 CACHE STRING "How many sources are compiled together at the most")
set(SHARDWRIGHT_SANITIZERS "" CACHE STRING "Sanitizers for every target, e.g. address,undefined")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# SimGrid switches stacks, which sanitizers do not follow.
set(SHARDWRIGHT_SIMGRID OFF)
if(SHARDWRIGHT_WITH_SIMGRID STREQUAL "AUTO")
  find_path(SHARDWRIGHT_SIMGRID_INCLUDE simgrid/s4u.hpp)
  if(SHARDWRIGHT_SIMGRID_INCLUDE AND NOT SHARDWRIGHT_SANITIZERS)
    set(SHARDWRIGHT_SIMGRID ON)
  endif()
elseif(SHARDWRIGHT_WITH_SIMGRID)
  set(SHARDWRIGHT_SIMGRID ON)
endif()

# A module that Python loads can be moved in memory. What the libraries define is theirs: no other definition takes its
# place when the module is loaded, so that the compiler may still inline it.
set(SHARDWRIGHT_PYTHON OFF)
if(NOT SHARDWRIGHT_WITH_PYTHON STREQUAL "OFF")
  find_package(Python COMPONENTS Interpreter Development.Module)
  find_package(pybind11 2.10 CONFIG)
  if(Python_FOUND AND pybind11_FOUND)
    set(SHARDWRIGHT_PYTHON ON)
    set(CMAKE_POSITION_INDEPENDENT_CODE ON)
    add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-semantic-interposition>)
  elseif(NOT SHARDWRIGHT_WITH_PYTHON STREQUAL "AUTO")
    message(FATAL_ERROR "The Python module needs the headers of Python and pybind11 2.10 or later "
                        "(Debian's python3-dev and pybind11-dev).")
  endif()
endif()

find_program(SHARDWRIGHT_CCACHE ccache)
if(SHARDWRIGHT_CCACHE)
  # ccache takes sources with precompiled headers only if it is asked to, and sees what is included if they are kept.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${SHARDWRIGHT_CCACHE})
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()
find_program(SHARDWRIGHT_MOLD mold)
if(SHARDWRIGHT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(shardwright_build_flags INTERFACE)
target_compile_options(shardwright_build_flags INTERFACE
                       $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor>
                       $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
# GCC 12 warns of overlaps, bounds and uninitialized members inside of std::string and of copied initializer lists
# where there are none (its bugs 105651, 105329 and 105562), and takes a source that is compiled together with
# others for a header.
set(SHARDWRIGHT_FALSE_WARNINGS restrict array-bounds stringop-overread stringop-overflow maybe-uninitialized
                               subobject-linkage)
list(TRANSFORM SHARDWRIGHT_FALSE_WARNINGS PREPEND -Wno-)
target_compile_options(shardwright_build_flags INTERFACE
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:${SHARDWRIGHT_FALSE_WARNINGS}>)
if(SHARDWRIGHT_WARNINGS_AS_ERRORS)
  target_compile_options(shardwright_build_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>
                         $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
if(SHARDWRIGHT_SANITIZERS)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${SHARDWRIGHT_SANITIZERS}>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>)
  add_link_options(-fsanitize=${SHARDWRIGHT_SANITIZERS})
  # AddressSanitizer finds null pointers that are followed, accesses beyond an object and objects of another type where
  # memory is not theirs, and x86 reads what is not aligned. Asked of UBSan too, they take half of the time to compile.
  if(SHARDWRIGHT_SANITIZERS MATCHES "address,undefined")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=alignment,null,object-size,pointer-overflow,vptr>)
  endif()
  # Variables on the stack are watched by the fuzz targets alone, which clang builds: they would take GCC a quarter of
  # the time to compile.
  if(SHARDWRIGHT_SANITIZERS MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-address-use-after-scope>
                        $<$<COMPILE_LANGUAGE:CXX>:--param=asan-stack=0>)
  endif()
endif()

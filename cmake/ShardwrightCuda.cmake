# The CUDA backend of the executor: SHARDWRIGHT_CUDA_FOUND, the target shardwright_cuda and what is
# missing where there is none.
set(SHARDWRIGHT_WITH_CUDA AUTO CACHE STRING "Build the executor's CUDA backend: AUTO, ON or OFF")
set_property(CACHE SHARDWRIGHT_WITH_CUDA PROPERTY STRINGS AUTO ON OFF)

set(SHARDWRIGHT_CUDA_FOUND OFF)
if(NOT SHARDWRIGHT_WITH_CUDA)
  set(SHARDWRIGHT_CUDA_STATE "switched off")
  return()
endif()

# Ampere, Hopper and Blackwell of data centres; the last one's code is also compiled by newer drivers.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100)
endif()
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  cmake_path(GET CMAKE_CUDA_COMPILER PARENT_PATH cuda_root)
  cmake_path(GET cuda_root PARENT_PATH cuda_root)
endif()
foreach(part IN ITEMS cudart cublasLt cudnn nccl)
  find_library(SHARDWRIGHT_${part}_LIBRARY ${part} HINTS ${cuda_root} PATH_SUFFIXES lib64 lib)
  mark_as_advanced(SHARDWRIGHT_${part}_LIBRARY)
endforeach()
find_path(SHARDWRIGHT_CUDNN_INCLUDE cudnn.h HINTS ${cuda_root}/include)
find_path(SHARDWRIGHT_NCCL_INCLUDE nccl.h HINTS ${cuda_root}/include)

set(missing)
foreach(part IN ITEMS CMAKE_CUDA_COMPILER SHARDWRIGHT_cudart_LIBRARY SHARDWRIGHT_cublasLt_LIBRARY
                      SHARDWRIGHT_cudnn_LIBRARY SHARDWRIGHT_nccl_LIBRARY SHARDWRIGHT_CUDNN_INCLUDE
                      SHARDWRIGHT_NCCL_INCLUDE)
  if(NOT ${part})
    list(APPEND missing ${part})
  endif()
endforeach()
if(missing)
  list(JOIN missing ", " SHARDWRIGHT_CUDA_STATE)
  set(SHARDWRIGHT_CUDA_STATE "not found: ${SHARDWRIGHT_CUDA_STATE}")
  if(NOT SHARDWRIGHT_WITH_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "SHARDWRIGHT_WITH_CUDA is ON, but ${SHARDWRIGHT_CUDA_STATE}")
  endif()
  return()
endif()

if(SHARDWRIGHT_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${SHARDWRIGHT_CCACHE})
endif()
enable_language(CUDA)
# CMake 3.25 does not know that nvcc has C++20.
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
set(SHARDWRIGHT_CUDA_FOUND ON)
list(JOIN CMAKE_CUDA_ARCHITECTURES " " architectures)
set(SHARDWRIGHT_CUDA_STATE "${CMAKE_CUDA_COMPILER_VERSION}, for ${architectures}")

add_library(shardwright_cuda INTERFACE)
target_include_directories(shardwright_cuda SYSTEM INTERFACE
                           ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} ${SHARDWRIGHT_CUDNN_INCLUDE}
                           ${SHARDWRIGHT_NCCL_INCLUDE})
target_link_libraries(shardwright_cuda INTERFACE ${SHARDWRIGHT_cudart_LIBRARY}
                      ${SHARDWRIGHT_cublasLt_LIBRARY} ${SHARDWRIGHT_cudnn_LIBRARY}
                      ${SHARDWRIGHT_nccl_LIBRARY})

# What the configure step found: the optional parts never stop a build, they only say that they are absent.

function(shardwright_say_found what found)
  if(found)
    message(STATUS "  ${what}: found")
  else()
    message(STATUS "  ${what}: not found (optional)")
  endif()
endfunction()

message(STATUS "Shardwright ${PROJECT_VERSION} (${CMAKE_BUILD_TYPE})")
message(STATUS "  CUDA backend (optional): ${SHARDWRIGHT_CUDA_STATE}")
if(SHARDWRIGHT_GUI)
  message(STATUS "  GUI: Qt ${Qt6_VERSION} and QCustomPlot")
else()
  message(STATUS "  GUI: left out (${SHARDWRIGHT_NO_GUI_REASON})")
endif()
shardwright_say_found("ccache" "${SHARDWRIGHT_CCACHE}")
shardwright_say_found("mold" "${SHARDWRIGHT_MOLD}")
message(STATUS "  tests: ${SHARDWRIGHT_BUILD_TESTS}, benchmarks: ${SHARDWRIGHT_BUILD_BENCH}, "
               "fuzzers: ${SHARDWRIGHT_BUILD_FUZZERS}, sanitizers: ${SHARDWRIGHT_SANITIZERS}")

# shardwright_discover_tests(TARGET LABELS [VARIABLE=VALUE ...])
#
# Gives CTest one test for each test suite of a program: starting a program for each of some thousand tests takes
# longer than most of them, and the tests of a suite share what they compute once. A suite that fails names its tests.
# With SHARDWRIGHT_EACH_TEST in its environment CTest has each test on its own: `run-tests --filter` chooses among them.
function(shardwright_discover_tests target labels)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${target}_list.cmake)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${target}> -D LIST=${list} -D "LABELS=${labels}"
            -D "ENVIRONMENT=${ARGN}" -P ${CMAKE_SOURCE_DIR}/cmake/ListTests.cmake
    BYPRODUCTS ${list} VERBATIM)
  set(include ${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake)
  file(WRITE ${include} "if(EXISTS [[${list}]])\n  include([[${list}]])\n"
                        "else()\n  add_test(${target}_NOT_BUILT ${target}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()

# cmake -D PROGRAM=… -D LIST=… -D LABELS=… -D ENVIRONMENT=… -P ListTests.cmake
#
# Writes the tests of a program as CTest reads them: see ShardwrightTests.cmake. The first label is the folder's.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE lines TIMEOUT 60 COMMAND_ERROR_IS_FATAL ANY)

function(add_to variable name filter)
  set(properties LABELS "[[${LABELS}]]" "ENVIRONMENT [[${ENVIRONMENT}]]" ${ARGN})
  list(JOIN properties " " properties)
  set(${variable} "${${variable}}  add_test([[${name}]] [[${PROGRAM}]] [[--gtest_filter=${filter}]])
  set_tests_properties([[${name}]] PROPERTIES ${properties})\n" PARENT_SCOPE)
endfunction()

list(GET LABELS 0 folder)
# Values of parameters stand behind the names as comments.
string(REGEX REPLACE " +#[^\n]*" "" lines "${lines}")
string(REPLACE "\n" ";" lines "${lines}")
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ ]+)\\.$")
    set(suite ${CMAKE_MATCH_1})
    add_to(suites ${folder}.${suite} ${suite}.*)
  elseif(line MATCHES "^  ([^ ]+)$")
    set(test ${suite}.${CMAKE_MATCH_1})
    add_to(tests ${test} ${test} "SKIP_REGULAR_EXPRESSION [=[\\[  SKIPPED \\]]=]")
  endif()
endforeach()
file(WRITE ${LIST} "if(DEFINED ENV{SHARDWRIGHT_EACH_TEST})\n${tests}else()\n${suites}endif()\n")

# cmake -D TEMPLATE=… -D OUTPUT=… -D SOURCE_DIR=… -D VERSION=… -D COMPILER=… -D BUILD_TYPE=… -P WriteBuildInfo.cmake
#
# Runs with every build, since the commit changes without a configure step. Touches the output only
# where its text changes.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12
                OUTPUT_VARIABLE COMMIT ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT COMMIT)
  set(COMMIT unknown)
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)

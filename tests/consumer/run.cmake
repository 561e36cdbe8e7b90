# cmake -DBUILD=<build tree> -DWORK=<scratch folder> -DVERSION=<expected> -DCONFIG=<build type>
#       -DCOMPILER=<c++ compiler> -P run.cmake
#
# Installs the build tree into a scratch prefix, builds the project beside this file against it, runs it.

file(REMOVE_RECURSE "${WORK}")
foreach(step IN ITEMS install configure build)
  set(install --install "${BUILD}" --prefix "${WORK}/prefix" --config "${CONFIG}")
  set(configure -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/build" "-DCMAKE_PREFIX_PATH=${WORK}/prefix"
                "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_BUILD_TYPE=${CONFIG}")
  set(build --build "${WORK}/build" --config "${CONFIG}")
  execute_process(COMMAND "${CMAKE_COMMAND}" ${${step}} OUTPUT_VARIABLE output ERROR_VARIABLE output
                  RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${step} failed:\n${output}")
  endif()
endforeach()

execute_process(COMMAND "${WORK}/build/consumer" OUTPUT_VARIABLE output RESULT_VARIABLE result)
if(NOT result EQUAL 0 OR NOT output STREQUAL "membill ${VERSION}\n")
  message(FATAL_ERROR "the consumer exited ${result} and printed:\n${output}")
endif()

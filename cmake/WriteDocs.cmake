# cmake -DPROGRAM=<membill> -DDIRECTORY=<dir> -P WriteDocs.cmake
#
# Lets the program write its own man page and shell completions, so they cannot disagree with its flags.

function(write_output file)
  execute_process(COMMAND "${PROGRAM}" ${ARGN} OUTPUT_FILE "${DIRECTORY}/${file}" ERROR_VARIABLE error
                  RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " arguments)
    file(REMOVE "${DIRECTORY}/${file}")
    message(WARNING "membill ${arguments} failed; ${file} is not made:\n${error}")
  endif()
endfunction()

file(MAKE_DIRECTORY "${DIRECTORY}")
write_output(membill.1 man)
write_output(membill.bash completion bash)
write_output(_membill completion zsh)
write_output(membill.fish completion fish)

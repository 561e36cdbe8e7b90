# membill_embed_data(<variable> DIRECTORY <dir>)
#
# Compiles <dir>/<folder>/*.json into the program: one generated source per folder, each a sorted table
# of {file stem, text}, and one that lists the folders. src/io/embedded.h reads them. <variable> gets
# the generated sources. A file that is changed, added or removed is noticed by the next build.
function(membill_embed_data variable)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DIRECTORY" "")
  set(script "${PROJECT_SOURCE_DIR}/cmake/EmbedFolder.cmake")
  set(output_dir "${PROJECT_BINARY_DIR}/generated/embedded")

  file(GLOB files CONFIGURE_DEPENDS "${arg_DIRECTORY}/*/*.json")
  set(folders "")
  foreach(file IN LISTS files)
    cmake_path(GET file PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    list(APPEND folders "${folder}")
    list(APPEND files_of_${folder} "${file}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  list(SORT folders COMPARE STRING)

  set(sources "")
  set(declarations "")
  set(rows "")
  foreach(folder IN LISTS folders)
    string(MAKE_C_IDENTIFIER "${folder}" identifier)
    # The list goes through a file: 200 paths are too long for a command line on some systems, and a
    # removed file changes it, which no other dependency would show.
    set(list_file "${output_dir}/${identifier}.files")
    list(JOIN files_of_${folder} "\n" lines)
    file(CONFIGURE OUTPUT "${list_file}" CONTENT "${lines}\n" @ONLY)
    set(source "${output_dir}/${identifier}.cpp")
    add_custom_command(
      OUTPUT "${source}"
      COMMAND "${CMAKE_COMMAND}" "-DLIST=${list_file}" "-DIDENTIFIER=${identifier}"
              "-DOUTPUT=${source}" -P "${script}"
      DEPENDS "${script}" "${list_file}" ${files_of_${folder}}
      COMMENT "Embedding data/${folder}"
      VERBATIM)
    list(APPEND sources "${source}")
    string(APPEND declarations "extern const std::span<const EmbeddedFile> embedded_${identifier};\n")
    string(APPEND rows "  if (folder == \"${folder}\") return embedded_${identifier};\n")
  endforeach()

  set(EMBEDDED_DECLARATIONS "${declarations}")
  set(EMBEDDED_ROWS "${rows}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/embedded_folders.cpp.in"
                 "${output_dir}/embedded_folders.cpp" @ONLY)
  list(APPEND sources "${output_dir}/embedded_folders.cpp")
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

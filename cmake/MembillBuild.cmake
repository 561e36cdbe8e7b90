# Defaults for a plain `cmake -S . -B build`, and the helpers that make targets.

get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(PROJECT_IS_TOP_LEVEL AND NOT multi_config AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON) # for clang-tidy and editors

if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(MEMBILL_CCACHE ccache)
  mark_as_advanced(MEMBILL_CCACHE)
  if(MEMBILL_CCACHE)
    # Paths below the checkout count as relative, so that two checkouts share what is compiled.
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
                                    "${MEMBILL_CCACHE}")
  endif()
endif()

if(MEMBILL_LTO)
  include(CheckIPOSupported)
  check_ipo_supported(RESULT MEMBILL_LTO_SUPPORTED OUTPUT lto_error LANGUAGES CXX)
  if(NOT MEMBILL_LTO_SUPPORTED)
    message(STATUS "membill: no link-time optimisation: ${lto_error}")
  endif()
endif()

# Link-time optimisation for one target, in optimised builds only. GCC also keeps ordinary code in the
# objects, so an installed library still links with other compilers and with tests built without it.
function(membill_enable_lto target)
  if(NOT MEMBILL_LTO_SUPPORTED)
    return()
  endif()
  set_target_properties(
    ${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION_RELEASE ON
                         INTERPROCEDURAL_OPTIMIZATION_RELWITHDEBINFO ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release,RelWithDebInfo>:-ffat-lto-objects>)
  endif()
endfunction()

# The standard library's headers once for a whole library: half of the time of a clang build.
function(membill_precompile target)
  if(MEMBILL_PRECOMPILE)
    target_precompile_headers(
      ${target} PRIVATE <algorithm> <array> <cstdint> <functional> <map> <memory> <optional> <span> <string> <string_view>
      <unordered_map> <utility> <vector>)
  endif()
endfunction()

# Sets `out` to sources that include the given ones eight at a time, those of one folder together: compiled from
# nothing in half of the time. Names of one folder's files must then differ, in anonymous namespaces too. Paths are
# relative to the checkout, so that ccache serves another one.
function(membill_join_sources out name)
  set(sources ${ARGN})
  if(NOT MEMBILL_UNITY)
    set(${out} ${sources} PARENT_SCOPE)
    return()
  endif()
  set(joined "")
  set(keys "")
  foreach(source IN LISTS sources)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE path)
    get_source_file_property(own_definitions "${source}" COMPILE_DEFINITIONS)
    if(own_definitions)
      list(APPEND joined "${source}")
      continue()
    endif()
    cmake_path(GET path PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    if(NOT DEFINED count_${folder})
      set(count_${folder} 0)
    endif()
    math(EXPR part "${count_${folder}} / 8")
    math(EXPR count_${folder} "${count_${folder}} + 1")
    set(key ${folder}_${part})
    list(APPEND keys ${key})
    string(APPEND text_${key} "#include \"${path}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES keys)
  foreach(key IN LISTS keys)
    set(file "${PROJECT_BINARY_DIR}/joined/${name}/${key}.cpp")
    file(CONFIGURE OUTPUT "${file}" CONTENT "${text_${key}}" @ONLY)
    list(APPEND joined "${file}")
  endforeach()
  set_source_files_properties(${joined} PROPERTIES INCLUDE_DIRECTORIES "${PROJECT_SOURCE_DIR}")
  set(${out} ${joined} PARENT_SCOPE)
endfunction()

# A static library of this project. A part that has no sources yet is an empty archive.
function(membill_add_library target)
  set(sources ${ARGN})
  if(NOT sources)
    set(sources "${PROJECT_BINARY_DIR}/generated/empty.cpp")
    file(CONFIGURE OUTPUT "${sources}" CONTENT "")
  endif()
  add_library(${target} STATIC ${sources})
  string(REPLACE membill_ "" short_name ${target})
  add_library(membill::${short_name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${short_name})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(
    ${target} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
                     "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>")
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:membill_flags>)
  membill_enable_lto(${target})
  membill_precompile(${target})
endfunction()

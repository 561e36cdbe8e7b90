# Everything comes from the system. Debian and Ubuntu: scripts/install-packages.

find_package(nlohmann_json 3.11 REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
find_package(fmt 9 REQUIRED) # used header-only, so that nothing of it is left to find at run time
find_package(CLI11 2.1 REQUIRED)

# yaml-cpp names its target with a namespace from 0.8 on.
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

# The program as one file without shared libraries: it runs in any container, and a fifth of a short run, its
# dynamic linking, is saved. On where the archives are there (Debian's development packages have them).
include(CheckCXXSourceCompiles)
find_library(MEMBILL_YAML_ARCHIVE NAMES libyaml-cpp.a)
mark_as_advanced(MEMBILL_YAML_ARCHIVE)
set(CMAKE_REQUIRED_LINK_OPTIONS -static)
check_cxx_source_compiles("#include <string>\nint main(int, char** a) { return std::string(a[0]).empty(); }" MEMBILL_STATIC_LINKS)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
set(can_be_static OFF)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND MEMBILL_YAML_ARCHIVE AND MEMBILL_STATIC_LINKS AND NOT MEMBILL_SANITIZE AND NOT MEMBILL_FUZZ)
  set(can_be_static ON)
endif()
option(MEMBILL_STATIC "Link the program without shared libraries" ${can_be_static})

# yaml-cpp as the build links it; users of the installed library find their own.
add_library(membill_yaml INTERFACE)
if(MEMBILL_STATIC)
  target_include_directories(membill_yaml SYSTEM INTERFACE $<TARGET_PROPERTY:yaml-cpp::yaml-cpp,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(membill_yaml INTERFACE "${MEMBILL_YAML_ARCHIVE}")
else()
  target_link_libraries(membill_yaml INTERFACE yaml-cpp::yaml-cpp)
endif()

# toml++ is used header-only: its package may bring a shared library, which nothing here needs.
find_path(MEMBILL_TOML_INCLUDE toml++/toml.h REQUIRED)
mark_as_advanced(MEMBILL_TOML_INCLUDE)
add_library(membill_toml INTERFACE)
target_include_directories(membill_toml SYSTEM INTERFACE "${MEMBILL_TOML_INCLUDE}")

# nlohmann_json with the two switches that every user of it must share: no silent conversions, and
# errors that name the path in the document (this one changes the library's ABI namespace). Header
# only: link it as $<BUILD_INTERFACE:membill_json>, so that nothing of it is exported.
add_library(membill_json INTERFACE)
target_link_libraries(membill_json INTERFACE nlohmann_json::nlohmann_json)
target_compile_definitions(membill_json INTERFACE JSON_USE_IMPLICIT_CONVERSIONS=0
                                                  JSON_DIAGNOSTICS=1)

# Everything comes from the system. Debian and Ubuntu: scripts/install-packages.

find_package(nlohmann_json 3.11 REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(CLI11 2.1 REQUIRED)

# yaml-cpp names its target with a namespace from 0.8 on.
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

# nlohmann_json with the two switches that every user of it must share: no silent conversions, and
# errors that name the path in the document (this one changes the library's ABI namespace). Header
# only: link it as $<BUILD_INTERFACE:membill_json>, so that nothing of it is exported.
add_library(membill_json INTERFACE)
target_link_libraries(membill_json INTERFACE nlohmann_json::nlohmann_json)
target_compile_definitions(membill_json INTERFACE JSON_USE_IMPLICIT_CONVERSIONS=0
                                                  JSON_DIAGNOSTICS=1)

# cmake --install: program, static libraries, headers, CMake package, completions and man page.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/membill")

install(
  TARGETS membill_core membill_io membill_report membill_all
  EXPORT membill-targets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY include/membill "${PROJECT_BINARY_DIR}/include/membill"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
install(EXPORT membill-targets NAMESPACE membill:: DESTINATION "${package_dir}")

configure_package_config_file(cmake/membill-config.cmake.in membill-config.cmake
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(membill-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/membill-config.cmake"
              "${PROJECT_BINARY_DIR}/membill-config-version.cmake" DESTINATION "${package_dir}")

if(NOT TARGET membill)
  return()
endif()
install(TARGETS membill RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")

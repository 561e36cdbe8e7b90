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

if(MEMBILL_GENERATE_DOCS AND NOT CMAKE_CROSSCOMPILING)
  set(docs_dir "${PROJECT_BINARY_DIR}/docs")
  add_custom_command(
    OUTPUT "${docs_dir}/stamp"
    COMMAND "${CMAKE_COMMAND}" "-DPROGRAM=$<TARGET_FILE:membill>" "-DDIRECTORY=${docs_dir}" -P
            "${PROJECT_SOURCE_DIR}/cmake/WriteDocs.cmake"
    COMMAND "${CMAKE_COMMAND}" -E touch "${docs_dir}/stamp"
    DEPENDS membill cmake/WriteDocs.cmake
    COMMENT "Writing the man page and shell completions"
    VERBATIM)
  add_custom_target(membill_docs ALL DEPENDS "${docs_dir}/stamp")
  install(FILES "${docs_dir}/membill.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" OPTIONAL)
  install(FILES "${docs_dir}/membill.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
          RENAME membill OPTIONAL)
  install(FILES "${docs_dir}/_membill" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" OPTIONAL)
  install(FILES "${docs_dir}/membill.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d"
          OPTIONAL)
endif()

# cpack in the build tree makes a .deb with the dependencies that dpkg finds in the program.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The membill authors")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_STRIP_FILES ON)
include(CPack)

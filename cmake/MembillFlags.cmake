# Compiler flags live on one target. It is linked privately and only inside the build tree, so nothing
# of it reaches a project that uses the installed library.

add_library(membill_flags INTERFACE)
target_compile_features(membill_flags INTERFACE cxx_std_20)
target_include_directories(membill_flags INTERFACE "${PROJECT_SOURCE_DIR}/src")

set(CMAKE_CXX_EXTENSIONS OFF)

if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options(membill_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Wrong about `"text" + std::string` when optimising: https://gcc.gnu.org/bugzilla/show_bug.cgi?id=105651
    target_compile_options(membill_flags INTERFACE -Wno-restrict)
  endif()
  if(MEMBILL_WERROR)
    target_compile_options(membill_flags INTERFACE -Werror)
  endif()
endif()

set(sanitizers "${MEMBILL_SANITIZE}")
if(MEMBILL_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "membill: MEMBILL_FUZZ needs clang: configure with -DCMAKE_CXX_COMPILER=clang++")
  endif()
  # The libraries are instrumented; each harness links the fuzzer's own main (tests/CMakeLists.txt).
  target_compile_options(membill_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(membill_flags INTERFACE -fsanitize=fuzzer-no-link)
  if(NOT sanitizers)
    set(sanitizers "address,undefined")
  endif()
endif()

if(sanitizers)
  set(sanitizer_flags "-fsanitize=${sanitizers}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(membill_flags INTERFACE ${sanitizer_flags})
  target_link_options(membill_flags INTERFACE ${sanitizer_flags})
endif()

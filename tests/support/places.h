// Where the source tree and the built program lie. Only places.cpp is compiled with these paths, so that checkouts share every other
// compiled test.
#ifndef MEMBILL_TESTS_SUPPORT_PLACES_H_
#define MEMBILL_TESTS_SUPPORT_PLACES_H_

#include <string>
#include <string_view>

namespace membill::test {

// The absolute path of a file or folder that is given relative to the source tree; "" is the tree itself.
[[nodiscard]] std::string in_source(std::string_view relative = "");

// The absolute path of the built program.
[[nodiscard]] std::string built_program();

}  // namespace membill::test

#endif  // MEMBILL_TESTS_SUPPORT_PLACES_H_

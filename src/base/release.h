// Releases of programs as their version texts say them.
#pragma once

#include <string>

namespace membill {

// True when `version` ("4.45.2", "2.1.2+cu121") is before major.minor.patch. Parts that are no numbers count as 0.
[[nodiscard]] bool is_before(const std::string& version, int major, int minor, int patch = 0);

}  // namespace membill

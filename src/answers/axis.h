// The values of one axis of a sweep, as a person writes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace membill {

// "1,2,4", "0..3", "1024:8192:*2" (times two), "8:32:8" (and eight more), and lists of these: the values in order, ends included. Words are
// values as they are. Empty, with `why` set to one clause, when a range runs backwards, never ends, or has more than a million values.
[[nodiscard]] std::vector<std::string> axis_values(std::string_view text, std::string& why);

}  // namespace membill

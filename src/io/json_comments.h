// JSON as people write it for readers that take more than JSON: with comments, and with commas before closing brackets.
#pragma once

#include <string>
#include <string_view>

namespace membill::io {

// `text` with blanks in place of "// ..." and "# ..." to the end of their line, of "/* ... */", and of commas that nothing follows; texts in
// quotes and ends of lines stay.
[[nodiscard]] std::string without_json_comments(std::string_view text);

}  // namespace membill::io

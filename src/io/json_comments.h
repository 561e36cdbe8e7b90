// JSON as people write it for readers that take more than JSON: with comments, and with commas before closing brackets.
#pragma once

#include <string>
#include <string_view>

namespace membill::io {

// Whether `text` is JSON by its first sign that is no blank and no comment. What begins with '#' may be YAML as well: it is JSON where a
// quoted key follows the brace.
[[nodiscard]] bool is_json_with_comments(std::string_view text);
// `text` with blanks in place of "// ..." and "# ..." to the end of their line, of "/* ... */", and of commas that nothing follows; texts in
// quotes and ends of lines stay.
[[nodiscard]] std::string without_json_comments(std::string_view text);

}  // namespace membill::io

// Files as the user names them: read whole, within bounds, with every failure as a problem of the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace membill::io {

// No input that membill reads whole is larger, but for logs.
inline constexpr std::int64_t kLargestFile = 64LL << 20;
inline constexpr std::int64_t kLargestLog = 1LL << 30;

struct TextFile {
  std::string name;  // last name of the path, or "standard input": what problems and reports call it
  std::string text;
};

// Last name of a path ("config.json" of "/a/b/config.json"); of a folder given with a trailing slash, the folder's name.
[[nodiscard]] std::string last_name(const std::string& path);

// Reads the file at `path`, or standard input when it is "-". Throws InputError when there is no such file, it is a folder, may not
// be read, is larger than `largest`, or is a named pipe that stays silent for ten seconds. Never reads more than the bound.
[[nodiscard]] TextFile read_file(const std::string& path, std::int64_t largest = kLargestFile);

// The first `size` bytes of a regular file, fewer when it is shorter; `total` gets its whole length. Same errors; `size` must not
// exceed kLargestFile.
[[nodiscard]] TextFile read_file_start(const std::string& path, std::int64_t size, std::int64_t& total);

// `text` without a UTF-8 byte order mark. Throws InputError when it is empty or blank, UTF-16, binary (a control character that no text
// has) or not UTF-8; the line is named. `file` is the name in problems.
[[nodiscard]] std::string_view check_text(std::string_view text, const std::string& file);

// Line of the byte at `offset`, from 1.
[[nodiscard]] int line_at(std::string_view text, std::size_t offset);

}  // namespace membill::io

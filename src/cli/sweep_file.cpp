#include "cli/sweep_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "io/text_file.h"
#include "membill/problem.h"

namespace membill::cli {

SweepFile::SweepFile(const std::string& path, const std::string& header, bool resume) : path_(path) {
  const int how = resume ? O_RDWR | O_CREAT : O_WRONLY | O_CREAT | O_EXCL;
  descriptor_ = ::open(path.c_str(), how | O_CLOEXEC, 0666);
  if (descriptor_ < 0 && errno == EEXIST) refuse("is there already", "--resume goes on with it");
  if (descriptor_ < 0) refuse(std::string("cannot be written: ") + std::strerror(errno));
  try {
    if (resume) keep_whole_lines(header);
    if (::lseek(descriptor_, 0, SEEK_END) == 0) write(header);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SweepFile::~SweepFile() { ::close(descriptor_); }

void SweepFile::refuse(const std::string& why, const std::string& hint) const {
  throw InputError(Problem{io::last_name(path_), "", why, hint});
}

// Reads the file from its end: it may be larger than memory.
void SweepFile::keep_whole_lines(const std::string& header) {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) refuse("is not a file that can be continued");
  constexpr off_t kTail = 1 << 16;
  const off_t from = std::max<off_t>(0, status.st_size - kTail);
  std::string tail(static_cast<std::size_t>(status.st_size - from), '\0');
  if (::pread(descriptor_, tail.data(), tail.size(), from) != static_cast<ssize_t>(tail.size()))
    refuse("cannot be read");
  const std::size_t newline = tail.rfind('\n');
  const std::size_t whole = newline == std::string::npos ? 0 : newline + 1;
  if (whole == 0 && from > 0) refuse("is not a sweep's");
  std::string start(header.size(), '\0');
  if (whole > 0 && (::pread(descriptor_, start.data(), start.size(), 0) < 0 || start != header))
    refuse("was written with other columns", "the same options, or another file");
  if (::ftruncate(descriptor_, from + static_cast<off_t>(whole)) != 0) refuse("cannot be written");
  if (whole == 0 || from + static_cast<off_t>(whole) == static_cast<off_t>(header.size())) return;
  const std::size_t before = whole < 2 ? std::string::npos : tail.rfind('\n', whole - 2);
  last_row_ =
      tail.substr(before == std::string::npos ? 0 : before + 1, whole - (before == std::string::npos ? 0 : before + 1));
}

void SweepFile::write(std::string_view rows) {
  while (!rows.empty()) {
    const ssize_t written = ::write(descriptor_, rows.data(), rows.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse(std::string("cannot be written: ") + std::strerror(errno));
    rows.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::optional<std::size_t> case_of_row(std::string_view row) {
  constexpr std::string_view kJson = "{\"case\":";
  if (row.substr(0, kJson.size()) == kJson) row.remove_prefix(kJson.size());
  std::size_t number = 0;
  const auto read = std::from_chars(row.data(), row.data() + row.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace membill::cli

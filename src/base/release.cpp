#include "base/release.h"

#include <array>
#include <charconv>

namespace membill {
namespace {

using Release = std::array<int, 3>;

Release release_of(const std::string& version) {
  Release release{};
  const char *next = version.data(), *end = next + version.size();
  for (int& part : release) {
    const auto read = std::from_chars(next, end, part);
    if (read.ec != std::errc() || read.ptr == end || *read.ptr != '.') break;
    next = read.ptr + 1;
  }
  return release;
}

}  // namespace

bool is_before(const std::string& version, int major, int minor, int patch) {
  return release_of(version) < Release{major, minor, patch};
}

}  // namespace membill

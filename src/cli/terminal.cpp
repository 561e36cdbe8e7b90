#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "membill/units.h"

namespace membill::cli {
namespace {

constexpr std::int64_t kWidest = 1000;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

std::size_t terminal_width() {
  std::int64_t columns = 0;
  std::string why;
  if (parse_count(variable("COLUMNS"), columns, why) && columns > 0 && columns <= kWidest) {
    return static_cast<std::size_t>(columns);
  }
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

bool wants_color() { return isatty(STDOUT_FILENO) == 1 && variable("NO_COLOR").empty() && variable("TERM") != "dumb"; }

bool both_are_terminals() { return isatty(STDOUT_FILENO) == 1 && isatty(STDERR_FILENO) == 1; }

}  // namespace membill::cli

#include "support/readme_row.h"
#include "support/places.h"

#include <fmt/format.h>

#include <fstream>

#include "support/command.h"

namespace membill::accuracy {
namespace {

std::string percent(double part) {
  const double value = 100 * part;
  return value < 0.001 ? "under 0.001 %" : fmt::format("{:.{}f} %", value, value < 0.1 ? 3 : 2);
}

}  // namespace

std::string stale_readme_row(const std::string& label, const std::vector<std::string>& cells) {
  const std::string path = test::in_source("README.md"), head = "| " + label + " |";
  std::string row = head;
  for (const std::string& cell : cells) row += " " + cell + " |";
  std::string text = test::read_whole_file(path);
  const std::size_t at = text.find("\n" + head);
  if (at == std::string::npos) return "README.md has no row " + head;
  const std::size_t end = text.find('\n', at + 1);
  const std::string shown = text.substr(at + 1, end - at - 1);
  if (shown == row) return {};
  if (!test::rewriting_goldens()) return "README.md says\n  " + shown + "\nbut it is\n  " + row;
  std::ofstream(path, std::ios::binary) << text.replace(at + 1, end - at - 1, row);
  return {};
}

std::string stale_readme_row(const std::string& label, const Errors& errors) {
  return stale_readme_row(label, {std::to_string(errors.values.size()), percent(errors.median()),
                                  percent(errors.percentile(0.95)), percent(errors.worst())});
}

}  // namespace membill::accuracy

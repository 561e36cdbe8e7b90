#include "cli/any_report.h"

#include <filesystem>

#include "cli/inputs.h"
#include "io/job_file.h"
#include "io/json_reader.h"
#include "io/text_file.h"
#include "membill/estimate.h"
#include "report/read_report.h"

namespace membill::cli {
namespace {

bool is_file(const std::string& name) {
  std::error_code error;
  return std::filesystem::is_regular_file(name, error);
}

// The tree of a file; null when it is neither JSON nor YAML.
Value tree_of(const std::string& path) {
  try {
    const io::TextFile file = io::read_file(path);
    return io::parse_tree(file.text, file.name);
  } catch (const InputError&) {
    return {};
  }
}

}  // namespace

std::optional<Report> saved_report(const std::string& path) {
  if (!is_file(path)) return std::nullopt;
  const Value tree = tree_of(path);
  if (tree.find("schema") == nullptr || tree.find("totals") == nullptr) return std::nullopt;
  Problems problems;
  Report report = report::read_report(tree, io::last_name(path), problems);
  problems.throw_if_any();
  return report;
}

Report any_report(const Arguments& arguments, const std::string& name) {
  if (std::optional<Report> saved = saved_report(name)) return *std::move(saved);
  const bool job = names_job(name);
  const Inputs inputs = read_inputs(arguments, job ? nullptr : &name, job ? &name : nullptr);
  return estimate(inputs.model, inputs.plan, inputs.hardware);
}

}  // namespace membill::cli

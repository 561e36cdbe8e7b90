#include "cli/input_notes.h"

#include "membill/catalog.h"
#include "report/text.h"

namespace membill::cli {
namespace {

constexpr const char* kDefault = "default";

// Whether a --set names the field or a part of it.
bool is_set(const Arguments& arguments, const std::string& key) {
  for (const std::string& text : arguments.values("--set")) {
    const std::string typed = text.substr(0, text.find('='));
    if (typed == key || typed.rfind(key + ".", 0) == 0) return true;
  }
  return false;
}

// The value under a dotted key, nullptr for none.
const Value* find_dotted(const Value& tree, std::string_view key) {
  if (const Value* whole = tree.find(key)) return whole;
  const std::size_t dot = key.find('.');
  const Value* branch = dot == std::string_view::npos ? nullptr : tree.find(key.substr(0, dot));
  return branch == nullptr ? nullptr : find_dotted(*branch, key.substr(dot + 1));
}

std::string note(const std::string& where, const std::string& key, const std::string& value) {
  return to_text({where, key, value, ""});
}

std::string plan_note(const PlanField& field, const Arguments& arguments, const io::JobFile& job) {
  const PlanFieldRow* row = find_plan_field(field.key);
  const bool has_flag = row != nullptr && !row->flag.empty();
  if (has_flag && arguments.has(row->flag)) return note(kCommandLine, row->flag, field.json);
  if (is_set(arguments, field.key)) return note(kCommandLine, "--set " + field.key, field.json);
  return note(find_dotted(job.plan, field.key) == nullptr ? kDefault : job.file, field.key, field.json);
}

std::string machine_note(const Arguments& arguments, const io::JobFile& job, const Hardware& hardware) {
  const std::string where = arguments.has("--gpu") ? kCommandLine : job.hardware.gpu ? job.file : kDefault;
  const std::string name = hardware.gpu ? hardware.gpu->name : "no card";
  return note(where, "hardware", std::to_string(hardware.count) + " x " + name);
}

}  // namespace

std::vector<std::string> input_notes(const Arguments& arguments, const io::JobFile& job, const Inputs& inputs) {
  const bool from_job = arguments.positionals.empty() && (job.model || job.config || job.generic);
  std::vector<std::string> notes{
      note(from_job ? job.file : kCommandLine, "model", inputs.model.name + ", " + inputs.model.source),
      machine_note(arguments, job, inputs.hardware)};
  if (!job.format.empty()) notes.push_back(note(job.file, "format", job.format));
  for (const PlanField& field : write_plan_fields(inputs.plan)) notes.push_back(plan_note(field, arguments, job));
  for (const io::KeyRecord& record : job.records) notes.push_back(io::to_text(record));
  for (const std::string& text : job.assumptions) notes.push_back(note(job.file, "assumed", text));
  return notes;
}

}  // namespace membill::cli

#include "support/job_rows.h"

#include "io/hardware_source.h"
#include "io/job_file.h"
#include "io/model_source.h"
#include "membill/catalog.h"
#include "membill/estimate.h"

namespace membill::accuracy {
namespace {

Hardware machine_of(const io::JobFile& file) {
  Hardware hardware;
  hardware.count = file.hardware.count.value_or(1);
  if (!file.hardware.gpu) return hardware;
  const io::FoundGpu found = io::find_gpu(*file.hardware.gpu, {}, "hardware.gpu", file.file);
  hardware.gpu = found.gpu;
  hardware.assumptions = found.assumptions;
  return hardware;
}

}  // namespace

RowJob read_row_job(const Value& job, const std::string& id) {
  Problems problems;
  const io::JobFile file = io::split_job(job, id, "", problems);
  RowJob row;
  read_plan(file.plan, id, row.plan, problems);
  problems.throw_if_any();
  row.hardware = machine_of(file);
  row.model = io::describe_model(file.config ? io::load_config(*file.config, id, id) : io::load_model(*file.model, {}));
  for (const Problem& problem : validate(row.model, row.plan, row.hardware))
    row.not_billed += (row.not_billed.empty() ? "" : ", ") + problem.key + ": " + problem.message;
  return row;
}

std::string text_or(const Value& map, std::string_view key, const std::string& otherwise) {
  const Value* value = map.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : otherwise;
}

std::string repository_of(const Value& row) { return text_or(*row.find("source"), "repo", "no source"); }

}  // namespace membill::accuracy

// membill's own job file: any bytes give a job, problems, or an InputError.
#include "io/job_file.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "membill/problem.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    membill::Problems problems;
    membill::TrainingPlan plan;
    const membill::Value tree = membill::io::parse_tree(text, "job.yaml");
    const membill::io::JobFile job = membill::io::split_job(tree, "job.yaml", "", problems);
    membill::read_plan(job.plan, "job.yaml", plan, problems);
  } catch (const membill::InputError&) {
  }
  return 0;
}

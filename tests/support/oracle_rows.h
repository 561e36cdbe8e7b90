// Rows of data/measurements/oracle.jsonl: what the real frameworks' allocator counted, and what membill says of the same job.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "membill/hardware.h"
#include "membill/model_spec.h"
#include "membill/training_plan.h"

namespace membill::accuracy {

struct OracleRow {
  std::string id;
  ModelSpec model;
  TrainingPlan plan;
  Hardware hardware;                              // one card, or as many as the job names
  std::string method;                             // full, lora, qlora, dora
  std::map<std::string, std::int64_t> requested;  // "weights", "after_forward", "peak_backward", ...
  std::map<std::string, std::int64_t> allocated;  // the same keys, and "reserved"
  std::int64_t host = 0;                          // page-locked and pageable bytes; 0: not measured
  std::int64_t nvme = 0;                          // bytes in files; 0: none, or not measured
};

// Every row. Throws InputError or std::runtime_error when the file or a job in it cannot be read.
[[nodiscard]] std::vector<OracleRow> read_oracle_rows(const std::string& path);

// membill's figures under the same keys.
struct Predicted {
  std::map<std::string, std::int64_t> requested, allocated;
  std::int64_t reserved = 0;
  std::int64_t host = 0, nvme = 0;
  bool activations_known = true;
};
[[nodiscard]] Predicted predict(const OracleRow& row, bool with_replay);

}  // namespace membill::accuracy

// The job of a row of data/measurements, written as membill's own job file.
#pragma once

#include <string>

#include "membill/hardware.h"
#include "membill/model_spec.h"
#include "membill/training_plan.h"
#include "membill/value.h"

namespace membill::accuracy {

struct RowJob {
  ModelSpec model;
  TrainingPlan plan;
  Hardware hardware;
  std::string not_billed;  // what this version cannot bill of it; empty: estimate() answers
};

// Reads the model (a preset or {config: ...}), the card and the plan. Throws InputError when the row itself is wrong.
[[nodiscard]] RowJob read_row_job(const Value& job, const std::string& id);

// Texts of a row's `source`: its repository and where in it.
[[nodiscard]] std::string repository_of(const Value& row);

// The member `key` of a map, or `otherwise`.
[[nodiscard]] std::string text_or(const Value& map, std::string_view key, const std::string& otherwise);

}  // namespace membill::accuracy

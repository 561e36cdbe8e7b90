// Rows of data/measurements/outcomes.jsonl: runs of which it is known whether they fitted on their card.
#pragma once

#include <string>
#include <vector>

#include "support/job_rows.h"

namespace membill::accuracy {

struct OutcomeRow {
  std::string id, repository;
  std::string not_a_job;  // why the run is none that membill describes; empty: `job` holds it
  std::string cause;      // of a known disagreement; empty: none
  bool ran = false;       // false: it ran out of the card's memory
  bool complete = false;  // the report says every input of the bill
  RowJob job;
};

// Throws InputError or std::runtime_error when the file or a job in it cannot be read.
[[nodiscard]] std::vector<OutcomeRow> read_outcome_rows(const std::string& path);

}  // namespace membill::accuracy

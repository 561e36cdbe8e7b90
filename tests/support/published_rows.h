// Rows of data/measurements/published.jsonl: memory that others measured on real cards and printed, and membill's figures of the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "membill/report.h"
#include "support/job_rows.h"

namespace membill::accuracy {

// One printed figure of a run.
struct Figure {
  std::string kind;   // allocated, reserved, device (nvidia-smi), unknown (the source does not say)
  std::string phase;  // peak, steady, load, after_forward, after_backward, after_step, context
  std::int64_t bytes = 0;
  std::string cause;  // of a miss of this figure alone
};

struct PublishedRow {
  std::string id, repository, method;
  std::string cause;      // of a known miss: the software's version, the row's own code, the source's inputs
  std::string not_a_job;  // why the run is none that membill describes; empty: `job` holds it
  RowJob job;
  std::vector<Figure> figures;
};

// Throws InputError or std::runtime_error when the file or a job in it cannot be read.
[[nodiscard]] std::vector<PublishedRow> read_published_rows(const std::string& path);

// membill's figure of the same kind and phase; low and high for device totals. Nothing when membill has no such figure.
struct PublishedEstimate {
  std::int64_t bytes = 0;
  std::int64_t low = 0, high = 0;
};
class PublishedRun {
 public:
  // REQUIRES: a job that is billed.
  explicit PublishedRun(const PublishedRow& row);
  [[nodiscard]] const Report& report() const { return report_; }
  [[nodiscard]] std::optional<PublishedEstimate> figure(const Figure& wanted) const;

 private:
  [[nodiscard]] std::optional<std::int64_t> allocated_after(const std::string& phase) const;

  struct MomentEnd {
    std::string name;
    std::int64_t end = 0;
  };
  Report report_;
  std::int64_t loaded_ = 0;      // allocated when everything is built
  std::vector<MomentEnd> ends_;  // allocated at each moment's end
};

}  // namespace membill::accuracy

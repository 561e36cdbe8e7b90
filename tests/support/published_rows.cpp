#include "support/published_rows.h"

#include <fstream>
#include <stdexcept>

#include "estimate/simulation.h"
#include "io/json_reader.h"
#include "membill/catalog.h"
#include "membill/estimate.h"
#include "trace/fold.h"
#include "trace/replay.h"

namespace membill::accuracy {
namespace {

std::vector<Figure> read_figures(const Value& list) {
  std::vector<Figure> figures;
  for (const Value& item : list.items())
    figures.push_back({item.find("kind")->as_string(), item.find("phase")->as_string(), item.find("bytes")->as_int(),
                       text_or(item, "cause", "")});
  return figures;
}

std::string method_of(const RowJob& job, const Value& row) {
  if (row.find("job") == nullptr) return "none";
  const std::string method = text_or(*row.find("job"), "method", "full");
  return weight_format(job.plan.weights).quantized ? "q" + method : method;
}

PublishedEstimate exactly(std::int64_t bytes) { return {bytes, bytes, bytes}; }

PublishedEstimate within(const Range& range) { return {*range.likely, *range.low, *range.high}; }

}  // namespace

std::vector<PublishedRow> read_published_rows(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<PublishedRow> rows;
  for (std::string line; std::getline(file, line);) {
    const Value value = io::parse_json(line, path);
    PublishedRow row;
    row.id = value.find("id")->as_string();
    row.repository = repository_of(value);
    row.cause = text_or(value, "cause", "");
    row.not_a_job = text_or(value, "not_a_job", "");
    if (const Value* job = value.find("job")) row.job = read_row_job(*job, row.id);
    if (const Value* rank = value.find("rank")) row.job.hardware.rank = rank->as_int();
    row.method = method_of(row.job, value);
    row.figures = read_figures(*value.find("figures"));
    rows.push_back(std::move(row));
  }
  return rows;
}

PublishedRun::PublishedRun(const PublishedRow& row) : report_(estimate(row.job.model, row.job.plan, row.job.hardware)) {
  const Simulation job = simulate(row.job.model, row.job.plan, row.job.hardware);
  const std::vector<std::int64_t> bytes = job.trace.evaluate(job.symbols);
  loaded_ = fold_peak(job.trace, bytes).built;
  const ReplayResult replayed = replay(job.trace, bytes, {}, std::nullopt);
  for (const ReplayMoment& moment : replayed.moments)
    ends_.push_back({job.trace.moments[static_cast<std::size_t>(moment.moment)], moment.end});
}

std::optional<std::int64_t> PublishedRun::allocated_after(const std::string& phase) const {
  if (phase == "load") return loaded_;
  for (const MomentEnd& moment : ends_) {
    if (phase == "steady" && moment.name == "zero") return moment.end;
    if (phase == "after_step" && moment.name == "step") return moment.end;
    if (phase == "after_backward" && moment.name == "backward") return moment.end;
    // These loops read their figure when the model has returned, before a loss: the outputs of the step before, still held then,
    // stand for those of this one.
    if (phase == "after_forward" && moment.name == "forward") return moment.end;
  }
  return std::nullopt;
}

std::optional<PublishedEstimate> PublishedRun::figure(const Figure& wanted) const {
  const Totals& totals = report_.totals;
  if (wanted.phase == "peak") {
    if (wanted.kind == "allocated") return exactly(*totals.allocated.likely);
    if (wanted.kind == "reserved") return exactly(*totals.reserved.likely);
    return within(totals.device);
  }
  if (wanted.kind != "allocated") return std::nullopt;
  const std::optional<std::int64_t> bytes = allocated_after(wanted.phase);
  if (!bytes) return std::nullopt;
  return exactly(*bytes);
}

}  // namespace membill::accuracy

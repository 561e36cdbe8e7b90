#include "support/oracle_rows.h"

#include <fstream>
#include <stdexcept>

#include "catalog/plan_fields/words.h"
#include "estimate/simulation.h"
#include "io/json_reader.h"
#include "io/model_source.h"
#include "membill/catalog.h"
#include "trace/fold.h"
#include "trace/replay.h"

namespace membill::accuracy {
namespace {

// The plan, and of "hardware" the number of cards.
void read_job(const Value& job, OracleRow& row, Problems& problems) {
  Value plan = Value::make_map();
  for (const auto& [key, value] : job.entries()) {
    if (key == "hardware") {
      if (const Value* count = value.find("count")) row.hardware.count = count->as_int();
    } else if (key == "teacher") {
      plan.set(key, Value::of(std::string("config")));
      row.model.teacher =
          std::make_shared<const ModelSpec>(io::describe_model(io::load_config(*value.find("config"), row.id, row.id)));
    } else {
      plan.set(key, value);
    }
  }
  read_plan(plan, row.id, row.plan, problems);
}

std::map<std::string, std::int64_t> figures(const Value& map) {
  std::map<std::string, std::int64_t> result;
  for (const auto& [key, value] : map.entries()) result[key] = value.as_int();
  return result;
}

// The measured loop counts its loss with the forward, and the reference where it is no model of its own.
std::string phase_of(const OracleRow& row, const std::string& moment) {
  const bool apart = row.allocated.count("peak_reference") != 0;
  return moment == "loss" || moment == "teacher" || (moment == "reference" && !apart) ? "forward" : moment;
}

// The loss goes on behind the reference, so a forward that counts it does not end with it.
bool ends(const std::string& moment, const std::string& phase) {
  return (moment != "reference" && moment != "teacher") || phase == moment;
}

// Its phases end where the next begins.
void add_moment(std::map<std::string, std::int64_t>& out, const OracleRow& row, const Trace& trace,
                const PeakFold& fold) {
  for (const MomentFold& moment : fold.moments) {
    const std::string& own = trace.moments[static_cast<std::size_t>(moment.moment)];
    const std::string name = phase_of(row, own);
    auto& peak = out["peak_" + name];
    peak = std::max(peak, moment.highest);
    if (ends(own, name)) out["after_" + name] = moment.end;
  }
  out["peak"] = fold.highest;
}

}  // namespace

std::vector<OracleRow> read_oracle_rows(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<OracleRow> rows;
  for (std::string line; std::getline(file, line);) {
    const Value value = io::parse_json(line, path);
    OracleRow row;
    Problems problems;
    row.id = value.find("id")->as_string();
    row.model = io::describe_model(io::load_config(*value.find("config"), row.id, row.id));
    read_job(*value.find("job"), row, problems);
    if (!problems.empty()) throw std::runtime_error(to_text(problems.list().front()));
    if (const Value* run = value.find("run"); run != nullptr && row.hardware.count > 1)
      row.hardware.rank = run->find("rank") != nullptr ? run->find("rank")->as_int() : 0;
    row.method = word_of(kMethodWords, row.plan.method);
    if (weight_format(row.plan.weights).quantized) row.method = "q" + row.method;
    if (const Value* requested = value.find("requested")) row.requested = figures(*requested);
    row.allocated = figures(*value.find("bytes"));
    if (const Value* host = value.find("host")) {
      row.host = host->find("pinned")->as_int() + host->find("pageable")->as_int();
      if (const Value* nvme = host->find("nvme")) row.nvme = nvme->as_int();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Predicted predict(const OracleRow& row, bool with_replay) {
  const Simulation job = simulate(row.model, row.plan, row.hardware);
  const std::vector<std::int64_t> bytes = job.trace.evaluate(job.symbols);
  Predicted result;
  result.activations_known = job.activations_known;
  for (const auto& [item, taken] : job.host) result.host += taken;
  for (const auto& [item, taken] : job.nvme) result.nvme += taken;
  const PeakFold fold = fold_peak(job.trace, bytes);
  add_moment(result.requested, row, job.trace, fold);
  result.requested["weights"] = result.requested["wrapped"] = fold.built;
  if (with_replay) {
    const ReplayResult replayed = replay(job.trace, bytes, {}, std::nullopt);
    result.reserved = replayed.reserved;  // the measuring script resets its peaks when the model is built
    for (const ReplayMoment& moment : replayed.moments) {
      const std::string& own = job.trace.moments[static_cast<std::size_t>(moment.moment)];
      const std::string name = phase_of(row, own);
      auto& peak = result.allocated["peak_" + name];
      peak = std::max(peak, moment.allocated);
      if (ends(own, name)) result.allocated["after_" + name] = moment.end;
    }
    result.allocated["peak"] = replayed.allocated;
  }
  return result;
}

}  // namespace membill::accuracy

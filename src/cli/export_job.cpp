#include "cli/export_job.h"

#include "io/model_source.h"
#include "membill/catalog.h"

namespace membill::cli {
namespace {

void name_model(const std::string& name, const io::DataDirs& dirs, io::ExportJob& job) {
  job.model = name;
  const std::optional<io::NamedPreset> named = io::preset_named(name, io::all_models(dirs));
  if (!named) return;
  job.preset = named->preset.short_name;
  if (!named->preset.hub_id.empty() && named->alias.empty()) job.model = named->preset.hub_id;
}

void name_targets(const io::DataDirs& dirs, io::ExportJob& job) {
  const bool adapts = job.plan.method != Method::full && job.plan.method != Method::freeze;
  if (!adapts || !job.plan.adapter.targets.empty() || job.preset.empty()) return;
  for (const std::string_view target : default_lora_targets(io::load_model(job.preset, dirs).model_type)) {
    if (target.find_first_of("*+?[](){}|^$\\") == std::string_view::npos) job.plan.adapter.targets.emplace_back(target);
  }
}

}  // namespace

io::ExportJob export_job(const TrainingPlan& plan, const Hardware& hardware, const std::string& model,
                         const io::DataDirs& dirs) {
  io::ExportJob job;
  job.plan = plan;
  job.count = hardware.count;
  job.nodes = hardware.nodes;
  name_model(model, dirs, job);
  name_targets(dirs, job);
  return job;
}

}  // namespace membill::cli

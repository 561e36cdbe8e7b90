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

}  // namespace

io::ExportJob export_job(const TrainingPlan& plan, const Hardware& hardware, const std::string& model,
                         const io::DataDirs& dirs) {
  io::ExportJob job;
  job.plan = plan;
  job.count = hardware.count;
  job.nodes = hardware.nodes;
  name_model(model, dirs, job);
  io::name_default_targets(job.preset, dirs, job.plan);
  return job;
}

}  // namespace membill::cli

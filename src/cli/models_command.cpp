// membill models: the presets, with their exact parameter counts.
#include "cli/command_list.h"
#include "cli/data_option.h"
#include "cli/listing.h"
#include "io/model_source.h"
#include "membill/catalog.h"

namespace membill::cli {
namespace {

ListingRow listing_row(const std::string& hub_id, const ModelSpec& model) {
  const Family* family = find_family(model.model_type);
  return {model.name,
          {{"short_name", model.name},
           {"name", hub_id},
           {"family", model.model_type},
           {"class", model.class_name},
           {"parameters", model.parameters()},
           {"active_parameters", model.active_parameters()},
           {"layers", model.layers},
           {"hidden", model.hidden},
           {"vocab", model.vocab},
           {"tied_embeddings", model.tied_embeddings},
           {"activations_modelled", family != nullptr && family->activations_modelled},
           {"source", model.source}}};
}

std::vector<ArgumentSpec> arguments() {
  return {{"NAME", "one model in full: a preset, a config.json or a model folder", false, {}}};
}

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all = listing_options();
  all.push_back(data_option());
  return all;
}

// The hub id of the preset that a model came from; the name itself when it is none.
std::string hub_id_of(const std::string& name, const std::vector<io::ModelPreset>& presets) {
  for (const io::ModelPreset& preset : presets) {
    if (preset.short_name == name) return preset.hub_id;
  }
  return name;
}

ExitCode run_models(const Arguments& arguments, Output& output) {
  const std::string format = listing_format(arguments);
  const io::DataDirs dirs = data_dirs(arguments);
  const std::vector<io::ModelPreset> presets = io::all_models(dirs);
  if (const std::string* name = arguments.positional(0)) {
    const ModelSpec model = io::describe_model(io::load_model(*name, dirs, "NAME"));
    output.out = render_row(listing_row(hub_id_of(model.name, presets), model), format);
    for (const std::string& warning : model.warnings)
      output.notes.push_back(to_text({model.name, "", "warning: " + warning, ""}));
    return ExitCode::computed;
  }
  Listing listing{{"short_name", "parameters", "family", "name"}, {}};
  for (const io::ModelPreset& preset : presets) {
    listing.rows.push_back(listing_row(preset.hub_id, io::describe_model(io::load_model(preset.short_name, dirs))));
  }
  output.out = render_listing(listing, format);
  return ExitCode::computed;
}

}  // namespace

Command models_command() {
  return {"models", "The models: presets with their exact parameter counts, and their sources",     arguments,
          options,  {"models", "models llama-2-7b --format json", "models ./my-model/config.json"}, run_models};
}

}  // namespace membill::cli

// membill models: the presets, with their exact parameter counts.
#include <algorithm>

#include "base/text.h"
#include "cli/command_list.h"
#include "cli/data_option.h"
#include "cli/listing.h"
#include "io/model_source.h"
#include "membill/estimate.h"

namespace membill::cli {
namespace {

constexpr const char* kMatch = "--match";

ListingRow listing_row(const io::ModelPreset& preset, const ModelSpec& model) {
  return {model.name,
          {{"short_name", model.name},
           {"name", preset.hub_id},
           {"family", model.model_type},
           {"class", model.class_name},
           {"parameters", model.parameters()},
           {"active_parameters", model.active_parameters()},
           {"layers", model.layers},
           {"hidden", model.hidden},
           {"vocab", model.vocab},
           {"tied_embeddings", model.tied_embeddings},
           {"activations_modelled", models_activations(model)},
           {"source", model.source},
           {"aliases", preset.aliases}}};
}

std::vector<ArgumentSpec> arguments() {
  return {{"NAME", "one model in full: a preset, a config.json or a model folder", false, {}}};
}

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all = listing_options();
  all.push_back({kMatch, Takes::value, "WORD", "only the presets with this word in a name or an alias", "Output", {}});
  all.push_back(data_option());
  return all;
}

// The preset that a model came from; only its name when it came from a file.
io::ModelPreset preset_of(const std::string& name, const std::vector<io::ModelPreset>& presets) {
  for (const io::ModelPreset& preset : presets) {
    if (preset.short_name == name) return preset;
  }
  return {name, name, {}};
}

bool has_word(const io::ModelPreset& preset, const std::string& word) {
  const auto contains = [&](const std::string& name) { return to_lower(name).find(word) != std::string::npos; };
  return contains(preset.short_name) || contains(preset.hub_id) ||
         std::any_of(preset.aliases.begin(), preset.aliases.end(), contains);
}

ExitCode run_models(const Arguments& arguments, Output& output) {
  const std::string format = listing_format(arguments);
  const io::DataDirs dirs = data_dirs(arguments);
  const std::vector<io::ModelPreset> presets = io::all_models(dirs);
  const std::string* match = arguments.value(kMatch);
  if (const std::string* name = arguments.positional(0)) {
    if (match != nullptr) throw InputError(Problem{kCommandLine, kMatch, "lists presets: not beside a NAME", ""});
    const ModelSpec model = io::describe_model(io::load_model(*name, dirs, "NAME"));
    output.out = render_row(listing_row(preset_of(model.name, presets), model), format);
    for (const std::string& warning : model.warnings)
      output.notes.push_back(to_text({model.name, "", "warning: " + warning, ""}));
    return ExitCode::computed;
  }
  Listing listing{{"short_name", "parameters", "family", "name"}, {}};
  const std::string word = to_lower(match == nullptr ? "" : *match);
  for (const io::ModelPreset& preset : presets) {
    if (!has_word(preset, word)) continue;
    listing.rows.push_back(listing_row(preset, io::describe_model(io::load_model(preset.short_name, dirs))));
  }
  if (listing.rows.empty())
    throw InputError(Problem{kCommandLine, kMatch, quoted(word) + " is in no preset's name", ""});
  output.out = render_listing(listing, format);
  return ExitCode::computed;
}

}  // namespace

Command models_command() {
  return {"models",
          "The models: presets with their exact parameter counts, and their sources",
          arguments,
          options,
          {"models", "models --match coder", "models llama-2-7b --format json", "models ./my-model/config.json"},
          run_models};
}

}  // namespace membill::cli

// Models as the user names them: a preset, a config.json, a model folder, or standard input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/model_names.h"
#include "io/preset_files.h"
#include "membill/model_spec.h"
#include "membill/problem.h"
#include "membill/value.h"

namespace membill::io {

// A Hugging Face config with every class default filled in, ready for the family of `model_type`.
struct LoadedModel {
  std::string name;          // the preset's short name, or the path as given
  std::string alias;         // the hub id that was asked for, where it is an alias of the preset; empty: none
  bool related = false;      // no preset has the name: it is the preset of a model that the name is a copy of
  std::string model_type;    // a member of families()
  Value config;              // of a multimodal wrapper: its text part
  Source source;             // "preset llama-2-7b: ..." or "config.json"
  std::string file;          // name in problems
  std::string part;          // key of the file under which `config` stands ("text_config"); empty: the whole
  std::string folder;        // where checkpoint files may lie; empty: nowhere
  std::string stored_dtype;  // torch_dtype or dtype as written; empty = not said
  StoredWeights stored;      // how its weights are quantised
  Value wrapper, vision;     // of a multimodal wrapper: the whole, and its vision part
  std::string wrapper_type, vision_type;  // their model types; empty: none
  std::vector<std::string> not_counted;   // keys of the parts that are left out ("vision_config")
  std::vector<std::string> warnings;      // what was assumed to read the file
};

// Finds and reads the model that `argument` names:
//  * "-": a config on standard input;
//  * the path of a config.json, or of a folder that holds one (a folder goes before a preset of its name, as in transformers; a file
//    does only when the name has a '/' or an ending);
//  * a preset's short name, its hub id, an alias (a checkpoint of the same shapes) with or without its owner, or a tail of the first
//    two that no other preset has; case does not matter;
//  * the name of a copy, quantised or fine-tuned (related_preset()), which a warning says.
// `key` is the argument or key in problems about the name itself ("MODEL"). Throws InputError.
[[nodiscard]] LoadedModel load_model(std::string_view argument, const DataDirs& dirs, const std::string& key = "MODEL");

// The same from a config given inline, at `name` ("model.config" of a job file).
[[nodiscard]] LoadedModel load_config(const Value& config, const std::string& file, const std::string& name);

// The model's census: the family's description of the config with the names, sources and warnings of `model`, and with a warning for
// each disagreement of the checkpoint files in its folder (safetensors.h). Throws InputError with every missing or impossible key.
[[nodiscard]] ModelSpec describe_model(const LoadedModel& model);

// All presets, by short name.
[[nodiscard]] std::vector<ModelPreset> all_models(const DataDirs& dirs);

}  // namespace membill::io

// Which preset a name of a model means: the preset's own, one of its aliases, or the name of a copy that another owner has made,
// quantised or fine-tuned.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "membill/weight_format.h"

namespace membill::io {

// A preset for listings, without reading its config.
struct ModelPreset {
  std::string short_name;  // "llama-2-7b"
  std::string hub_id;      // "meta-llama/Llama-2-7b-hf"
  std::vector<std::string>
      aliases;  // hub ids of other checkpoints of its shapes; "owner/name*" stands for all that begin so
};

// A preset, and which of its aliases was meant (empty: none).
struct NamedPreset {
  ModelPreset preset;
  std::string alias;
};

// The preset that has `text` as its short name, hub id or alias, with or without the owner; case does not matter.
[[nodiscard]] std::optional<NamedPreset> preset_named(std::string_view text, const std::vector<ModelPreset>& presets);
// That one, or else all whose short name or hub id ends with `text`.
[[nodiscard]] std::vector<NamedPreset> presets_named(std::string_view text, const std::vector<ModelPreset>& presets);
// Those whose short name begins with `text`, however its version is spelled ("phi3-mini").
[[nodiscard]] std::vector<NamedPreset> presets_beginning(std::string_view text,
                                                         const std::vector<ModelPreset>& presets);

// The preset that `name` leads to once its owner, the ending that says how it is stored, and those of fine-tuned versions are left out,
// from the nearest name on.
[[nodiscard]] std::optional<NamedPreset> related_preset(std::string_view name, const std::vector<ModelPreset>& presets);
// The preset of the base that the name of a fine-tuned version states ("dolphin-2.9-llama3-8b"); nothing where another word in it tells of
// other shapes, or of more than one size.
[[nodiscard]] std::optional<NamedPreset> stated_base(std::string_view name, const std::vector<ModelPreset>& presets);
// How the weights of a copy are stored, as the ending of its name says ("-bnb-4bit", "-AWQ"); without a method: not said.
[[nodiscard]] StoredWeights storage_named(std::string_view name);

}  // namespace membill::io

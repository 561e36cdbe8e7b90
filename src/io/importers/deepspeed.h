// DeepSpeed's JSON: by itself, or as a part of another job.
#pragma once

#include <optional>
#include <string>

#include "io/importers/importer.h"

namespace membill::io {

// How `auto` values are filled by whoever hands the configuration to DeepSpeed. Hugging Face's Trainer fills what its own arguments
// say, and three sizes from the model's width, which the plan keeps as "auto".
struct DeepSpeedFill {
  bool bf16 = false, fp16 = false;
  bool calls_checkpoint = false;  // the training code calls DeepSpeed's checkpoint function
};

// Reads DeepSpeed's map into the draft: engine, ZeRO, buffers, offloading, precision, batch where it is said.
void read_deepspeed_part(const Value& config, const std::string& file, const DeepSpeedFill& fill, Draft& draft);

// The value of a `deepspeed` key: a map, a path, JSON text, or the name of a file that a framework ships ("zero2", "zero3_offload").
void read_deepspeed_argument(const Value& argument, const std::string& key, const DeepSpeedFill& fill, Draft& draft);

}  // namespace membill::io

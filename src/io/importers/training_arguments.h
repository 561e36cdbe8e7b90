// Hugging Face's TrainingArguments: the keys that every framework built on the Trainer takes.
#pragma once

#include <string>

#include "io/importers/importer.h"

namespace membill::io {

// Names, defaults and harmless keys of TrainingArguments; a framework's own table goes before it where it changes a default.
[[nodiscard]] KeyTable training_arguments_table();

// Reads batch, accumulation, evaluation, precision flags, optimizer, clipping, compilation, kernels and checkpointing. `reentrant` is
// what the framework checkpoints with when gradient_checkpointing_kwargs do not say it.
void read_training_arguments(KeyReader& reader, bool reentrant, Draft& draft);

// Reads deepspeed, fsdp, fsdp_config and DDP's keys, then accelerate's configuration of the launcher. Call it when precision flags and
// method are known.
void read_sharding_arguments(KeyReader& reader, const Launch& launch, Draft& draft);

// Rows of a batch are padded to the longest of it: lengths vary, and a mask is passed when a batch has several rows.
void set_padded(Draft& draft);

}  // namespace membill::io

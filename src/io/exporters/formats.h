// Every exporter, one function a file, and the parts of one format that others hold.
#pragma once

#include "io/exporters/exporter.h"
#include "io/exporters/key_writer.h"

namespace membill::io {

[[nodiscard]] Exporter native_exporter();
[[nodiscard]] Exporter llamafactory_exporter();
[[nodiscard]] Exporter axolotl_exporter();
[[nodiscard]] Exporter trl_exporter();
[[nodiscard]] Exporter torchtune_exporter();
[[nodiscard]] Exporter deepspeed_exporter();
[[nodiscard]] Exporter accelerate_exporter();
[[nodiscard]] Exporter fsdp_exporter();
[[nodiscard]] Exporter peft_exporter();
[[nodiscard]] Exporter ms_swift_exporter();
[[nodiscard]] Exporter hf_trainer_exporter();
[[nodiscard]] Exporter litgpt_exporter();
[[nodiscard]] Exporter megatron_exporter();
[[nodiscard]] Exporter megatron_swift_exporter();
[[nodiscard]] Exporter unsloth_exporter();
[[nodiscard]] Exporter verl_exporter();
[[nodiscard]] Exporter torchtitan_exporter();

// The keys of a Megatron step, whose names Megatron-LM's flags and Megatron-SWIFT's arguments share. `experts`: the model has some, and
// Megatron-LM's own defaults of them hold.
void write_megatron_step(const ExportJob& job, bool experts, KeyWriter& writer, Problems& problems);

// DeepSpeed's map. `whole`: with batch, accumulation and clipping; else they are left to Hugging Face's arguments as "auto".
[[nodiscard]] Value deepspeed_tree(const ExportJob& job, bool whole);
// FSDP's options, each key with `prefix` ("fsdp_" in accelerate's file). `strategy`: the strategy stands among them.
[[nodiscard]] Value fsdp_tree(const ExportJob& job, const std::string& prefix, bool strategy);

// Arguments of Hugging Face's Trainer: batch, accumulation, evaluation, precision flags, optimizer, clipping, compilation, kernels.
void write_training_arguments(const ExportJob& job, KeyWriter& writer, Problems& problems);
// gradient_checkpointing and its kwargs.
void write_checkpointing_arguments(const ExportJob& job, KeyWriter& writer);
// deepspeed, or fsdp and fsdp_config, or DDP's keys, with their maps inside.
void write_sharding_arguments(const ExportJob& job, KeyWriter& writer, Problems& problems);

// Losses of a preference stage beside the pairs' own, for frameworks whose CPO counts the chosen answers' likelihood unless told not to.
void write_preference_losses(const TrainingPlan& plan, const char* loss_key, KeyWriter& writer);

// Keys of a job that trains on what it generates, each behind `prefix` ("trl.").
void write_rollout(const TrainingPlan& plan, const std::string& prefix, KeyWriter& writer);

}  // namespace membill::io

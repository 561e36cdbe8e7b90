// Every importer, one function a file.
#pragma once

#include <string>
#include <utility>

#include "io/importers/parts.h"
#include "io/text_file.h"

namespace membill::io {

[[nodiscard]] Importer llamafactory_importer();
[[nodiscard]] Importer axolotl_importer();
[[nodiscard]] Importer ms_swift_importer();
[[nodiscard]] Importer megatron_swift_importer();
[[nodiscard]] Importer torchtune_importer();
[[nodiscard]] Importer litgpt_importer();
[[nodiscard]] Importer trl_importer();
[[nodiscard]] Importer hf_trainer_importer();
[[nodiscard]] Importer unsloth_importer();
[[nodiscard]] Importer megatron_importer();
[[nodiscard]] Importer deepspeed_importer();
[[nodiscard]] Importer accelerate_importer();
[[nodiscard]] Importer fsdp_importer();
[[nodiscard]] Importer peft_importer();
[[nodiscard]] Importer verl_importer();
[[nodiscard]] Importer torchtitan_importer();
[[nodiscard]] Importer fsdp_qlora_importer();
[[nodiscard]] Importer openrlhf_importer();
[[nodiscard]] Importer llama_recipes_importer();

// Their keys, which exporters write by too.
[[nodiscard]] KeyTable llamafactory_table();
[[nodiscard]] KeyTable axolotl_table();
[[nodiscard]] KeyTable torchtune_table();
[[nodiscard]] KeyTable trl_table();
[[nodiscard]] KeyTable ms_swift_table();
[[nodiscard]] KeyTable hf_trainer_table();
[[nodiscard]] KeyTable litgpt_table();
[[nodiscard]] KeyTable deepspeed_table();
[[nodiscard]] KeyTable accelerate_table();
[[nodiscard]] KeyTable fsdp_table();  // each key with and without "fsdp_"
[[nodiscard]] KeyTable peft_table();
[[nodiscard]] KeyTable megatron_table();
[[nodiscard]] KeyTable megatron_swift_table();
[[nodiscard]] KeyTable unsloth_table();
[[nodiscard]] KeyTable verl_table();
[[nodiscard]] KeyTable openrlhf_table();
[[nodiscard]] KeyTable llama_recipes_table();
[[nodiscard]] KeyTable torchtitan_table();
// model.name and model.flavor of the model that torchtitan builds in the preset's shapes; empty: none.
[[nodiscard]] std::pair<std::string, std::string> torchtitan_flavor(const std::string& preset);

}  // namespace membill::io

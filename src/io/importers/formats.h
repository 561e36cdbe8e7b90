// Every importer, one function a file.
#pragma once

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

}  // namespace membill::io

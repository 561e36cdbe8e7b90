// Keys of jobs that train on what they generate, as TRL's GRPOConfig spells them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/importers/importer.h"
#include "io/importers/key_table.h"

namespace membill::io {

// What a front end says of a row and makes of a key that is absent.
struct RolloutLengths {
  std::string prefix = {};                            // before each key: "trl."
  std::optional<std::int64_t> prompt = {}, row = {};  // tokens of a prompt, or of prompt and completion together
  std::int64_t batch = 1;                             // completions of a micro-batch
  double beta = 0;                                    // where the file has none
};

// Stage grpo: lengths, generations, beta, and who generates. Source: trl 1.16 trainer/grpo_config.py.
void read_rollout(const RolloutLengths& lengths, KeyReader& reader, Draft& draft);

}  // namespace membill::io

// References inside a file of keys: OmegaConf's ("${output_dir}/logs", "${model.lora_rank}", "${oc.env:SEQ,2048}"), and variables of the
// environment ("${SEQ:-2048}").
#pragma once

#include "io/importers/importer.h"
#include "membill/value.h"

namespace membill::io {

// A copy of `root` in which every reference is replaced by what it refers to: a value of the file, or a variable of the launch. A
// reference to nothing, and one that leads back to itself, is left as it stands.
[[nodiscard]] Value with_references(const Value& root, const Launch& launch);
// A copy of `root` with "${NAME}" and "${NAME:-default}" filled in from `environment`, as envsubst would; what of them takes its default is
// said in `assumptions`.
[[nodiscard]] Value with_variables(const Value& root, const Variables& environment,
                                   std::vector<std::string>& assumptions);

}  // namespace membill::io

// Every family's describe function, for the registry. See Family::describe.
#pragma once

#include "membill/catalog.h"

namespace membill::census {

ModelSpec describe_llama(const Value& config, Problems& problems);
ModelSpec describe_mistral(const Value& config, Problems& problems);
ModelSpec describe_qwen2(const Value& config, Problems& problems);
ModelSpec describe_qwen3(const Value& config, Problems& problems);

}  // namespace membill::census

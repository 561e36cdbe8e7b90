// A llama of seven narrow layers: quick to simulate, with grouped queries and a repeated layer.
#pragma once

#include "membill/model_spec.h"

namespace membill::test {

[[nodiscard]] ModelSpec small_llama();

}  // namespace membill::test

// A preset of the catalogue by name, as the program would read it.
#pragma once

#include <string>

#include "io/model_source.h"

namespace membill::test {

[[nodiscard]] inline ModelSpec preset(const std::string& name) {
  return io::describe_model(io::load_model(name, {}, "MODEL"));
}

}  // namespace membill::test

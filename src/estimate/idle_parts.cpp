#include "estimate/idle_parts.h"

#include <utility>

namespace membill {

void keep_idle(JobModules& job, const TensorSpec& spec, Tensor weight, std::unique_ptr<QuantizedWeight> stored) {
  if (stored != nullptr)
    job.idle.insert(job.idle.end(), stored->parts.begin(), stored->parts.end());
  else
    job.idle.push_back(weight);
  const bool owns_matrix = spec.module == ModuleKind::linear || spec.module == ModuleKind::embedding;
  if (!owns_matrix || spec.shape.size() != 2) return;
  Module& module = job.idle_modules.add(spec.module_name());
  module.kind = spec.module;
  module.role = spec.role;
  module.weight.value = std::move(weight);
  module.quantized = std::move(stored);
}

}  // namespace membill

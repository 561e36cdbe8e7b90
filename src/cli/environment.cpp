#include "cli/environment.h"

#include <cstdlib>

#include "io/importers/parts.h"
#include "membill/catalog.h"

namespace membill::cli {

// torch 2.15 c10/core/AllocatorConfig.h: the older name counts where the newer is not set.
std::string apply_environment(TrainingPlan& plan, Problems& problems) {
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread starts
    if (text == nullptr) continue;
    const Value fields = io::allocator_fields(text);
    if (fields.entries().empty()) return {};
    Value tree = Value::make_map();
    tree.set("allocator", fields);
    read_plan(tree, name, plan, problems);
    return "allocator: the environment's " + std::string(name) + "=" + text + "; a job file and options win";
  }
  return {};
}

}  // namespace membill::cli

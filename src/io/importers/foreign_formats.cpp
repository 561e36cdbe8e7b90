#include "io/importers/foreign_formats.h"

#include <string_view>

#include "io/importers/importer.h"
#include "membill/problem.h"

namespace membill::io {
namespace {

struct ForeignFormat {
  std::string_view keys;  // blanks between; of which at least `least` are there
  int least;
  std::string_view owner, hint;
};
constexpr ForeignFormat kForeign[] = {
    {"data_stages parallelism tokens general checkpoints", 4, "nanotron",
     "the model as config.json and membill's own flags: --engine megatron --tp, --pp"},
    {"device_train_microbatch_size max_duration train_loader device_train_batch_size", 2, "llm-foundry (Composer)",
     "membill's own flags: --engine fsdp2 --batch N --seq N"},
    {"exp_manager trainer model", 3, "NeMo", "the Megatron flags that it comes to"},
    {"pipe_parallel_size pipe-parallel-size model_parallel_size model-parallel-size train_micro_batch_size_per_gpu", 3,
     "GPT-NeoX", "membill's own flags: --engine deepspeed --zero N"},
};

}  // namespace

void refuse_foreign(const Value& tree, const std::string& file) {
  if (!tree.is_map()) return;
  for (const ForeignFormat& format : kForeign) {
    if (count_keys(tree, format.keys) < format.least) continue;
    throw InputError(Problem{file, "", "is a job of " + std::string(format.owner) + ", which is not read",
                             std::string(format.hint)});
  }
}

}  // namespace membill::io

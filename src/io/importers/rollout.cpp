#include "io/importers/rollout.h"

#include <algorithm>

namespace membill::io {
namespace {

constexpr std::int64_t kUnsaidTokens = 512;
constexpr double kVllmShare = 0.3;

void read_server(const std::string& prefix, KeyReader& reader, Draft& draft) {
  const std::string mode = reader.text(prefix + "vllm_mode").value_or("colocate");
  const double share = reader.real(prefix + "vllm_gpu_memory_utilization").value_or(kVllmShare);
  const bool sleeps = reader.flag(prefix + "vllm_enable_sleep_mode");
  if (!reader.flag(prefix + "use_vllm")) return;
  draft.set("stage_args.use_vllm", Value::of(true));
  draft.set("stage_args.vllm_mode", Value::of(mode));
  draft.set("stage_args.vllm_gpu_memory_utilization", Value::of(share));
  if (sleeps) draft.set("stage_args.vllm_enable_sleep_mode", Value::of(true));
}

}  // namespace

void read_rollout(const RolloutLengths& lengths, KeyReader& reader, Draft& draft) {
  const std::string& prefix = lengths.prefix;
  const std::optional<std::int64_t> completion = reader.count(prefix + "max_completion_length", 1);
  if (!completion && !draft.is_given("completion"))
    draft.assume("completions have 512 tokens: max_completion_length is not given");
  if (!lengths.prompt && !lengths.row && !draft.is_given("prompt"))
    draft.assume("prompts have 512 tokens: max_prompt_length is not given");
  const std::int64_t tokens = completion.value_or(kUnsaidTokens);
  draft.set("stage", Value::of("grpo"));
  draft.set("seq", std::optional(lengths.row.value_or(lengths.prompt.value_or(kUnsaidTokens) + tokens)));
  draft.set("completion", std::optional(tokens));
  draft.set("generations", reader.count(prefix + "num_generations", 1));
  draft.set("beta", Value::of(reader.real(prefix + "beta").value_or(lengths.beta)));
  const std::optional<std::int64_t> all = reader.count(prefix + "generation_batch_size", 1);
  std::optional<std::int64_t> steps = reader.count(prefix + "steps_per_generation", 1);
  if (all && !steps) steps = std::max<std::int64_t>(1, *all / (lengths.batch * draft.processes.value_or(1)));
  if (steps) draft.set("stage_args.steps_per_generation", Value::of(*steps));
  const std::int64_t iterations = reader.count(prefix + "num_iterations", 1).value_or(1);
  if (iterations > 1) draft.set("stage_args.num_iterations", Value::of(iterations));
  read_server(prefix, reader, draft);
}

}  // namespace membill::io

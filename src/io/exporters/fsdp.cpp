// FSDP's options: the JSON of Hugging Face's fsdp_config.
#include <algorithm>

#include "base/text.h"
#include "io/exporters/formats.h"
#include "io/importers/formats.h"

namespace membill::io {
namespace {

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
  return text;
}

Value write(const ExportJob& job, Problems& problems) {
  require_engine(job, {Engine::fsdp, Engine::fsdp2}, "fsdp", problems);
  return fsdp_tree(job, "", true);
}

}  // namespace

Value fsdp_tree(const ExportJob& job, const std::string& prefix, bool strategy) {
  const PlanText plan(job.plan);
  KeyWriter writer({fsdp_table()});
  const bool second = job.plan.engine == Engine::fsdp2;
  const std::string& sharding = job.plan.sharding.fsdp;
  writer.set(prefix + "version", Value::of(second ? 2 : 1));
  if (second) {
    writer.set(prefix + "reshard_after_forward", Value::of(sharding != "shard_grad_op"));
  } else if (strategy) {
    writer.set(prefix + "sharding_strategy", Value::of(upper(sharding)));
  }
  const bool offload = job.plan.sharding.offload != "none";
  writer.set(prefix + "offload_params", Value::of(offload));
  if (const Value* pin = plan.find("sharding.pin_memory"); pin != nullptr && offload)
    writer.set(prefix + "cpu_offload_pin_memory", *pin);
  if (job.plan.save.state == "sharded") writer.set(prefix + "state_dict_type", Value::of("SHARDED_STATE_DICT"));
  const bool wraps = plan.word("sharding.wrap") != "none";
  writer.set(prefix + "auto_wrap_policy", Value::of(wraps ? "TRANSFORMER_BASED_WRAP" : "NO_WRAP"));
  if (const std::string prefetch = plan.word("sharding.backward_prefetch"); !prefetch.empty())
    writer.set(prefix + "backward_prefetch", Value::of(prefetch == "none" ? "NO_PREFETCH" : upper(prefetch)));
  for (const char* key : {"forward_prefetch", "limit_all_gathers", "use_orig_params", "cpu_ram_efficient_loading"}) {
    if (const Value* value = plan.find("sharding." + std::string(key))) writer.set(prefix + key, *value);
  }
  return writer.take();
}

Exporter fsdp_exporter() { return {"fsdp", "FSDP's JSON (fsdp_config)", Syntax::json, true, write}; }

}  // namespace membill::io

#include <limits>
#include <set>
#include <string>

#include "membill/catalog.h"
#include "support/catch.h"

using namespace membill;

namespace {

// Each problem on a line of its own, then the plan's field of `key`.
std::string read_one(std::string_view key, const Value& value) {
  const PlanFieldRow* row = find_plan_field(key);
  REQUIRE(row != nullptr);
  TrainingPlan plan;
  std::string hint;
  const std::string wrong = row->read(value, plan, hint);
  if (wrong.empty()) return row->write(plan);
  return hint.empty() ? wrong : wrong + " (" + hint + ")";
}

std::string read_flag(std::string_view key, std::string_view text) { return read_one(key, flag_value(text)); }

std::string read_settings(const std::vector<PlanSetting>& settings, TrainingPlan& plan) {
  Problems problems;
  read_plan_settings(settings, "command line", plan, problems);
  std::string all;
  for (const Problem& problem : problems.list()) all += to_text(problem) + "\n";
  return all;
}

std::string read_tree(const Value& tree, TrainingPlan& plan) {
  Problems problems;
  read_plan(tree, "job.yaml", plan, problems);
  std::string all;
  for (const Problem& problem : problems.list()) all += to_text(problem) + "\n";
  return all;
}

std::string written(const TrainingPlan& plan, std::string_view key) {
  for (const PlanField& field : write_plan_fields(plan)) {
    if (field.key == key) return field.json;
  }
  return "";
}

Value map(std::vector<Value::Entry> entries) { return Value::make_map(std::move(entries)); }

}  // namespace

TEST_CASE("every field has a key, a help line and values; flags are unambiguous", "[plan]") {
  std::set<std::string> keys;
  std::set<std::string> flags;
  const TrainingPlan plan;
  for (const PlanFieldRow& row : plan_fields()) {
    INFO(row.key);
    CHECK(keys.insert(row.key).second);
    CHECK_FALSE(row.help.empty());
    CHECK_FALSE(row.values.empty());
    CHECK(find_plan_field(row.key) == &row);
    if (!row.flag.empty()) {
      CHECK(flags.insert(row.flag).second);
      CHECK(row.flag.substr(0, 2) == "--");
      CHECK(row.flag.find('_') == std::string::npos);
      CHECK(find_plan_field(row.flag) == &row);
    }
    CHECK_FALSE(row.write(plan).empty());
  }
  CHECK(find_plan_field("") == nullptr);
  for (const std::string_view flag : {"--method", "--rank", "--targets", "--lora-dropout", "--dropout", "--optimizer",
                                      "--optimizer-impl", "--zero", "--tp", "--batch", "--seq", "--checkpointing",
                                      "--attention", "--loss", "--precision", "--weights", "--offload"}) {
    INFO(flag);
    CHECK(find_plan_field(flag) != nullptr);
  }
}

TEST_CASE("a field's own JSON is read back to the same", "[plan]") {
  TrainingPlan plan;
  CHECK(read_settings({{"--method", "qlora"}, {"--batch", "4"}, {"--loss", "chunked:512"}, {"--dropout", "0.1"}}, plan)
            .empty());
  for (const PlanFieldRow& row : plan_fields()) {
    const std::string json = row.write(plan);
    if (row.free_map || json.front() == '[' || json.front() == '{') continue;
    const bool text = json.front() == '"';
    TrainingPlan copy = plan;
    std::string hint;
    INFO(row.key << " " << json);
    CHECK(row.read(text ? Value::of(json.substr(1, json.size() - 2)) : flag_value(json), copy, hint) == "");
    CHECK(row.write(copy) == json);
  }
}

TEST_CASE("defaults are those of the job file", "[plan]") {
  const TrainingPlan plan;
  CHECK(written(plan, "stage") == "\"sft\"");
  CHECK(written(plan, "method") == "\"full\"");
  CHECK(written(plan, "weights") == "\"bf16\"");
  CHECK(written(plan, "precision") == "\"amp-bf16\"");
  CHECK(written(plan, "optimizer") == "\"adamw\"");
  CHECK(written(plan, "optimizer_impl") == "\"foreach\"");
  CHECK(written(plan, "batch") == "1");
  CHECK(written(plan, "seq") == "2048");
  CHECK(written(plan, "accumulate") == "1");
  CHECK(written(plan, "checkpointing") == "\"none\"");
  CHECK(written(plan, "attention") == "\"sdpa\"");
  CHECK(written(plan, "loss") == "null");
  CHECK(written(plan, "loop") == "\"trainer\"");
  CHECK(written(plan, "clip") == "true");
  CHECK(written(plan, "lengths") == "\"fixed\"");
  CHECK(written(plan, "adapter.targets") == "[]");
  CHECK(written(plan, "software") == "{}");
  CHECK(written(plan, "sharding.zero") == "0");
  CHECK(written(plan, "sharding.reduce_bucket_size") == "");
  CHECK(written(plan, "checkpointing.every") == "");
}

TEST_CASE("a flag's text becomes the value it looks like", "[plan]") {
  CHECK(flag_value("null").is_null());
  CHECK(flag_value("true").is_bool());
  CHECK(flag_value("8").as_int() == 8);
  CHECK(flag_value("-8").as_int() == -8);
  CHECK(flag_value("2e8").written() == "2e8");
  CHECK(flag_value("0.5").as_real() == 0.5);
  CHECK(flag_value("08").is_string());
  CHECK(flag_value("nan").is_string());
  CHECK(flag_value("1e999").is_string());
  CHECK(flag_value("").is_string());
  CHECK(flag_value("True").is_string());
  CHECK(flag_value("99999999999999999999").written() == "99999999999999999999");
}

TEST_CASE("counts are whole numbers in range", "[plan]") {
  CHECK(read_flag("batch", "8") == "8");
  CHECK(read_flag("batch", "0") == "needs a whole number, 1 or more, not 0");
  CHECK(read_flag("batch", "-1") == "needs a whole number, 1 or more, not -1");
  CHECK(read_flag("batch", "2e8") == "needs a whole number, 1 or more, not 2e8");
  CHECK(read_flag("batch", "eight") == "needs a whole number, 1 or more, not the text 'eight'");
  CHECK(read_flag("batch", "") == "needs a whole number, 1 or more, not the text ''");
  CHECK(read_flag("batch", "null") == "needs a whole number, 1 or more, not null");
  CHECK(read_flag("batch", "true") == "needs a whole number, 1 or more, not true");
  CHECK(read_flag("batch", "1000000001") == "is too large");
  CHECK(read_one("batch", Value::make_list()) == "needs a whole number, 1 or more, not a list");
  CHECK(read_one("batch", map({})) == "needs a whole number, 1 or more, not a map");
  CHECK(read_flag("--zero", "4") == "needs a whole number, 0 to 3, not 4");
  CHECK(read_flag("adapter.alpha", "null") == "null");
  CHECK(read_flag("allocator.max_split_size_mb", "20") == "needs a whole number, 21 or more, not 20");
}

TEST_CASE("reals stay in range", "[plan]") {
  CHECK(read_flag("adapter.dropout", "0.05") == "0.05");
  CHECK(read_flag("adapter.dropout", "0") == "0");
  CHECK(read_flag("adapter.dropout", "1") == "needs a number, 0 to 1 (not itself), not 1");
  CHECK(read_flag("adapter.dropout", "-0.1") == "needs a number, 0 to 1 (not itself), not -0.1");
  CHECK(read_flag("dropout", "null") == "null");
  CHECK(read_flag("imbalance", "0.5") == "needs a number, 1 to 1e+06, not 0.5");
  CHECK(read_flag("allocator.garbage_collection_threshold", "0") ==
        "needs a number, 0 (not itself) to 1 (not itself), not 0");
  CHECK(read_one("dropout", Value::of(std::numeric_limits<double>::quiet_NaN(), ".nan")) ==
        "needs a number, 0 to 1 (not itself), not .nan");
}

TEST_CASE("words are compared without case and dashes", "[plan]") {
  CHECK(read_flag("attention", "mem_efficient") == "\"mem-efficient\"");
  CHECK(read_flag("attention", "flash_attention_2") == "\"flash\"");
  CHECK(read_flag("attention", "flsh") == "has the unknown value 'flsh' (flash)");
  CHECK(read_flag("engine", "horovod") ==
        "has the unknown value 'horovod' (one of torch, ddp, deepspeed, fsdp, fsdp2, megatron)");
  CHECK(read_flag("engine", "8") == "needs a word, not 8 (one of torch, ddp, deepspeed, fsdp, fsdp2, megatron)");
  CHECK(read_flag("sharding.fsdp", "full-shard") == "\"full_shard\"");
  CHECK(read_flag("clip", "yes") == "needs true or false, not the text 'yes'");
  CHECK(read_flag("gradient_dtype", "float32") == "\"fp32\"");
  CHECK(read_flag("gradient_dtype", "null") == "null");
}

TEST_CASE("a word that may mean several things is refused with the candidates", "[plan]") {
  CHECK(read_flag("precision", "bf16") == "'bf16' may mean several regimes (amp-bf16, pure-bf16 or master-bf16)");
  CHECK(read_flag("precision", "fp16") == "'fp16' may mean several regimes (amp-fp16, pure-fp16 or master-fp16)");
  CHECK(read_flag("precision", "amp") == "'amp' may mean several regimes (amp-bf16 or amp-fp16)");
  CHECK(read_flag("precision", "bf16-mixed") == "\"amp-bf16\"");
  CHECK(read_flag("weights", "int4") ==
        "'int4' may mean several formats (nf4, fp4, gptq-int4, awq-int4, hqq-int4 or mxfp4)");
  CHECK(read_flag("weights", "load_in_4bit") == "'load_in_4bit' may mean several formats (nf4 or fp4)");
  CHECK(read_flag("weights", "nf44") == "has the unknown value 'nf44' (nf4)");
}

TEST_CASE("optimizers are read by any of their names", "[plan]") {
  CHECK(read_flag("optimizer", "adamw_torch_fused") == "\"adamw\"");
  CHECK(read_flag("optimizer", "paged_adamw_8bit") == "\"paged-adamw-8bit\"");
  CHECK(read_flag("optimizer", "adamx") == "has the unknown value 'adamx' (adamw)");
  CHECK(read_flag("optimizer", "zzzzzzzzz") == "has the unknown value 'zzzzzzzzz' (see membill optimizers)");
  CHECK(read_flag("optimizer", "8") == "needs the name of an optimizer, not 8 (see membill optimizers)");
  TrainingPlan plan;
  CHECK(read_settings({{"--optimizer", "adamw_torch_fused"}}, plan).empty());
  CHECK(plan.optimizer_impl == OptimizerImpl::fused);
}

TEST_CASE("names are a list or text with commas", "[plan]") {
  CHECK(read_flag("adapter.targets", "q_proj,v_proj") == "[\"q_proj\", \"v_proj\"]");
  CHECK(read_flag("adapter.targets", "q_proj, v_proj") == "[\"q_proj\", \"v_proj\"]");
  CHECK(read_flag("adapter.targets", "all_linear") == "[\"all-linear\"]");
  CHECK(read_flag("adapter.targets", "null") == "[]");
  CHECK(read_one("adapter.targets", Value::make_list({Value::of("q_proj")})) == "[\"q_proj\"]");
  CHECK(read_flag("adapter.targets", "q_proj,,v_proj") == "has an empty name");
  CHECK(read_flag("adapter.targets", "8") == "needs a list of names, not 8");
  CHECK(read_one("adapter.targets", Value::make_list({Value::of(8)})) == "needs a list of names, one of them is 8");
  CHECK(read_one("adapter.targets", Value::of("a\nb")) == "must not hold control characters");
}

TEST_CASE("the loss may be chunked", "[plan]") {
  CHECK(read_flag("loss", "chunked:1024") == "\"chunked:1024\"");
  CHECK(read_flag("loss", "native") == "\"native\"");
  CHECK(read_flag("loss", "null") == "null");
  CHECK(read_flag("loss", "chunked") == "needs the rows of a chunk (chunked:1024)");
  CHECK(read_flag("loss", "chunked:0") == "needs 1 or more rows in a chunk");
  CHECK(read_flag("loss", "chunked:x") == "rows of a chunk: needs a whole number in plain digits");
  CHECK(read_flag("loss", "nativ") == "has the unknown value 'nativ' (native)");
}

TEST_CASE("checkpointing is a word or a map", "[plan]") {
  CHECK(read_flag("checkpointing", "full") == "\"full\"");
  CHECK(read_flag("checkpointing", "true") == "needs a word, not true (full)");
  CHECK(read_flag("checkpointing", "selective:") == "needs names after 'selective:'");
  TrainingPlan plan;
  CHECK(read_settings({{"--checkpointing", "selective:core_attn,mlp"}}, plan).empty());
  CHECK(written(plan, "checkpointing") ==
        "{\"mode\": \"selective\", \"reentrant\": false, \"every\": 1, \"offload\": false, \"selective\": "
        "[\"core_attn\", \"mlp\"]}");
  TrainingPlan mapped;
  CHECK(read_tree(map({{"checkpointing", map({{"mode", Value::of("full")}, {"reentrant", Value::of(true)}})}}), mapped)
            .empty());
  CHECK(mapped.checkpointing.mode == Checkpointing::full);
  CHECK(mapped.checkpointing.reentrant);
  TrainingPlan megatron;
  CHECK(
      read_tree(map({{"checkpointing",
                      map({{"mode", Value::of("full")}, {"method", Value::of("uniform")}, {"layers", Value::of(2)}})}}),
                megatron)
          .empty());
  CHECK(written(megatron, "checkpointing") ==
        "{\"mode\": \"full\", \"reentrant\": false, \"every\": 1, \"offload\": false, \"selective\": [], \"method\": "
        "\"uniform\", \"layers\": 2}");
  CHECK(read_tree(map({{"checkpointing", map({{"evry", Value::of(2)}})}}), mapped) ==
        "job.yaml: checkpointing.evry: unknown key (checkpointing.every)\n");
}

TEST_CASE("qlora is lora over nf4", "[plan]") {
  TrainingPlan plan;
  CHECK(read_settings({{"--method", "qlora"}}, plan).empty());
  CHECK(plan.method == Method::lora);
  CHECK(plan.weights == WeightFormat::nf4);
  CHECK(plan.double_quant);
  CHECK(plan.kbit_prepare);
  TrainingPlan fp4;
  CHECK(read_settings({{"--weights", "fp4"}, {"--double-quant", "false"}, {"--method", "qlora"}}, fp4).empty());
  CHECK(fp4.weights == WeightFormat::fp4);
  CHECK_FALSE(fp4.double_quant);
  TrainingPlan wrong;
  CHECK(read_settings({{"--method", "qlora"}, {"--weights", "bf16"}}, wrong) ==
        "command line: --weights: the text 'bf16' contradicts method qlora, whose base is quantised (nf4, or method "
        "lora)\n");
}

TEST_CASE("a lone precision says the storage of plain weights", "[plan]") {
  TrainingPlan plan;
  CHECK(read_settings({{"--precision", "fp32"}}, plan).empty());
  CHECK(plan.weights == WeightFormat::fp32);
  TrainingPlan amp;
  CHECK(read_settings({{"--precision", "amp-fp16"}}, amp).empty());
  CHECK(amp.weights == WeightFormat::bf16);
  TrainingPlan both;
  CHECK(read_settings({{"--precision", "pure-bf16"}, {"--weights", "fp32"}}, both).empty());
  CHECK(both.weights == WeightFormat::fp32);
  TrainingPlan quantised;
  CHECK(read_settings({{"--method", "qlora"}, {"--precision", "pure-bf16"}}, quantised).empty());
  CHECK(quantised.weights == WeightFormat::nf4);
}

TEST_CASE("the order of keys does not matter", "[plan]") {
  const std::vector<Value::Entry> entries{{"optimizer_impl", Value::of("fused")},
                                          {"optimizer", Value::of("adamw_torch")},
                                          {"double_quant", Value::of(false)},
                                          {"method", Value::of("qlora")},
                                          {"checkpointing", Value::of("full")}};
  std::vector<Value::Entry> reversed(entries.rbegin(), entries.rend());
  TrainingPlan a;
  TrainingPlan b;
  CHECK(read_tree(map(entries), a).empty());
  CHECK(read_tree(map(reversed), b).empty());
  for (const PlanFieldRow& row : plan_fields()) CHECK(row.write(a) == row.write(b));
}

TEST_CASE("engine keys are kept as the engine spells them", "[plan]") {
  TrainingPlan plan;
  CHECK(read_settings({{"sharding.reduce_bucket_size", "2e8"},
                       {"sharding.overlap_comm", "auto"},
                       {"sharding.wrap", "block"},
                       {"sharding.stage3_prefetch_bucket_size", "auto"},
                       {"sharding.pin_memory", "true"}},
                      plan)
            .empty());
  CHECK(plan.sharding.engine_keys.at("reduce_bucket_size") == "200000000");
  CHECK(written(plan, "sharding.reduce_bucket_size") == "200000000");
  CHECK(written(plan, "sharding.overlap_comm") == "\"auto\"");
  CHECK(written(plan, "sharding.wrap") == "\"block\"");
  CHECK(written(plan, "sharding.pin_memory") == "true");
  CHECK(read_flag("sharding.reduce_bucket_size", "2.5") == "needs a whole number, 0 or more, not 2.5");
  CHECK(read_flag("sharding.reduce_bucket_size", "-1") == "needs a whole number, 0 or more, not -1");
  CHECK(read_flag("sharding.reduce_bucket_size", "null") == "null");
  CHECK(read_flag("sharding.wrap", "blok") == "has the unknown value 'blok' (block)");
  CHECK(read_flag("sharding.overlap_comm", "1") == "needs true or false, not 1");
}

TEST_CASE("maps of the user's own keys", "[plan]") {
  TrainingPlan plan;
  CHECK(read_settings({{"software.torch", "2.10"}, {"software.megatron-core", "0.16.0"}, {"optimizer_args.rank", "64"}},
                      plan)
            .empty());
  CHECK(written(plan, "software") == "{\"megatron-core\": \"0.16.0\", \"torch\": \"2.10\"}");
  CHECK(written(plan, "optimizer_args") == "{\"rank\": \"64\"}");
  CHECK(read_tree(map({{"software", map({{"torch", Value::of(2.5, "2.50")}})}}), plan).empty());
  CHECK(plan.software.at("torch") == "2.50");
  CHECK(plan.software.at("megatron-core") == "0.16.0");
  CHECK(read_tree(map({{"software", map({{"megatron-core", Value()}, {"trl", Value()}})}}), plan).empty());
  CHECK(written(plan, "software") == "{\"torch\": \"2.50\"}");
  CHECK(read_settings({{"software.torhc", "2.5"}}, plan) ==
        "command line: software.torhc: has the unknown key 'torhc' (torch)\n");
  CHECK(read_tree(map({{"software", Value::of(8)}}), plan) == "job.yaml: software: needs a map, not 8\n");
  CHECK(read_tree(map({{"optimizer_args", map({{"rank", Value::make_list()}})}}), plan) ==
        "job.yaml: optimizer_args: 'rank' needs text, not a list\n");
}

TEST_CASE("all that is wrong in a plan is said at once", "[plan]") {
  TrainingPlan plan;
  CHECK(read_tree(map({{"bacth", Value::of(1)},
                       {"rank", Value::of(8)},
                       {"adapter", Value::of(8)},
                       {"seq", Value::of("long")},
                       {"adapter.rank", Value::of(0)},
                       {"parallel", map({{"tpp", Value::of(2)}})},
                       {"zzzzzzzz", Value::of(1)}}),
                  plan) ==
        "job.yaml: bacth: unknown key (batch)\n"
        "job.yaml: rank: unknown key (adapter.rank)\n"
        "job.yaml: adapter: needs a map, not 8\n"
        "job.yaml: parallel.tpp: unknown key (parallel.tp)\n"
        "job.yaml: zzzzzzzz: unknown key\n"
        "job.yaml: adapter.rank: needs a whole number, 1 or more, not 0\n"
        "job.yaml: seq: needs a whole number, 1 or more, not the text 'long'\n");
  CHECK(read_tree(Value::make_list(), plan) == "job.yaml: needs a map of plan fields, not a list\n");
  CHECK(read_settings({{"--batch", "1"}, {"batch", "2"}}, plan) == "command line: batch: is given twice\n");
  CHECK(read_settings({{"adapter", "8"}}, plan) == "command line: adapter: needs a map, not 8\n");
  CHECK(read_settings({{"--optimizer", "adamw_torch_fused"}, {"--optimizer-impl", "loop"}}, plan) ==
        "command line: --optimizer-impl: the text 'loop' contradicts optimizer adamw_torch_fused (fused, or optimizer "
        "adamw)\n");
}

// ms-swift's arguments, YAML and JSON (swift sft), of releases 2 to 4.
#include <algorithm>

#include "base/text.h"
#include "io/importers/formats.h"
#include "io/importers/images.h"
#include "io/importers/ms_swift_keys.h"
#include "io/importers/rollout.h"
#include "io/importers/sequence_ranks.h"
#include "io/importers/training_arguments.h"

namespace membill::io {
namespace {

constexpr std::string_view kSource = "modelscope/ms-swift 4.6, 3.6, 2.x: swift/arguments";

void read_base(KeyReader& reader, Draft& draft) {
  const std::string dtype = to_lower(reader.text("torch_dtype").value_or("auto"));
  draft.load_dtype = dtype_word(dtype);
  if (draft.load_dtype.empty()) {
    reader.problem("torch_dtype", "has the unknown value " + quoted(dtype), "bfloat16, float16, float32 or auto");
    draft.load_dtype = "auto";
  }
  const std::optional<std::int64_t> bits = reader.count("quant_bits");
  const std::string method = to_lower(reader.text("quant_method").value_or("bnb"));
  if (bits.value_or(0) == 0 || bits.value_or(0) == 16) return;
  if (method == "bnb") {
    return set_bits(*bits, reader.text("bnb_4bit_quant_type").value_or("nf4"), reader.flag("bnb_4bit_use_double_quant"),
                    false, draft);
  }
  draft.quantized = true;
  draft.set("weights", Value::of(method + "-int" + std::to_string(*bits)));
  draft.set("kbit_prepare", Value::of(false));
}

// Autocast follows the weights' dtype: bf16 for bf16, fp16 for all others.
void read_autocast(Draft& draft) {
  if (draft.load_dtype == "auto") {
    const std::string& stored = find_model(draft).stored_dtype;
    draft.load_dtype = stored.empty() ? "bf16" : stored;
  }
  draft.bf16 = draft.load_dtype == "bf16";
  draft.fp16 = !draft.bf16;
  if (draft.fp16 && plan_text(draft, "method") == "full")
    draft.load_dtype = "fp32";  // fp16 weights that train are cast up
}

// DEFAULT of 2.x: the query, key and value weights, under the model's own names (swift/llm/utils/model.py, LoRATM).
std::vector<std::string> default_targets(Draft& draft) {
  static constexpr std::pair<std::string_view, std::string_view> kJoined[] = {{"qwen", "c_attn"},
                                                                              {"baichuan", "W_pack"},
                                                                              {"chatglm", "query_key_value"},
                                                                              {"bloom", "query_key_value"},
                                                                              {"internlm2", "wqkv"},
                                                                              {"phi3", "qkv_proj"},
                                                                              {"dbrx", "Wqkv"},
                                                                              {"gpt2", "c_attn"},
                                                                              {"falcon", "query_key_value"}};
  const std::string& type = find_model(draft).model_type;
  for (const auto& [model_type, name] : kJoined) {
    if (type == model_type) return {std::string(name)};
  }
  return {"q_proj", "k_proj", "v_proj"};
}

constexpr LeftOut kLeftOut[] = {
    {"freeze_vit", "false trains the vision tower, which is billed as frozen without --images", true},
    {"freeze_aligner", "false trains the projector, which is billed as frozen without --images", true},
    {"freeze_llm", "is not billed: the language model is billed as it trains"},
    {"freeze_parameters_regex", "is not billed: what it freezes is billed as it trains"},
    {"trainable_parameters_regex", "is not billed: what it lets train is billed as frozen"},
    {"new_special_tokens", "new tokens lengthen the vocabulary, which is billed as the model has it"},
    {"enable_dft_loss", "weighs each token by its probability: the copies for it are not billed"},
    {"enable_channel_loss", "keeps the loss of each token, which is not billed"},
    {"device_map", "is not billed: each card is billed with the whole model"},
    {"max_memory", "is not billed: each card is billed with the whole model"},
    {"experts_impl", "is not billed: experts are billed as Transformers runs them by default"},
    {"predict_with_generate", "lets the evaluation generate, which is not billed"},
    {"eval_use_evalscope", "lets the evaluation generate, which is not billed"},
    {"ref_model", "is not billed: the reference model is billed with the policy's shapes"}};

void state_what_is_left_out(KeyReader& reader, Draft& draft) {
  warn_of_left_out(kLeftOut, reader, draft);
  if (reader.real("router_aux_loss_coef").value_or(0) > 0)
    draft.warnings.push_back("router_aux_loss_coef keeps the logits of the router, which is not billed");
}

void read_method(KeyReader& reader, Draft& draft) {
  state_what_is_left_out(reader, draft);
  std::string type = to_lower(reader.text("tuner_type").value_or("lora"));
  if (type == "lora_llm") {  // the towers train whole, which are not counted
    type = "lora";
    draft.warnings.push_back("tuner_type lora_llm trains the vision tower whole, which is not billed");
  }
  if (type == "full") {
    draft.set("method", Value::of("full"));
    if (reader.real("freeze_parameters_ratio").value_or(0) > 0 || reader.is_given("freeze_parameters"))
      draft.warnings.push_back("frozen parameters of a full fine-tuning are billed as if they trained");
    return;
  }
  if (type != "lora" && type != "longlora" && type != "adalora" && type != "vera" && type != "ia3")
    return reader.problem("tuner_type", quoted(type) + " is not billed", "lora, adalora, vera, ia3 or full");
  LoraArguments lora;
  lora.rank = reader.count(type == "vera" ? "vera_rank" : "lora_rank", 1);
  lora.alpha = reader.count("lora_alpha");
  lora.dropout = reader.real("lora_dropout");
  lora.targets = read_targets(reader, "target_modules");
  if (lora.targets.size() == 1 && lora.targets[0] == "DEFAULT") lora.targets = default_targets(draft);
  if (lora.targets.size() == 1 && lora.targets[0] == "ALL") lora.targets = {"all-linear"};
  if (const auto regex = reader.text("target_regex")) lora.targets = {*regex};
  for (const std::string& parameter : reader.texts("target_parameters")) lora.targets.push_back(parameter);
  lora.modules_to_save = reader.texts("modules_to_save");
  lora.dora = reader.flag("use_dora");
  set_lora(lora, draft);
  if (type != "lora" && type != "longlora") draft.set("method", Value::of(type));
  if (type == "adalora") draft.set("adapter.init_rank", reader.count("adalora_init_r", 1));
  if (const std::string dtype = dtype_word(reader.text("lora_dtype").value_or("")); !dtype.empty() && dtype != "auto")
    draft.set("adapter.dtype", Value::of(dtype));
}

constexpr double kGrpoBeta = 0.04;  // arguments/rlhf_args.py

void read_lengths(KeyReader& reader, Draft& draft) {
  const bool packing = reader.flag("packing");
  std::optional<std::int64_t> length = reader.count("max_length", 1);
  if (packing && reader.is_given("packing_length")) length = reader.count("packing_length", 1);
  if (!length) length = longest_sequence(draft);
  draft.set("seq", length);
  draft.set("packing", Value::of(packing && plan_text(draft, "stage") != "classification"));
  const bool joined = reader.flag("padding_free") || packing;
  const bool scores = plan_text(draft, "stage") == "classification";
  draft.set("padding_free", Value::of(joined && !scores));
  if (!joined) set_padded(draft);
  if (!joined || !scores) return;
  draft.set("lengths", Value::of("varied"));
  draft.assume("rows joined without padding are billed as rows of max_length tokens: flash attention keeps the same");
}

void read_batch(KeyReader& reader, Draft& draft) {
  const std::int64_t batch = reader.count("per_device_train_batch_size", 1).value_or(1);
  if (reader.is_given("gradient_accumulation_steps")) return;
  const std::int64_t world = world_size(draft).value_or(1);
  const std::int64_t rows = batch < 16 && world < 16 ? batch * world : 16;
  draft.set("accumulate", std::optional(std::max<std::int64_t>(1, (16 + rows - 1) / rows)));
}

void read_optimizers(KeyReader& reader, Draft& draft) {
  if (reader.flag("use_galore")) {
    set_optimizer(reader.flag("galore_quantization") ? "q_galore" : "galore", draft);
    draft.set("optimizer_args.rank", Value::of(std::to_string(reader.count("galore_rank", 1).value_or(128))));
    draft.set("optimizer_args.update_proj_gap",
              Value::of(std::to_string(reader.count("galore_update_proj_gap", 1).value_or(50))));
  }
  if (reader.count("lisa_activated_layers").value_or(0) > 0)
    draft.warnings.push_back(
        "lisa_activated_layers is not billed: every layer is billed as it trains, as its states stay once it has");
  if (const auto own = reader.text("optimizer"); own == "muon" || own == "muonclip") set_optimizer("muon", draft);
}

// max_length cuts the prompts of GRPO, and a completion follows each.
void read_completions(KeyReader& reader, Draft& draft) {
  RolloutLengths lengths;
  lengths.prompt = reader.count("max_length", 1);
  lengths.batch = reader.count("per_device_train_batch_size", 1).value_or(lengths.batch);
  lengths.beta = kGrpoBeta;
  read_rollout(lengths, reader, draft);
  if (reader.flag("use_vllm") && reader.count("sleep_level").value_or(0) > 0)
    draft.set("stage_args.vllm_enable_sleep_mode", Value::of(true));
}

// TRL's PPOTrainer runs it (rlhf_trainers/ppo_trainer.py): four models.
void read_ppo(KeyReader& reader, Draft& draft) {
  constexpr std::int64_t kPrompt = 512, kResponse = 512;
  const std::optional<std::int64_t> prompt = reader.count("max_length", 1);
  if (!prompt) draft.assume("prompts have 512 tokens: max_length is not given");
  std::optional<std::int64_t> response = reader.count("response_length", 1);
  if (!response) response = reader.count("max_completion_length", 1);
  if (const auto judge = reader.text("reward_model"); judge && judge != draft.model)
    draft.assume("the reward model and the value model are billed with the policy's shapes");
  draft.set("stage", Value::of("ppo"));
  draft.set("seq", std::optional(prompt.value_or(kPrompt) + response.value_or(kResponse)));
  draft.set("completion", std::optional(response.value_or(kResponse)));
  for (const char* key : {"num_mini_batches", "local_rollout_forward_batch_size"})
    if (const auto count = reader.count(key, 1)) draft.set(std::string("stage_args.") + key, Value::of(*count));
}

void read_preference(const std::string& stage, KeyReader& reader, Draft& draft) {
  if (stage == "simpo") take_stage_numbers("cpo_alpha", reader, draft);
  if (stage != "dpo") return;
  take_stage_numbers("rpo_alpha", reader, draft);
  if (const std::vector<std::string> losses = reader.texts("loss_type"); !losses.empty())
    draft.set("stage_args.loss_type", Value::of(losses.front()));
}

void read_stage(const JobSource& source, KeyReader& reader, Draft& draft) {
  const auto& program = source.launch.program;
  const std::string command = program.size() > 1 ? program[1] : "sft";
  std::string stage = command == "pt" ? "pretrain" : "sft";
  const bool named = command != "sft" && command != "pt" && command != "rlhf";  // 2.x: swift dpo
  if (command == "rlhf" || named || reader.map().find("rlhf_type") != nullptr) {
    const std::string type = named ? command : to_lower(reader.text("rlhf_type").value_or("dpo"));
    stage = type == "rm" ? "reward" : type == "cpo" ? "simpo" : type;
    if (type == "grpo") return read_completions(reader, draft);
    if (type == "ppo") return read_ppo(reader, draft);
    if (type == "gkd")
      return reader.problem("rlhf_type", type + " trains on what it generates, which is not billed",
                            "dpo, orpo, simpo, kto, grpo, ppo or rm");
    if (const auto beta = reader.real("beta")) draft.set("beta", Value::of(*beta));
    read_preference(stage, reader, draft);
  }
  draft.set("stage", Value::of(stage));
}

// The rows that one sample of a task brings (template/base.py, the data collators); 0: it is none that compares rows.
std::int64_t rows_of_sample(const std::string& task, const Launch& launch, Draft& draft) {
  if (task == "embedding") {
    draft.assume("a sample of embedding has two rows, anchor and positive: negatives of the data come on top");
    return 2;
  }
  if (task != "reranker" && task != "generative_reranker") return 0;
  constexpr std::int64_t kNegatives = 7;
  const bool said = launch.environment.find("MAX_NEGATIVE_SAMPLES") != nullptr;
  const std::int64_t negatives = said ? launch.environment.count("MAX_NEGATIVE_SAMPLES") : kNegatives;
  draft.assume("a sample of " + task + " has " + std::to_string(negatives + 1) +
               " rows, a positive one and as many negative ones as MAX_NEGATIVE_SAMPLES lets in" +
               (said ? "" : ", which is 7"));
  return negatives + 1;
}

// One number for each token, of which the last of a row counts (swift/model/patcher.py, loss/): a classifier's step with one label.
void read_comparison(const std::string& task, std::int64_t rows, KeyReader& reader, Draft& draft) {
  draft.set("stage", Value::of("classification"));
  draft.set("stage_args.num_labels", Value::of(1));
  const std::int64_t batch = reader.count("per_device_train_batch_size", 1).value_or(1);
  if (!reader.flag("packing") && batch < 1'000'000 && rows < 10'000) draft.set("batch", std::optional(batch * rows));
  if (task == "reranker") return;
  if (find_model(draft).untied)
    draft.warnings.push_back("task_type " + task + " keeps the head of the language model, which is not billed");
  if (task == "generative_reranker" && plan_text(draft, "method") == "full")
    draft.warnings.push_back("the gradient of the head's matrix is there from the loss on: it is billed at the end");
}

// A causal language model unless task_type says another class (swift/model/register.py).
void read_task(const Launch& launch, KeyReader& reader, Draft& draft) {
  const std::string task = to_lower(reader.text("task_type").value_or("causal_lm"));
  if (task == "causal_lm") return;
  if (const std::int64_t rows = rows_of_sample(task, launch, draft); rows > 0)
    return read_comparison(task, rows, reader, draft);
  if (task != "seq_cls")
    return reader.problem("task_type", quoted(task) + " is not billed",
                          "causal_lm, seq_cls, embedding, reranker or generative_reranker");
  draft.set("stage", Value::of("classification"));
  if (const auto labels = reader.count("num_labels", 1)) draft.set("stage_args.num_labels", Value::of(*labels));
}

void read_evaluation(KeyReader& reader, Draft& draft) {
  const bool has_data = reader.real("split_dataset_ratio").value_or(0) > 0 || reader.is_given("val_dataset");
  if (reader.text("eval_strategy") == "no" || !has_data) return;
  draft.set("evaluation.batch", reader.count("per_device_eval_batch_size", 1));
}

// Defaults of 2.x (swift/llm/utils/argument.py).
constexpr KeyRow kSecond[] = {{"max_length", "2048", "tokens of a sequence"},
                              {"target_modules", "DEFAULT", "modules that get an adapter"},
                              {"torch_dtype", "bfloat16", "dtype in which the weights are loaded"}};

bool is_second(const JobSource& source) {
  constexpr std::string_view kOld =
      "sft_type model_id_or_path template_type lora_target_modules lora_dropout_p dataset_test_ratio "
      "check_dataset_strategy train_dataset_sample custom_train_dataset_path batch_size deepspeed_config_path "
      "lora_target_regex lora_modules_to_save self_cognition_sample quantization_bit";
  constexpr std::string_view kNew =
      "model tuner_type train_type torch_dtype quant_bits target_modules attn_impl split_dataset_ratio rlhf_type_";
  return count_keys(source.keys, kOld) > 0 && count_keys(source.keys, kNew) == 0;
}

int claim(const JobSource& source) {
  if (!source.launch.program.empty() && source.launch.program.front() == "swift") return 100;
  const Value& keys = source.keys;
  const int types = count_keys(keys, "tuner_type train_type sft_type");
  const int own = count_keys(
      keys,
      "model_id_or_path split_dataset_ratio template_type lora_dropout_p load_from_cache_file model max_length "
      "torch_dtype dataset_num_proc lora_rank quant_bits target_modules freeze_vit tuner_backend rlhf_type");
  if (types > 0 && own > 0 && keys.find("context_length") == nullptr && keys.find("micro_batch_size") == nullptr)
    return 90;
  return own >= 4 && keys.find("finetuning_type") == nullptr ? 50 : 0;
}

void read(const JobSource& source, Draft& draft) {
  std::vector<KeyTable> tables{ms_swift_table(), training_arguments_table()};
  if (is_second(source)) {
    tables.insert(tables.begin(), {kSecond, {}, "modelscope/swift 2.6"});
    draft.assume("ms-swift 2 by the names of its arguments, with its defaults");
  }
  KeyReader reader(source.keys, source.file, tables, draft.problems);
  draft.model = reader.text("model");
  if (draft.model && draft.model->starts_with("qwen1half")) draft.model->replace(4, 5, "1.5");  // 2.x's model_type
  draft.model_key = "model";
  count_local_cards(source.launch, draft);
  read_stage(source, reader, draft);
  if (reader.text("train_backend") == "megatron")
    reader.problem("train_backend", "megatron of ms-swift 2 is not read", "megatron sft of ms-swift 3 and 4");
  const bool ddp = world_size(draft).value_or(1) > 1 && !reader.is_given("deepspeed") && !reader.is_given("fsdp");
  read_training_arguments(reader, !ddp, draft);
  draft.plan.set("evaluation.batch", Value());
  const std::string stage = plan_text(draft, "stage");
  const bool rows_said = stage == "grpo" || stage == "ppo";
  read_method(reader, draft);
  for (const auto& [variable, key] : {std::pair{"MIN_PIXELS", "image_min_pixels"}, {"MAX_PIXELS", "image_max_pixels"}})
    if (const std::int64_t pixels = source.launch.environment.count(variable);
        pixels > 0 && draft.is_given("vision.images"))
      draft.set(std::string("vision.") + key, Value::of(pixels));
  read_images(reader, {"", "max_pixels", "freeze_vit", "freeze_aligner"}, draft);
  read_base(reader, draft);
  if (is_second(source) && draft.load_dtype == "auto") draft.load_dtype = "bf16";
  read_autocast(draft);
  read_batch(reader, draft);
  read_task(source.launch, reader, draft);
  if (!rows_said) read_lengths(reader, draft);
  read_evaluation(reader, draft);
  read_optimizers(reader, draft);
  set_attention(reader.text("attn_impl").value_or(reader.flag("use_flash_attn") ? "flash_attn" : "sdpa"), "attn_impl",
                draft);
  spread_sequences(reader.count("sequence_parallel_size", 1), "parallel.ulysses", "ms-swift", draft);
  read_sharding_arguments(reader, source.launch, draft);
  set_quant_storage(reader.text("bnb_4bit_quant_storage").value_or("uint8"), draft);
  draft.add_records(reader);
}

}  // namespace

KeyTable ms_swift_table() { return {kMsSwiftKeys, kMsSwiftHarmless, kSource}; }

Importer ms_swift_importer() { return {"ms-swift", "ms-swift's arguments, YAML and JSON", kSource, claim, read}; }

}  // namespace membill::io

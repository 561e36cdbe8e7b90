#include "io/importers/python_job.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/importers/formats.h"
#include "io/importers/python_keywords.h"
#include "io/importers/python_program.h"
#include "io/importers/training_arguments.h"

namespace membill::io {
namespace {

// What matters most, and the option of membill's that says it in the program's place.
struct Essential {
  std::string_view key, plan_key, option;
};
constexpr std::array kEssential{Essential{"per_device_train_batch_size", "batch", "--batch N"},
                                Essential{"gradient_accumulation_steps", "accumulate", "--accumulate N"},
                                Essential{"max_length", "seq", "--seq N"},
                                Essential{"max_seq_length", "seq", "--seq N"},
                                Essential{"optim", "optimizer", "--optimizer NAME"},
                                Essential{"gradient_checkpointing", "checkpointing.mode", "--checkpointing WORD"},
                                Essential{"use_gradient_checkpointing", "checkpointing.mode", "--checkpointing WORD"},
                                Essential{"lora_r", "adapter.rank", "--rank N"},
                                Essential{"lora_target_modules", "adapter.targets", "--targets NAMES"},
                                Essential{"load_in_4bit", "weights", "--weights WORD"},
                                Essential{"load_in_8bit", "weights", "--weights WORD"}};

// TRL's trainer of a class ("SFTTrainer", "DPOConfig", Unsloth's "UnslothTrainer"); empty: none of TRL's.
std::string trl_trainer(const std::string& name) {
  for (const auto& [start, trainer] : kTrainers)
    if (name.starts_with(start)) return std::string(trainer);
  return {};
}

bool is_trainer(const PythonCall& call) { return call.function().ends_with("Trainer"); }
bool is_arguments(const PythonCall& call) {
  const std::string name = call.function();
  return name.ends_with("TrainingArguments") || (name.ends_with("Config") && !trl_trainer(name).empty());
}
bool is_unsloth_class(const std::string& name) { return name.starts_with("Fast") && name.ends_with("Model"); }
bool loads_model(const PythonCall& call) {
  if (call.function() != "from_pretrained") return false;
  const std::string object = call.object();
  return is_unsloth_class(object) || object.starts_with("AutoModelFor") || object.ends_with("ForCausalLM") ||
         object.ends_with("ForConditionalGeneration");
}

class PythonReader {
 public:
  PythonReader(std::string_view text, const std::string& file, const std::map<std::string, Value>& flags,
               const ImportContext& context, Problems& problems)
      : program_(text, flags), flags_(flags), file_(file), context_(context), problems_(problems) {}

  std::optional<PythonJob> run() {
    find_calls();
    if (trainer_at_ == nullptr && arguments_ == nullptr) return std::nullopt;
    name_trainer();
    job_.format = unsloth_ ? "unsloth" : trainer_.empty() ? "hf-trainer" : "trl";
    read_model();
    read_arguments();
    unsloth_ ? read_unsloth() : read_peft();
    read_release();
    warn_of_reference();
    if (asks_bf16_) job_.source.assumptions.emplace_back("the card is taken to run bf16, which the program asks it");
    if (unsloth_ && trainer_ != "sft" && !trainer_.empty())
      problems_.add({file_, trainer_call_, "of Unsloth is not billed yet: its own loss runs there", "SFTTrainer"});
    job_.source.launch.program = unsloth_           ? std::vector<std::string>{"unsloth"}
                                 : trainer_.empty() ? std::vector<std::string>{"train.py"}
                                                    : std::vector<std::string>{"trl", trainer_};
    job_.source.arguments = true;
    return std::move(job_);
  }

 private:
  // The last trainer, the arguments made in its call or before it, the first model, the last settings of adapters.
  void find_calls() {
    for (const PythonCall& call : program_.calls()) {
      note_trainer(call);
      note_adapters(call);
    }
    if (trainer_at_ == nullptr) return;
    // What the trainer is given goes before what else the program builds.
    follow(*trainer_at_, "args", is_arguments, arguments_);
    follow(*trainer_at_, "model", loads_model, model_);
    follow(
        *trainer_at_, "peft_config", [](const PythonCall& call) { return call.function() == "LoraConfig"; }, lora_);
    if (model_ != nullptr)
      follow(
          *model_, "quantization_config",
          [](const PythonCall& call) { return call.function() == "BitsAndBytesConfig"; }, bits_);
  }

  void follow(const PythonCall& from, std::string_view keyword, bool (*is)(const PythonCall&), const PythonCall*& to) {
    constexpr int kMostWrappers = 4;  // get_peft_model(prepare_model_for_kbit_training(model), ...)
    const PythonArgument* argument = from.find(keyword);
    if (argument == nullptr && keyword == "model") argument = from.find("");
    for (int wrappers = 0; argument != nullptr && wrappers < kMostWrappers; ++wrappers) {
      const PythonCall* call = program_.call_of(argument->value);
      if (call == nullptr) return;
      if (is(*call)) {
        to = call;
        return;
      }
      argument = call->find("");
    }
  }

  void name_trainer() {
    unsloth_ = model_ != nullptr && is_unsloth_class(model_->object());
    if (trainer_at_ != nullptr) trainer_ = trl_trainer(trainer_at_->function());
    if (trainer_.empty() && arguments_ != nullptr) trainer_ = trl_trainer(arguments_->function());
    trainer_call_ = trainer_at_ != nullptr ? trainer_at_->function() : arguments_->function();
  }

  void note_trainer(const PythonCall& call) {
    if (loads_model(call) && model_ == nullptr) model_ = &call;
    if (is_arguments(call)) arguments_ = &call;
    if (is_trainer(call)) trainer_at_ = &call;
    if (call.function() == "gradient_checkpointing_enable") checkpoints_ = !program_.is_doubtful(call.at);
    if (call.function() == "is_bf16_supported" || call.function() == "is_bfloat16_supported") asks_bf16_ = true;
    if (call.function() == "ConstantLengthDataset" && rows_ == nullptr) rows_ = &call;
    if (call.function().starts_with("tokeniz") && call.find("max_length") != nullptr) tokenizer_ = &call;
  }

  void note_adapters(const PythonCall& call) {
    if (call.function() == "LoraConfig") lora_ = &call;
    if (call.function() == "get_peft_model" && is_unsloth_class(call.object())) peft_ = &call;
    if (call.function() == "BitsAndBytesConfig" && bits_ == nullptr) bits_ = &call;
    if (call.function() == "prepare_model_for_kbit_training" || call.function() == "prepare_model_for_int8_training")
      prepares_ = true;
  }

  [[nodiscard]] std::vector<KeyTable> tables() const {
    if (unsloth_) return {unsloth_table(), training_arguments_table()};
    return {trainer_.empty() ? hf_trainer_table() : trl_table(), training_arguments_table()};
  }

  [[nodiscard]] bool matters(std::string_view key) const {
    for (const KeyTable& table : tables())
      for (const KeyRow& row : table.rows)
        if (row.key == key) return true;
    return false;
  }

  void set(const std::string& key, Value value) { job_.source.keys.set(key, std::move(value)); }
  [[nodiscard]] bool has(std::string_view key) const { return job_.source.keys.find(key) != nullptr; }
  void set_default(const std::string& key, Value value) {
    if (!has(key)) set(key, std::move(value));
  }

  // The value of an argument under the key that the importer has for it.
  void take(const PythonArgument& argument, const std::string& key) {
    if (std::optional<Value> value = program_.evaluate(argument.value)) return set(key, *std::move(value));
    computed(key, argument);
  }
  void take(const PythonCall& call, std::span<const Keyword> keywords) {
    for (const Keyword& one : keywords)
      if (const PythonArgument* argument = call.find(one.keyword)) take(*argument, std::string(one.key));
  }

  // What Unsloth takes from from_pretrained and get_peft_model, whatever the arguments say.
  [[nodiscard]] bool is_said_elsewhere(std::string_view key) const {
    return unsloth_ && (key == "max_length" || key == "gradient_checkpointing");
  }

  // An argument of which the text does not say the value.
  void computed(const std::string& key, const PythonArgument& argument) {
    const std::string spelled = program_.text_of(argument.value);
    const std::string shown = argument.keyword.empty() ? key : argument.keyword;
    const auto essential =
        std::find_if(kEssential.begin(), kEssential.end(), [&](const Essential& one) { return one.key == key; });
    if (essential != kEssential.end()) {
      if (context_.given.count(std::string(essential->plan_key)) != 0) return;
      return problems_.add({file_, shown, "the program computes it: " + spelled, std::string(essential->option)});
    }
    if (key == "bf16") {
      job_.source.assumptions.push_back("bf16 is " + spelled + ": taken as true");
      return set(key, Value::of(true));
    }
    if (!matters(key) || key == "fp16") return;
    job_.source.warnings.push_back(shown + " is computed by the program (" + spelled + "): its default counts");
  }

  void read_model() {
    const PythonCall* from = model_;
    const PythonArgument* name = nullptr;
    if (from != nullptr) {
      for (const char* keyword : {"model_name", "pretrained_model_name_or_path", ""})
        if (name == nullptr) name = from->find(keyword);
    } else if (trainer_at_ != nullptr) {
      name = trainer_at_->find("model") != nullptr ? trainer_at_->find("model") : trainer_at_->find("");
    }
    const std::optional<Value> value = name != nullptr ? program_.evaluate(name->value) : std::nullopt;
    if (value && value->is_string()) {
      set(unsloth_ ? "model_name" : "model_name_or_path", *value);
    } else if (!context_.model) {
      const std::string spelled = name != nullptr ? ": " + program_.text_of(name->value) : std::string();
      throw InputError(
          Problem{file_, "model", "no name of a model is written down in the program" + spelled, "--model NAME"});
    }
    if (from == nullptr) return;
    take_more_of(*from);
    take(*from, kLoading);
    if (!unsloth_) set_default("dtype", Value::of("from_pretrained"));
    read_flash(*from);
    if (from->object().ends_with("SequenceClassification") && trainer_.empty())
      set("task_type", Value::of("classification"));
  }

  // from_pretrained(..., **NAME): of a map those that matter.
  void take_more_of(const PythonCall& from) {
    const PythonArgument* more = from.find("**");
    if (more == nullptr) return;
    const std::optional<Value> map = program_.evaluate(more->value);
    if (!map || !map->is_map()) {
      job_.source.warnings.push_back("**" + program_.text_of(more->value) + " is computed by the program");
      return;
    }
    for (const Keyword& one : kLoading)
      if (const Value* value = map->find(one.keyword)) set(std::string(one.key), *value);
    const Value* flash = map->find("use_flash_attention_2");
    if (flash != nullptr && as_flag(*flash) == true) set("attn_implementation", Value::of("flash_attention_2"));
  }

  // use_flash_attention_2 of earlier releases.
  void read_flash(const PythonCall& from) {
    const PythonArgument* argument = from.find("use_flash_attention_2");
    if (argument == nullptr) return;
    const std::optional<Value> value = program_.evaluate(argument->value);
    const std::optional<bool> flash = value ? as_flag(*value) : std::nullopt;
    if (flash == true) set("attn_implementation", Value::of("flash_attention_2"));
    if (!flash) computed("use_flash_attention_2", *argument);
  }

  void take_all(const PythonCall& call) {
    for (const PythonArgument& argument : call.arguments) {
      if (argument.keyword == "**") {
        const std::optional<Value> map = program_.evaluate(argument.value);
        if (!map || !map->is_map()) {
          job_.source.warnings.push_back("**" + program_.text_of(argument.value) + " is computed by the program");
          continue;
        }
        for (const auto& [key, value] : map->entries())
          if (!is_said_elsewhere(key)) set(key, value);
      } else if (!argument.keyword.empty() && !is_said_elsewhere(argument.keyword)) {
        take(argument, argument.keyword);
      }
    }
  }

  void read_arguments() {
    if (arguments_ != nullptr) {
      take_all(*arguments_);
    } else {  // a parser makes them
      for (const auto& [key, value] : flags_)
        if (matters(key)) set_default(key, value);
    }
    read_rows();
    if (trainer_at_ != nullptr && !trainer_.empty()) {
      for (const Keyword& one : kTrainerArguments) {
        const PythonArgument* argument = trainer_at_->find(one.keyword);
        const auto value = argument != nullptr ? program_.evaluate(argument->value) : std::nullopt;
        if (value && value->is_null()) continue;  // its default
        if (argument != nullptr) take(*argument, std::string(one.key));
      }
    }
    if (checkpoints_ && !unsloth_) set_default("gradient_checkpointing", Value::of(true));
    if (trainer_.empty() && tokenizer_ != nullptr && !has("max_seq_length"))
      take(*tokenizer_->find("max_length"), "max_seq_length");
  }

  // Texts that are joined and cut into rows of one length.
  void read_rows() {
    if (rows_ == nullptr || unsloth_) return;
    const PythonArgument* length = rows_->find("seq_length");
    if (length != nullptr) take(*length, trainer_.empty() ? "max_seq_length" : "max_length");
    set("packing", Value::of(true));
    if (!trainer_.empty()) set("packing_strategy", Value::of("wrapped"));
  }

  // Which releases take the arguments as they are spelled; transformers' TrainingArguments keep their defaults in TRL's trainers.
  void read_release() {
    if (unsloth_) return;
    const bool plain = arguments_ != nullptr && arguments_->function().ends_with("TrainingArguments");
    if (plain && !trainer_.empty())
      for (const char* key : {"gradient_checkpointing", "bf16"}) set_default(key, Value::of(false));
    const auto given = [&](const PythonCall* call, std::string_view keyword) {
      return call != nullptr && call->find(keyword) != nullptr;
    };
    const bool own = std::any_of(std::begin(kTrainerArguments), std::end(kTrainerArguments),
                                 [&](const Keyword& one) { return given(trainer_at_, one.keyword); });
    if (!trainer_.empty() && own) {  // TRL 0.13 took them out
      job_.source.releases = {{"trl", "0.12"}, {"transformers", "4.46"}};
    } else if (!trainer_.empty() && given(trainer_at_, "tokenizer")) {  // and 0.16 this
      job_.source.releases = {{"trl", "0.15"}, {"transformers", "4.48"}};
    } else if (given(arguments_, "evaluation_strategy") || given(model_, "load_in_8bit") ||
               given(model_, "load_in_4bit") || given(model_, "use_flash_attention_2")) {
      job_.source.releases = {{"transformers", "4.45"}};
    }
  }

  // The adapters' base is its own reference, unless the program loads another.
  void warn_of_reference() {
    const PythonCall* trainer = trainer_ == "dpo" && (lora_ != nullptr || peft_ != nullptr) ? trainer_at_ : nullptr;
    if (trainer == nullptr) return;
    const bool placed = trainer->arguments.size() > 1 && trainer->arguments[1].keyword.empty();
    const PythonArgument* given = placed ? &trainer->arguments[1] : trainer->find("ref_model");
    if (given != nullptr && program_.call_of(given->value) != nullptr)
      job_.source.warnings.emplace_back("ref_model is another copy of the model, which is not billed beside adapters");
  }

  // Defaults of FastLanguageModel (unsloth/models/loader.py) and of TrainingArguments, where the command line of Unsloth has its own.
  void read_unsloth() {
    if (peft_ != nullptr) take(*peft_, kUnslothAdapters);
    set_default("max_seq_length", Value::of(2048));
    set_default("load_in_4bit", Value::of(true));
    set_default("per_device_train_batch_size", Value::of(8));
    set_default("gradient_accumulation_steps", Value::of(1));
    set_default("optim", Value::of("adamw_torch"));
  }

  // Defaults of peft's LoraConfig and of transformers' BitsAndBytesConfig.
  void read_peft() {
    if (lora_ != nullptr) {
      set("use_peft", Value::of(true));
      take(*lora_, kAdapters);
      set_default("lora_r", Value::of(8));
      set_default("lora_alpha", Value::of(8));
      set_default("lora_dropout", Value::of(0.0, "0.0"));
      for (const std::string_view other : kUnbilledOfAdapters)
        if (lora_->find(other) != nullptr)
          job_.source.warnings.push_back(std::string(other) + " of LoraConfig is not billed");
    }
    for (const PythonCall& call : program_.calls()) {
      const std::string name = call.function();
      const bool other =
          std::find(std::begin(kOtherAdapters), std::end(kOtherAdapters), name) != std::end(kOtherAdapters);
      if (other && context_.given.count("method") == 0)
        problems_.add({file_, name, "is not read from a program yet", "--method WORD"});
    }
    read_bits();
  }

  void read_bits() {
    if (bits_ != nullptr) {
      take(*bits_, kBits);
      set_default("bnb_4bit_quant_type", Value::of("fp4"));
      set_default("use_bnb_nested_quant", Value::of(false));
    }
    if (!prepares_) return;
    if (!trainer_.empty()) set("prepare_model_for_kbit_training", Value::of(true));
    set_default("gradient_checkpointing", Value::of(true));  // its use_gradient_checkpointing is True
  }

  PythonProgram program_;
  const std::map<std::string, Value>& flags_;
  const std::string& file_;
  const ImportContext& context_;
  Problems& problems_;
  const PythonCall *model_ = nullptr, *arguments_ = nullptr, *trainer_at_ = nullptr, *lora_ = nullptr, *peft_ = nullptr,
                   *bits_ = nullptr, *tokenizer_ = nullptr, *rows_ = nullptr;
  bool unsloth_ = false, prepares_ = false, checkpoints_ = false, asks_bf16_ = false;
  std::string trainer_, trainer_call_;
  PythonJob job_;
};

}  // namespace

std::optional<PythonJob> read_python(std::string_view text, const std::string& file, const std::string& folder,
                                     const Launch& launch, const std::map<std::string, Value>& flags,
                                     const ImportContext& context, Problems& problems) {
  std::optional<PythonJob> job = PythonReader(text, file, flags, context, problems).run();
  if (!job) return std::nullopt;
  const std::vector<std::string> marks = job->source.launch.program;
  job->source.launch = launch;
  job->source.launch.program = marks;
  job->source.file = file;
  job->source.folder = folder;
  job->source.assumptions.push_back("the program is read as far as it is written down, as " + job->format +
                                    " runs it; nothing is run");
  return job;
}

}  // namespace membill::io

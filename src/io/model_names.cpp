#include "io/model_names.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/text.h"
#include "membill/catalog.h"

namespace membill::io {
namespace {

// Endings of hub names that say how the weights are stored: by whom, and as which row of the catalogue (none: it is not billed); the
// longer ones first.
struct StoredEnding {
  std::string_view ending, method, format;
};
constexpr StoredEnding kStoredEndings[] = {
    {"-unsloth-bnb-4bit", "bitsandbytes", "nf4"},
    {"-dynamic-bnb-4bit", "bitsandbytes", "nf4"},
    {"-bnb-4bit", "bitsandbytes", "nf4"},
    {"-bnb-8bit", "bitsandbytes", "int8"},
    {"-bnb-nf4-bf16", "bitsandbytes", "nf4"},
    {"-bnb-nf4", "bitsandbytes", "nf4"},
    {"-nf4", "bitsandbytes", "nf4"},
    {"-gptq-int4", "gptq", "gptq-int4"},
    {"-gptq-4bit", "gptq", "gptq-int4"},
    {"-gptq-int8", "gptq", "gptq-int8"},
    {"-gptq", "gptq", "gptq-int4"},
    {"-quantized.w4a16", "compressed-tensors", "packed-int4"},
    {"-quantized.w8a8", "compressed-tensors", "int8-rows"},
    {"-awq-int4", "awq", "awq-int4"},
    {"-awq-4bit", "awq", "awq-int4"},
    {"-awq", "awq", "awq-int4"},
    {"-int4", "gptq", "gptq-int4"},
    {"-int8", "gptq", "gptq-int8"},
    {"-4bits", "bitsandbytes", "nf4"},
    {"-aqlm-2bit-1x16", "aqlm", ""},
    {"-gguf", "gguf", ""},
    {"-mxfp4", "mxfp4", "mxfp4"},
    {"-fp8-dynamic", "compressed-tensors", "fp8-rows"},
    {"-fp8-block", "compressed-tensors", "fp8"},
    {"-fp8", "fp8", "fp8"},
    {"-nvfp4", "modelopt", "nvfp4"},
    {"-exl2", "exl2", ""},
    {"-mlx-4bit", "mlx", ""},
    {"-mlx-8bit", "mlx", ""},
    {"-mlx", "mlx", ""},
    {"-4bit", "mlx", ""},
    {"-8bit", "mlx", ""},
};
// Endings of fine-tuned versions, whose shapes are those of the base.
constexpr std::string_view kTunedEndings[] = {
    "-instruct", "-chat-hf", "-chat",    "-it",     "-base",        "-hf",          "-pt",
    "-v0.1",     "-v0.2",    "-v0.3",    "-sft",    "-fp16",        "-thinking",    "-reasoning",
    "-think",    "-deduped", "-preview", "-bf16",   "-fp32",        "-dequantized", "-mcore",
    "-dpo",      "-orpo",    "-grpo",    "-merged", "-abliterated", "-heretic",     "-linearized"};
// What a base's name may end with where a copy's does not.
constexpr std::string_view kBaseEndings[] = {"-v0.1", "-hf", "-instruct", "-pt", "-base"};
// Words inside of a name that change the training, not the shapes.
constexpr std::string_view kTunedWords[] = {"-coder", "-chat", "-math", "-instruct", "-llm"};

bool is_same(std::string_view a, std::string_view b) { return a.size() == b.size() && to_lower(a) == to_lower(b); }

std::string_view without_owner(std::string_view hub_id) { return hub_id.substr(hub_id.rfind('/') + 1); }

// ModelScope's folders write "___" for a dot: "Qwen2___5-7B-Instruct".
std::string with_dots(std::string name) {
  for (std::size_t at = name.find("___"); at != std::string::npos; at = name.find("___", at)) name.replace(at, 3, ".");
  return name;
}

// "LLaMA-7B-hf" of ".../LLaMA/7B-hf", whose folder says the family; empty where the name says it itself.
std::string named_by_folder(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 >= path.size() || !is_digit(path[slash + 1]))
    return {};
  const std::string_view folder = without_owner(path.substr(0, slash));
  return folder.empty() ? std::string() : std::string(folder) + "-" + std::string(path.substr(slash + 1));
}

// The model's own name at the end of a hub id or a path: of ".../models--owner--name/snapshots/1a2b" in Hugging Face's cache, too.
std::string_view own_name(std::string_view name) {
  constexpr std::string_view kCached = "models--";
  while (name.ends_with('/')) name.remove_suffix(1);
  const std::size_t cached = name.find(kCached);
  if (cached == std::string_view::npos) return without_owner(name);
  name.remove_prefix(cached + kCached.size());
  name = name.substr(0, name.find('/'));
  const std::size_t owner = name.find("--");
  return owner == std::string_view::npos ? name : name.substr(owner + 2);
}

bool is_tail(std::string_view whole, std::string_view tail) {
  return whole.size() >= tail.size() && is_same(whole.substr(whole.size() - tail.size()), tail);
}

bool is_named(std::string_view hub_id, std::string_view text) {
  return is_same(hub_id, text) || is_same(without_owner(hub_id), text);
}

// How much of `text` the open alias "owner/name*" stands for; 0: it does not.
std::size_t open_match(std::string_view alias, std::string_view text) {
  if (!alias.ends_with('*')) return 0;
  const std::string stem = to_lower(without_owner(alias.substr(0, alias.size() - 1)));
  return to_lower(without_owner(text)).starts_with(stem) ? stem.size() : 0;
}

std::optional<NamedPreset> openly_named(std::string_view text, const std::vector<ModelPreset>& presets) {
  std::optional<NamedPreset> best;
  std::size_t most = 0;
  for (const ModelPreset& preset : presets) {
    for (const std::string& alias : preset.aliases) {
      const std::size_t matched = open_match(alias, text);
      if (matched <= most) continue;
      most = matched;
      best = NamedPreset{preset, alias};
    }
  }
  return best;
}

std::optional<NamedPreset> exactly_named(std::string_view text, const std::vector<ModelPreset>& presets) {
  for (const ModelPreset& preset : presets) {
    if (is_same(preset.short_name, text) || is_named(preset.hub_id, text)) return NamedPreset{preset, ""};
  }
  for (const ModelPreset& preset : presets) {
    for (const std::string& alias : preset.aliases) {
      if (is_named(alias, text)) return NamedPreset{preset, alias};
    }
  }
  return std::nullopt;
}

const StoredEnding* stored_ending(std::string_view name) {
  const auto ends = [&](const StoredEnding& stored) { return is_tail(name, stored.ending); };
  const auto* found = std::find_if(std::begin(kStoredEndings), std::end(kStoredEndings), ends);
  return found == std::end(kStoredEndings) ? nullptr : found;
}

bool cut_ending(std::string& name, std::string_view ending) {
  if (name.size() <= ending.size() || !is_tail(name, ending)) return false;
  name.resize(name.size() - ending.size());
  return true;
}

// "-2507": when a version was published.
bool cut_date(std::string& name) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos || dash == 0 || name.size() - dash != 5) return false;
  if (!std::all_of(name.begin() + static_cast<std::ptrdiff_t>(dash) + 1, name.end(), is_digit)) return false;
  name.resize(dash);
  return true;
}

bool cut_version(std::string& name) {
  const auto cuts = [&](std::string_view ending) { return cut_ending(name, ending); };
  return std::any_of(std::begin(kTunedEndings), std::end(kTunedEndings), cuts) || cut_date(name);
}

// "llama2_7b" and "llama2-7b" as "llama-2-7b".
std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  const std::size_t digit = name.find_first_of("0123456789");
  if (digit != std::string::npos && digit > 0 && name[digit - 1] != '-') name.insert(digit, "-");
  return name;
}

void add_spellings(const std::string& name, std::vector<std::string>& names) {
  const std::string lower = to_lower(name);
  if (lower.starts_with("meta-llama")) names.push_back(name.substr(5));
  if (lower.starts_with("llama")) names.push_back("Meta-" + name);
  for (const std::string_view ending : kBaseEndings) names.push_back(name + std::string(ending));
  for (const std::string_view word : kTunedWords) {
    const std::size_t at = lower.find(word);
    if (at != std::string::npos) names.push_back(name.substr(0, at) + name.substr(at + word.size()));
  }
}

// Bases that fine-tuned versions state in their names ("dolphin-2.9-llama3-8b").
constexpr std::string_view kStatedBases[] = {"llama-2-7b",
                                             "llama-2-13b",
                                             "llama-2-70b",
                                             "llama-3-8b",
                                             "llama-3-70b",
                                             "llama-3.1-8b",
                                             "llama-3.1-70b",
                                             "llama-3.1-405b",
                                             "llama-3.2-1b",
                                             "llama-3.2-3b",
                                             "llama-7b",
                                             "llama-13b",
                                             "mistral-7b-v0.1",
                                             "mixtral-8x7b-v0.1",
                                             "codellama-7b",
                                             "codellama-13b",
                                             "codellama-34b",
                                             "qwen2-0.5b",
                                             "qwen2-1.5b",
                                             "qwen2-7b",
                                             "qwen2-72b",
                                             "qwen2.5-0.5b",
                                             "qwen2.5-1.5b",
                                             "qwen2.5-3b",
                                             "qwen2.5-7b",
                                             "qwen2.5-14b",
                                             "qwen2.5-32b",
                                             "qwen2.5-72b",
                                             "qwen3-0.6b",
                                             "qwen3-1.7b",
                                             "qwen3-4b",
                                             "qwen3-8b",
                                             "qwen3-14b",
                                             "qwen3-32b",
                                             "gemma-2b",
                                             "gemma-7b",
                                             "gemma-2-2b",
                                             "gemma-2-9b",
                                             "gemma-2-27b",
                                             "gemma-3-1b-pt",
                                             "gemma-3-4b-pt",
                                             "gemma-3-12b-pt",
                                             "gemma-3-27b-pt",
                                             "yi-6b",
                                             "yi-9b",
                                             "yi-34b",
                                             "falcon-7b",
                                             "falcon-40b",
                                             "solar-10.7b-v1.0",
                                             "tinyllama-1.1b-chat-v1.0"};
// Words of names whose models have other shapes than the base that stands in them.
constexpr std::string_view kReshaped[] = {
    "moe",      "pruned",   "sheared", "minitron",  "draft",    "eagle",    "eagle3",    "vision",       "vl",
    "llava",    "mamba",    "slim",    "omni",      "tts",      "speech",   "audio",     "chinese",      "japanese",
    "korean",   "ko",       "ja",      "zh",        "swallow",  "extended", "merge",     "frankenmerge", "pro",
    "upscaled", "expanded", "math",    "embedding", "reranker", "medusa",   "tokenizer", "vocab",        "half",
    "nas",      "depth",    "width",   "distill",   "video"};

bool is_size(std::string_view token) {
  const bool counts = token.size() > 1 && (token.back() == 'b' || token.back() == 'm') && is_digit(token.front());
  return counts && token.find_first_not_of("0123456789.x", 0) == token.size() - 1;
}

// "llama3.1_8B" as llama, 3.1, 8b.
std::vector<std::string> tokens_of(std::string_view name) {
  std::string spaced;
  for (const char c : to_lower(name)) {
    const bool begins = is_digit(c) && !spaced.empty() && spaced.back() >= 'a' && spaced.back() <= 'z' &&
                        (spaced.size() < 2 || !is_digit(spaced[spaced.size() - 2]));
    if (begins) spaced += '-';
    spaced += c == '_' ? '-' : c;
  }
  std::vector<std::string> tokens = split(spaced, '-');
  std::erase_if(tokens, [](const std::string& token) { return token.empty(); });
  return tokens;
}

bool holds_run(const std::vector<std::string>& tokens, const std::vector<std::string>& run) {
  return !run.empty() && std::search(tokens.begin(), tokens.end(), run.begin(), run.end()) != tokens.end();
}

// Names of the same shapes, from the nearest on.
std::vector<std::string> related_names(std::string name) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> names;
  names.push_back(name);
  if (const StoredEnding* stored = stored_ending(name); stored != nullptr) {
    (void)cut_ending(name, stored->ending);
    names.push_back(name);
  }
  while (names.size() < kMost && cut_version(name)) names.push_back(name);
  for (std::size_t i = 0, n = names.size(); i < n; ++i)
    if (std::string dashed = with_dashes(names[i]); dashed != names[i]) names.push_back(std::move(dashed));
  for (std::size_t i = 0, n = names.size(); i < n; ++i) add_spellings(std::string(names[i]), names);
  return names;
}

}  // namespace

std::optional<NamedPreset> preset_named(std::string_view text, const std::vector<ModelPreset>& presets) {
  if (std::optional<NamedPreset> exact = exactly_named(text, presets)) return exact;
  return openly_named(text, presets);
}

std::vector<NamedPreset> presets_named(std::string_view text, const std::vector<ModelPreset>& presets) {
  if (std::optional<NamedPreset> named = preset_named(text, presets)) return {*std::move(named)};
  std::vector<NamedPreset> tails;
  for (const ModelPreset& preset : presets) {
    if (is_tail(preset.short_name, text) || is_tail(preset.hub_id, text)) tails.push_back({preset, ""});
  }
  // One word without a size or a version ("tiny") names no model, though only one may end so.
  const bool is_name = text.find('-') != std::string_view::npos || std::any_of(text.begin(), text.end(), is_digit);
  if (tails.size() == 1 && !is_name) tails.clear();
  return tails;
}

std::vector<NamedPreset> presets_beginning(std::string_view text, const std::vector<ModelPreset>& presets) {
  std::vector<NamedPreset> result;
  const std::string spelled = to_lower(with_dashes(std::string(own_name(text))));
  if (spelled.size() < 3) return result;
  for (const ModelPreset& preset : presets)
    if (preset.short_name.starts_with(spelled)) result.push_back({preset, ""});
  std::stable_sort(result.begin(), result.end(), [](const NamedPreset& a, const NamedPreset& b) {
    return a.preset.short_name.size() < b.preset.short_name.size();
  });
  return result;
}

std::optional<NamedPreset> related_preset(std::string_view name, const std::vector<ModelPreset>& presets) {
  const std::string by_folder = named_by_folder(name);
  if (!by_folder.empty()) name = by_folder;
  name = own_name(name);
  if (name.empty()) return std::nullopt;
  const std::vector<std::string> names = related_names(with_dots(std::string(name)));
  for (const auto find : {exactly_named, openly_named}) {
    for (const std::string& related : names) {
      if (std::optional<NamedPreset> named = find(related, presets)) return named;
    }
  }
  return std::nullopt;
}

std::optional<NamedPreset> stated_base(std::string_view name, const std::vector<ModelPreset>& presets) {
  std::string own = with_dots(std::string(own_name(name)));
  if (const StoredEnding* stored = stored_ending(own); stored != nullptr) (void)cut_ending(own, stored->ending);
  const std::vector<std::string> tokens = tokens_of(own);
  const auto reshapes = [](const std::string& token) {
    return std::find(std::begin(kReshaped), std::end(kReshaped), token) != std::end(kReshaped);
  };
  if (std::count_if(tokens.begin(), tokens.end(), is_size) != 1) return std::nullopt;
  if (std::any_of(tokens.begin(), tokens.end(), reshapes)) return std::nullopt;
  for (const std::string_view base : kStatedBases) {
    std::string plain(base);
    while (cut_version(plain) || cut_ending(plain, "-v1.0")) continue;
    if (holds_run(tokens, tokens_of(plain))) return exactly_named(base, presets);
  }
  return std::nullopt;
}

StoredWeights storage_named(std::string_view name) {
  StoredWeights stored;
  const StoredEnding* ending = stored_ending(own_name(name));
  if (ending == nullptr) return stored;
  stored.method = ending->method;
  stored.double_quant = true;
  if (const WeightFormatRow* row = find_weight_format(ending->format)) stored.format = row->format;
  return stored;
}

}  // namespace membill::io

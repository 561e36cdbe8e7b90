#include "io/hardware_source.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "io/field_reader.h"
#include "io/json_reader.h"
#include "io/runtime_file.h"
#include "membill/problem.h"

namespace membill::io {
namespace {

constexpr std::int64_t kMostMib = std::int64_t{1} << 40;
constexpr Bytes kLargeCard = 48_GiB;
constexpr Bytes kSmallCardGap = 512_MiB;
constexpr Bytes kLargeCardGap{7 * (1LL << 30) / 10};

// Words that say who made a card, not which it is.
constexpr std::array<std::string_view, 10> kMakers{"nvidia", "geforce", "tesla",  "amd",    "instinct",
                                                   "radeon", "intel",   "huawei", "ascend", "gpu"};

// Words that make another card of the one they follow.
constexpr std::array<std::string_view, 6> kVariants{"ti", "super", "laptop", "ada", "pro", "d"};

// Lower-case runs of letters and digits, without makers' names; after another word "80g" is "80gb".
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  const auto flush = [&] {
    if (!words.empty() && word.size() > 1 && word.find_first_not_of("0123456789") == word.size() - 1 &&
        word.back() == 'g')
      word += 'b';
    if (!word.empty() && std::find(kMakers.begin(), kMakers.end(), word) == kMakers.end()) words.push_back(word);
    word.clear();
  };
  for (const char c : to_lower(name)) {
    if ((c >= 'a' && c <= 'z') || is_digit(c)) {
      word += c;
    } else {
      flush();
    }
  }
  flush();
  return words;
}

std::string glued(std::string_view name) { return join(words_of(name), ""); }

std::pair<int, int> read_capability(FieldReader& reader, const std::optional<std::string>& written) {
  if (!written) return {0, 0};
  const std::size_t point = written->find('.');
  std::int64_t major = 0;
  std::int64_t minor = 0;
  std::string why;
  const bool good = point != std::string::npos &&
                    parse_count(std::string_view(*written).substr(0, point), major, why) &&
                    parse_count(std::string_view(*written).substr(point + 1), minor, why) && major < 100 && minor < 100;
  if (!good) reader.problem("compute_capability", "needs text such as \"8.0\"");
  return {static_cast<int>(major), static_cast<int>(minor)};
}

std::vector<std::string> read_sources(FieldReader& reader, const std::string& file, Problems& problems) {
  const Value* source = reader.value("source");
  if (source == nullptr) return {};
  FieldReader parts(*source, file, "source", problems);
  std::vector<std::string> all;
  for (const std::string_view part : {"reported_mib", "usable_gib", "speed", "runtime"}) {
    for (const std::string& text : parts.texts(part)) all.push_back(std::string(part) + ": " + text);
  }
  parts.finish();
  return all;
}

std::optional<Bytes> read_mib(FieldReader& reader, std::string_view key, std::int64_t least) {
  const std::optional<std::int64_t> mib = reader.count(key, least);
  if (!mib) return std::nullopt;
  if (*mib > kMostMib) reader.problem(key, "is too large");
  return std::min(*mib, kMostMib) * 1_MiB;
}

std::optional<std::int64_t> rounded(const std::optional<double>& value) {
  if (!value || !(*value >= 0) || *value > 1e12) return std::nullopt;
  return static_cast<std::int64_t>(std::llround(*value));
}

void read_usable(FieldReader& reader, FoundGpu& found) {
  GpuSpec& gpu = found.gpu;
  gpu.usable = reader.gib("usable_gib");
  const std::optional<Bytes> estimate = reader.gib("usable_estimate_gib");
  const std::optional<std::string> why = reader.text("usable_estimate_why");
  if (estimate.has_value() != why.has_value()) {
    reader.problem(estimate ? "usable_estimate_why" : "usable_estimate_gib", "is missing");
  }
  if (gpu.usable) return;
  if (estimate && why) {
    gpu.usable = estimate;
    found.assumptions.push_back("usable memory of the " + gpu.name + ": " + *why);
  } else if (gpu.reported) {
    gpu.usable = usable_of_reported(*gpu.reported);
    const char* gap = *gpu.reported < kLargeCard ? "0.5" : "0.7";
    found.assumptions.push_back("usable memory of the " + gpu.name + ": the driver's total less " + gap + " GiB");
  } else {
    reader.problem("usable_gib", "is missing", "or give reported_mib, or usable_estimate_gib and usable_estimate_why");
  }
}

// A preset with every name it answers to.
struct Named {
  FoundGpu found;
  std::vector<std::string> aliases;
};

Named parse_named(const TextFile& file, const std::string& short_name) {
  const Value tree = parse_json(file.text, file.name);
  Problems problems;
  FieldReader reader(tree, file.name, "", problems);
  Named result;
  GpuSpec& gpu = result.found.gpu;
  reader.require("name");
  gpu.name = reader.text("name").value_or("");
  gpu.short_name = short_name;
  gpu.vendor = reader.text("vendor").value_or("");
  result.aliases = reader.texts("aliases");
  gpu.marketed_gb = reader.count("memory_gb", 1).value_or(0);
  gpu.reported = read_mib(reader, "reported_mib", 1);
  gpu.context = read_mib(reader, kContextKey, 0);
  gpu.communicator = read_mib(reader, kCommunicatorKey, 0);
  read_usable(reader, result.found);
  const std::optional<std::string> capability = reader.text("compute_capability");
  const auto [major, minor] = read_capability(reader, capability);
  if (capability) gpu.capability_major = major;
  gpu.capability_minor = minor;
  gpu.bf16 = reader.flag("bf16");
  gpu.fp8 = reader.flag("fp8");
  gpu.bandwidth_gb_s = rounded(reader.real("bandwidth_gb_s"));
  gpu.bf16_tflops = rounded(reader.real("bf16_tflops"));
  gpu.sources = read_sources(reader, file.name, problems);
  gpu.notes = reader.texts("notes");
  reader.finish();
  problems.throw_if_any();
  return result;
}

std::vector<Named> all_named(const PresetFiles& files) {
  std::vector<Named> result;
  for (const std::string& name : files.names()) {
    if (const std::optional<TextFile> file = files.find(name)) result.push_back(parse_named(*file, name));
  }
  return result;
}

bool answers_exactly(const Named& preset, const std::string& wanted) {
  const auto is_it = [&](const std::string& name) { return glued(name) == wanted; };
  return is_it(preset.found.gpu.short_name) || is_it(preset.found.gpu.name) ||
         std::any_of(preset.aliases.begin(), preset.aliases.end(), is_it);
}

bool holds(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> all_words(const Named& preset) {
  std::vector<std::string> words = words_of(preset.found.gpu.short_name);
  const std::vector<std::string> more = words_of(preset.found.gpu.name);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

bool has_all_words(const Named& preset, const std::vector<std::string>& wanted) {
  const std::vector<std::string> words = all_words(preset);
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& word) { return holds(words, word); });
}

bool is_unsaid_variant(const Named& preset, const std::vector<std::string>& wanted) {
  const std::vector<std::string> words = all_words(preset);
  return std::any_of(kVariants.begin(), kVariants.end(),
                     [&](std::string_view word) { return holds(words, word) && !holds(wanted, word); });
}

FoundGpu anonymous(std::string_view text, Bytes size) {
  FoundGpu found;
  found.gpu.name = std::string(trim(text));
  found.gpu.usable = size;
  found.assumptions.push_back("a card given as a size: all " + found.gpu.name + " of it are usable");
  return found;
}

std::string list_of(const std::vector<const Named*>& presets) {
  std::vector<std::string> names;
  names.reserve(presets.size());
  for (const Named* preset : presets) names.push_back(preset->found.gpu.short_name);
  return first_names(names, 6);
}

std::string nearest_preset(std::string_view text, const std::vector<Named>& presets) {
  std::vector<std::string_view> names;
  for (const Named& preset : presets) {
    names.push_back(preset.found.gpu.short_name);
    names.push_back(preset.found.gpu.name);
    names.insert(names.end(), preset.aliases.begin(), preset.aliases.end());
  }
  const std::string_view nearest = nearest_word(text, names);
  for (const Named& preset : presets) {
    const bool is_its = preset.found.gpu.name == nearest ||
                        std::find(preset.aliases.begin(), preset.aliases.end(), nearest) != preset.aliases.end();
    if (is_its && !nearest.empty()) return preset.found.gpu.short_name;
  }
  return std::string(nearest);
}

// "2x3090", "8 * h100": the number before a card's name, and the name; no number where there is none.
std::pair<std::string_view, std::string_view> split_count(std::string_view text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return {};
  const std::string_view rest = trim(text.substr(digits));
  if (rest.empty() || std::string_view("xX*").find(rest.front()) == std::string_view::npos) return {};
  return {text.substr(0, digits), trim(rest.substr(1))};
}

// "24G": a size whose unit leaves open which kind it is.
bool lacks_unit_kind(std::string_view text) {
  return text.size() > 1 && text.find_first_not_of("0123456789.") == text.size() - 1 &&
         std::string_view("MGTmgt").find(text.back()) != std::string_view::npos;
}

std::string hint_for_unknown(std::string_view text, const std::vector<Named>& presets) {
  if (lacks_unit_kind(trim(text))) {
    std::string size(trim(text));
    size.back() = static_cast<char>(std::toupper(static_cast<unsigned char>(size.back())));
    return size + "iB or " + size + "B";
  }
  const auto [count, name] = split_count(trim(text));
  std::string nearest = nearest_preset(count.empty() ? text : name, presets);
  if (count.empty() || nearest.empty()) return nearest;
  return nearest + ", and how many in --gpus " + std::string(count);
}

}  // namespace

Bytes usable_of_reported(Bytes reported) {
  return std::max(Bytes(0), reported - (reported < kLargeCard ? kSmallCardGap : kLargeCardGap));
}

FoundGpu parse_gpu(const TextFile& file, const std::string& short_name) { return parse_named(file, short_name).found; }

std::vector<FoundGpu> all_gpus(const DataDirs& dirs) {
  std::vector<FoundGpu> result;
  for (Named& preset : all_named(PresetFiles("hardware", dirs))) result.push_back(std::move(preset.found));
  return result;
}

std::optional<FoundGpu> find_gpu_exactly(std::string_view name, const DataDirs& dirs) {
  const PresetFiles files("hardware", dirs);
  const std::vector<std::string> words = words_of(name);
  if (words.empty()) return std::nullopt;
  const std::string stem = join(words, "-");
  if (const std::optional<TextFile> file = files.find(stem)) return parse_gpu(*file, stem);
  const std::string wanted = join(words, "");
  for (Named& preset : all_named(files)) {
    if (answers_exactly(preset, wanted)) return std::move(preset.found);
  }
  return std::nullopt;
}

FoundGpu find_gpu(std::string_view text, const DataDirs& dirs, const std::string& key, const std::string& file) {
  const auto fail = [&](const std::string& message, const std::string& hint) -> FoundGpu {
    throw InputError(Problem{file, key, message, hint});
  };
  Bytes size;
  std::string why;
  if (parse_bytes(trim(text), size, why)) {
    return size.count() > 0 ? anonymous(text, size) : fail("needs a size above 0", "");
  }
  if (std::optional<FoundGpu> found = find_gpu_exactly(text, dirs)) return std::move(*found);
  const std::vector<Named> presets = all_named(PresetFiles("hardware", dirs));
  const std::vector<std::string> words = words_of(text);
  std::vector<const Named*> candidates;
  for (const Named& preset : presets) {
    if (!words.empty() && has_all_words(preset, words)) candidates.push_back(&preset);
  }
  const bool single = candidates.size() == 1;
  if (single && !is_unsaid_variant(*candidates.front(), words)) return candidates.front()->found;
  if (single) return fail(quoted(text) + " is no known card and no size", list_of(candidates));
  if (!candidates.empty()) return fail(quoted(text) + " may be more than one card", list_of(candidates));
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
  if (is_number) return fail(quoted(text) + " " + why, "or the name of a card");
  return fail(quoted(text) + " is no known card and no size", hint_for_unknown(text, presets));
}

}  // namespace membill::io

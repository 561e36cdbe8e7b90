#include "io/gpu_query.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "io/hardware_source.h"
#include "io/run_program.h"
#include "membill/problem.h"

namespace membill::io {
namespace {

constexpr std::string_view kNvidia = "nvidia-smi";
constexpr std::string_view kAscend = "npu-smi";
constexpr std::size_t kMostCards = 1024;
constexpr std::int64_t kMostMib = std::int64_t{1} << 40;
constexpr int kPatienceSeconds = 10;

[[noreturn]] void fail(std::string_view tool, std::string message, std::string hint = {}) {
  throw InputError(Problem{std::string(tool), "", std::move(message), std::move(hint)});
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!trim(line).empty()) lines.push_back(trim(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// A size in MiB, with or without its unit. `what` is "total" or "used".
Bytes to_size(std::string_view field, std::string_view what, std::string_view name, std::string_view tool) {
  std::string_view digits = field;
  if (digits.ends_with("MiB")) digits = trim(digits.substr(0, digits.size() - 3));
  std::int64_t mib = 0;
  std::string why;
  const std::string size = std::string(what) + " memory of " + quoted(name);
  if (field.empty() || field.front() == '[' || field == "N/A") {
    fail(tool, "does not tell the " + size, "name the card or its size: --gpu 24GiB");
  }
  if (!parse_count(digits, mib, why)) fail(tool, "the " + size + ", " + quoted(field) + ", " + why);
  if (mib > kMostMib) fail(tool, "the " + size + " is too large");
  return mib * 1_MiB;
}

void check_card(const DetectedGpu& card, std::string_view tool) {
  if (card.total.count() == 0)
    fail(tool, quoted(card.name) + " has no memory", "name the card or its size: --gpu 24GiB");
  if (card.used > card.total) fail(tool, quoted(card.name) + " uses more memory than it has");
}

DetectedGpu parse_line(std::string_view line) {
  const std::size_t second = line.rfind(',');
  const std::size_t first =
      second == std::string_view::npos || second == 0 ? std::string_view::npos : line.rfind(',', second - 1);
  const std::string_view name = first == std::string_view::npos ? std::string_view() : trim(line.substr(0, first));
  if (name.empty()) fail(kNvidia, "printed " + quoted(line), "expected name, total and used memory");
  DetectedGpu card{std::string(name), {}, {}, false};
  card.total = to_size(trim(line.substr(first + 1, second - first - 1)), "total", name, kNvidia);
  card.used = to_size(trim(line.substr(second + 1)), "used", name, kNvidia);
  check_card(card, kNvidia);
  return card;
}

// The fields between the bars of a table's row, trimmed.
std::vector<std::string> row_of(std::string_view line) {
  if (line.size() < 2 || line.front() != '|' || line.back() != '|') return {};
  return split(line.substr(1, line.size() - 2), '|');
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::string& word : split(text, ' ')) {
    if (!word.empty()) words.push_back(std::move(word));
  }
  return words;
}

// The name in a card's first line, "| 0     910B3               | OK            | 93.6 ... |"; empty: another line.
std::string npu_name(const std::vector<std::string>& row) {
  if (row.size() != 3) return {};
  const std::vector<std::string> words = words_of(row[0]);
  const bool is_card = words.size() == 2 && std::all_of(words[0].begin(), words[0].end(), is_digit);
  return is_card ? words[1] : std::string();
}

// The memory at the end of a card's second line: "0    / 0          3161 / 65536".
DetectedGpu npu_card(const std::string& name, const std::vector<std::string>& row) {
  if (row.size() != 3) fail(kAscend, "printed a table of another form");
  std::string usage = row[2];
  std::replace(usage.begin(), usage.end(), '/', ' ');
  const std::vector<std::string> words = words_of(usage);
  if (words.size() < 3) fail(kAscend, "printed a table of another form");
  DetectedGpu card{name, {}, {}, true};
  card.total = to_size(words[words.size() - 1], "total", name, kAscend);
  card.used = to_size(words[words.size() - 2], "used", name, kAscend);
  check_card(card, kAscend);
  return card;
}

Bytes free_of(const DetectedGpu& card) { return card.total - card.used; }

GpuSpec spec_of(const DetectedGpu& card, const DataDirs& dirs, std::vector<std::string>& assumptions) {
  std::optional<FoundGpu> found = find_gpu_exactly(card.name, dirs);
  if (found && found->gpu.reported) {
    const std::int64_t apart = std::abs(found->gpu.reported->count() - card.total.count());
    if (apart <= found->gpu.reported->count() / 50) {
      assumptions.insert(assumptions.end(), found->assumptions.begin(), found->assumptions.end());
      return found->gpu;
    }
  }
  GpuSpec gpu = found ? found->gpu : GpuSpec{};
  gpu.name = card.name;
  gpu.short_name.clear();
  gpu.reported = card.total;
  gpu.usable = usable_of_reported(card.total);
  const std::string gap = (card.total - *gpu.usable) == 512_MiB ? "0.5" : "0.7";
  assumptions.push_back("usable memory of " + card.name + ": the driver's total less " + gap + " GiB");
  return gpu;
}

// The part of what is used that the usable total already leaves out.
Bytes kept_by_driver(const DetectedGpu& card, const GpuSpec& gpu) {
  const Bytes gap = card.total - gpu.usable.value_or(card.total);
  return std::clamp(gap, Bytes(0), card.used);
}

std::string first_line(std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text);
  return lines.empty() ? std::string("nothing") : quoted(lines.front());
}

// What the tool prints; nothing when it is not installed.
std::optional<std::string> output_of(const std::vector<std::string>& command) {
  const ProgramResult result = run_program(command, kPatienceSeconds);
  const std::string& tool = command.front();
  switch (result.end) {
    case ProgramEnd::not_found: return std::nullopt;
    case ProgramEnd::timed_out: fail(tool, "did not answer within 10 seconds", "name the card: --gpu rtx-4090");
    case ProgramEnd::too_much: fail(tool, "printed more than 1 MiB");
    case ProgramEnd::failed:
      fail(tool, "failed and printed " + first_line(result.output), "name the card: --gpu rtx-4090");
    case ProgramEnd::done: break;
  }
  return result.output;
}

}  // namespace

std::vector<DetectedGpu> parse_nvidia_smi(std::string_view output) {
  std::vector<DetectedGpu> cards;
  for (const std::string_view line : lines_of(output)) {
    if (line == "No devices were found") break;
    if (cards.size() == kMostCards) fail(kNvidia, "lists more than 1024 cards");
    cards.push_back(parse_line(line));
  }
  if (cards.empty()) fail(kNvidia, "found no card");
  return cards;
}

std::vector<DetectedGpu> parse_npu_smi(std::string_view output) {
  std::vector<DetectedGpu> cards;
  const std::vector<std::string_view> lines = lines_of(output);
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    const std::string name = npu_name(row_of(lines[i]));
    if (name.empty()) continue;
    if (cards.size() == kMostCards) fail(kAscend, "lists more than 1024 cards");
    cards.push_back(npu_card(name, row_of(lines[++i])));
  }
  if (cards.empty()) fail(kAscend, "found no card");
  return cards;
}

DetectedHardware choose_cards(std::vector<DetectedGpu> cards, std::optional<std::int64_t> count, const DataDirs& dirs,
                              const std::string& key) {
  const auto found = static_cast<std::int64_t>(cards.size());
  if (count && *count > found) {
    throw InputError(
        Problem{"", key, "needs " + std::to_string(*count) + " cards, this machine has " + std::to_string(found), ""});
  }
  DetectedHardware result;
  result.cards = cards;
  std::stable_sort(cards.begin(), cards.end(),
                   [](const DetectedGpu& a, const DetectedGpu& b) { return free_of(a) > free_of(b); });
  cards.resize(static_cast<std::size_t>(count.value_or(found)));
  const DetectedGpu& deciding = cards.back();
  Hardware& hardware = result.hardware;
  hardware.count = static_cast<std::int64_t>(cards.size());
  hardware.gpu = spec_of(deciding, dirs, hardware.assumptions);
  hardware.others_use = deciding.used - (deciding.driver_in_used ? kept_by_driver(deciding, *hardware.gpu) : Bytes(0));
  const bool alike =
      std::all_of(cards.begin(), cards.end(), [&](const DetectedGpu& card) { return card.name == deciding.name; });
  if (!alike)
    hardware.assumptions.push_back("the cards differ; " + deciding.name + " has the least free memory and decides");
  return result;
}

DetectedHardware detect_hardware(std::optional<std::int64_t> count, const DataDirs& dirs) {
  const std::vector<std::string> nvidia{std::string(kNvidia), "--query-gpu=name,memory.total,memory.used",
                                        "--format=csv,noheader,nounits"};
  if (const std::optional<std::string> output = output_of(nvidia))
    return choose_cards(parse_nvidia_smi(*output), count, dirs);
  if (const std::optional<std::string> output = output_of({std::string(kAscend), "info"}))
    return choose_cards(parse_npu_smi(*output), count, dirs);
  throw InputError(Problem{"", "--gpu", "'auto' needs nvidia-smi or npu-smi, and neither is installed",
                           "name the card: --gpu rtx-4090"});
}

}  // namespace membill::io

#include "trace/allocator_settings.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "membill/units.h"

namespace membill {

namespace {

bool is_power_of_two(std::int64_t value) { return value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value)); }

int floor_log2(std::int64_t value) { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value))) - 1; }

std::size_t interval_of(int log2_of_mib) {
  return static_cast<std::size_t>(
      std::clamp(log2_of_mib, 0, static_cast<int>(AllocatorSettings::kRoundupIntervals) - 1));
}

// The next of `divisions` equal steps between the powers of two around `size`.
std::int64_t next_division(std::int64_t size, std::int64_t divisions) {
  if (is_power_of_two(size)) return size;
  const std::int64_t floor = std::int64_t{1} << floor_log2(size);
  const std::int64_t step = floor >> floor_log2(divisions);
  return step == 0 ? floor * 2 : round_up(size, step);
}

struct Option {
  std::string_view key;
  std::string_view value;
};

// One option of the text at a time: "key:value", where a value in brackets may hold commas.
class Options {
 public:
  explicit Options(std::string_view text) : rest_(text) {}

  bool next(Option& option) {
    if (rest_.empty()) return false;
    std::size_t end = 0;
    bool inside = false;
    for (; end < rest_.size() && (inside || rest_[end] != ','); ++end) {
      if (rest_[end] == '[') inside = true;
      if (rest_[end] == ']') inside = false;
    }
    const std::string_view part = rest_.substr(0, end);
    rest_ = end < rest_.size() ? rest_.substr(end + 1) : std::string_view{};
    const std::size_t colon = part.find(':');
    option = {part.substr(0, colon), colon == std::string_view::npos ? std::string_view{} : part.substr(colon + 1)};
    return true;
  }

 private:
  std::string_view rest_;
};

template <typename Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

constexpr std::int64_t kMostMiB = std::int64_t{1} << 40;

using Complaint = std::optional<std::string>;

Complaint read_flag(std::string_view value, bool& flag) {
  if (value != "True" && value != "False") return "must be True or False";
  flag = value == "True";
  return std::nullopt;
}

Complaint read_mib(std::string_view value, std::int64_t least, std::int64_t& bytes) {
  const auto mib = number<std::int64_t>(value);
  if (!mib || *mib < least || *mib > kMostMiB)
    return "must be a whole number of MiB, at least " + std::to_string(least);
  bytes = *mib * kAllocatorMiB;
  return std::nullopt;
}

Complaint read_limit(std::string_view value, std::optional<std::int64_t>& limit) {
  std::int64_t bytes = 0;
  Complaint wrong = read_mib(value, 20, bytes);
  if (!wrong) limit = bytes;
  return wrong;
}

Complaint read_threshold(std::string_view value, AllocatorSettings& s) {
  const auto part = number<double>(value);
  if (!part || !(*part > 0 && *part < 1)) return "must be a number above 0 and below 1";
  s.garbage_collection_threshold = *part;
  return std::nullopt;
}

Complaint read_fraction(std::string_view value, AllocatorSettings& s) {
  const auto part = number<double>(value);
  if (!part || !(*part >= 0 && *part <= 1)) return "must be a number from 0 to 1";
  s.per_process_memory_fraction = *part;
  return std::nullopt;
}

// One "MIB:DIVISIONS" or ">:DIVISIONS" of the table. `last` is the interval before it, none at the start.
Complaint read_table_entry(Option entry, std::optional<std::size_t>& last, AllocatorSettings& s) {
  auto& table = s.roundup_power2_divisions;
  const auto divisions = number<std::int64_t>(entry.value);
  if (!divisions || (*divisions != 0 && !is_power_of_two(*divisions))) {
    return "divisions must be 0 or a power of two, not \"" + std::string(entry.value) + '"';
  }
  if (entry.key == ">") {
    std::fill(table.begin() + static_cast<std::ptrdiff_t>(last.value_or(0)) + 1, table.end(), *divisions);
    return std::nullopt;
  }
  const auto mib = number<std::int64_t>(entry.key);
  if (!mib || !is_power_of_two(*mib))
    return "sizes must be powers of two in MiB, not \"" + std::string(entry.key) + '"';
  const std::size_t at = interval_of(floor_log2(*mib));
  if (!last) std::fill(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(at), *divisions);
  table[at] = *divisions;
  last = at;
  return std::nullopt;
}

Complaint read_divisions(std::string_view value, AllocatorSettings& s) {
  if (value.empty() || value.front() != '[') {
    const auto divisions = number<std::int64_t>(value);
    if (!divisions || !is_power_of_two(*divisions))
      return "must be a power of two, or a table such as [256:1,512:2,>:4]";
    s.roundup_power2_divisions.fill(*divisions);
    return std::nullopt;
  }
  if (value.back() != ']') return "the table lacks its closing ]";
  Options entries(value.substr(1, value.size() - 2));
  std::optional<std::size_t> last;
  for (Option entry; entries.next(entry);) {
    if (Complaint wrong = read_table_entry(entry, last, s)) return wrong;
  }
  return std::nullopt;
}

Complaint read_backend(std::string_view value, AllocatorSettings&) {
  if (value == "native") return std::nullopt;
  if (value == "cudaMallocAsync") return "cudaMallocAsync is another allocator, which is not modelled";
  return "must be native";
}

struct Known {
  std::string_view key;
  Complaint (*read)(std::string_view, AllocatorSettings&);  // null: accepted, changes nothing on the device
};

constexpr Known kKnown[] = {
    {"expandable_segments",
     [](std::string_view v, AllocatorSettings& s) { return read_flag(v, s.expandable_segments); }},
    {"max_split_size_mb",
     [](std::string_view v, AllocatorSettings& s) { return read_limit(v, s.max_split_size_bytes); }},
    {"garbage_collection_threshold", read_threshold},
    {"roundup_power2_divisions", read_divisions},
    {"max_non_split_rounding_mb",
     [](std::string_view v, AllocatorSettings& s) { return read_limit(v, s.max_non_split_rounding_bytes); }},
    {"large_segment_size_mb",
     [](std::string_view v, AllocatorSettings& s) { return read_mib(v, 11, s.large_segment_bytes); }},
    {"per_process_memory_fraction", read_fraction},
    {"backend", read_backend},
    {"throw_on_cudamalloc_oom", nullptr},
    {"release_lock_on_cudamalloc", nullptr},
    {"release_lock_on_hipmalloc", nullptr},
    {"graph_capture_record_stream_reuse", nullptr},
    {"expandable_segments_reserve", nullptr},
    {"expandable_segments_reserve_by_class", nullptr},
    {"pinned_use_cuda_host_register", nullptr},
    {"pinned_use_hip_host_register", nullptr},
    {"pinned_num_register_threads", nullptr},
    {"pinned_use_background_threads", nullptr},
    {"pinned_reserve_segment_size_mb", nullptr},
    {"pinned_max_round_threshold_mb", nullptr},
    {"pinned_max_cached_size_mb", nullptr},
    {"pinned_free_catch_all", nullptr},
};

std::string nearest_key(std::string_view typed) {
  std::vector<std::string_view> keys;
  for (const Known& known : kKnown) keys.push_back(known.key);
  const std::string_view nearest = nearest_word(typed, keys);
  return nearest.empty() ? std::string{} : "did you mean " + std::string(nearest) + '?';
}

void read_option(Option option, AllocatorSettingsText& out) {
  const auto* known = std::ranges::find(kKnown, option.key, &Known::key);
  if (known == std::end(kKnown)) {
    out.problems.push_back({"", std::string(option.key), "is not an option of the allocator", nearest_key(option.key)});
  } else if (option.value.empty()) {
    out.problems.push_back(
        {"", std::string(option.key), "has no value", "write " + std::string(option.key) + ":VALUE"});
  } else if (known->read == nullptr) {
    out.ignored.push_back(std::string(option.key) + ':' + std::string(option.value));
  } else {
    AllocatorSettings changed = out.settings;
    if (Complaint wrong = known->read(option.value, changed)) {
      out.problems.push_back({"", std::string(option.key), *wrong, ""});
    } else {
      out.settings = changed;
    }
  }
}

}  // namespace

std::int64_t rounded_request(const AllocatorSettings& settings, std::int64_t bytes) {
  if (bytes < kMinBlockBytes) return kMinBlockBytes;
  const std::int64_t divisions =
      settings.roundup_power2_divisions[interval_of(floor_log2(bytes) - floor_log2(kAllocatorMiB))];
  if (divisions > 1 && bytes > kMinBlockBytes * divisions) return next_division(bytes, divisions);
  return round_up(bytes, kMinBlockBytes);
}

std::int64_t segment_bytes_for(const AllocatorSettings& settings, std::int64_t rounded) {
  if (rounded <= kSmallRequestBytes) return kSmallSegmentBytes;
  if (rounded < kMinOwnSegmentBytes) return settings.large_segment_bytes;
  return round_up(rounded, kOwnSegmentUnitBytes);
}

AllocatorSettingsText read_allocator_settings(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') plain.push_back(c);
  }
  AllocatorSettingsText out;
  Options options(plain);
  for (Option option; options.next(option);) read_option(option, out);
  if (out.settings.max_split_size_bytes && *out.settings.max_split_size_bytes < out.settings.large_segment_bytes) {
    out.problems.push_back({"", "max_split_size_mb", "must not be below large_segment_size_mb", ""});
    out.settings.max_split_size_bytes.reset();
  }
  return out;
}

}  // namespace membill

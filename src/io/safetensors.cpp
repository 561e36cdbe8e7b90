#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "io/json_reader.h"
#include "io/text_file.h"
#include "membill/problem.h"
#include "membill/units.h"
#include "membill/value.h"

namespace membill::io {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLengthField = 8;
constexpr std::size_t kMostFiles = 4096;
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kLfsPointer = "version https://git-lfs";

struct DTypeBits {
  std::string_view name;
  std::int64_t bits;
};
// https://github.com/huggingface/safetensors, safetensors/src/tensor.rs, enum Dtype.
constexpr std::array<DTypeBits, 19> kBits{{
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},    {"F8_E5M2", 8},
    {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16}, {"BF16", 16}, {"I32", 32},
    {"U32", 32},    {"F32", 32},    {"F64", 64},    {"I64", 64},    {"U64", 64},
}};

// Reads the members of a list of whole numbers that are not negative.
std::optional<std::vector<std::int64_t>> counts_of(const Value* list) {
  if (list == nullptr || !list->is_list()) return std::nullopt;
  std::vector<std::int64_t> result;
  for (const Value& item : list->items()) {
    if (!item.is_int() || item.as_int() < 0) return std::nullopt;
    result.push_back(item.as_int());
  }
  return result;
}

// Bytes of a tensor; none when the dtype is not known. Throws OverflowError.
std::optional<std::int64_t> bytes_of(const StoredTensor& tensor) {
  const auto* const known =
      std::find_if(kBits.begin(), kBits.end(), [&](const DTypeBits& row) { return row.name == tensor.dtype; });
  if (known == kBits.end()) return std::nullopt;
  std::int64_t bits = known->bits;
  for (const std::int64_t extent : *tensor.shape) bits = checked_mul(bits, extent);
  return ceil_div(bits, 8);
}

std::string check_offsets(const StoredTensor& tensor, const std::vector<std::int64_t>& offsets,
                          std::int64_t data_bytes) {
  if (offsets.size() != 2 || offsets[0] > offsets[1]) return "data_offsets need a begin and an end";
  if (offsets[1] > data_bytes) return "its data leaves the file, which may be truncated";
  try {
    const std::optional<std::int64_t> bytes = bytes_of(tensor);
    if (bytes && *bytes != offsets[1] - offsets[0]) return "its data is not as long as shape and dtype say";
  } catch (const OverflowError&) {
    return "its shape exceeds 2^63 elements";
  }
  return {};
}

StoredTensor read_tensor(const Value::Entry& entry, std::int64_t data_bytes, const std::string& file,
                         Problems& problems) {
  StoredTensor tensor{entry.first, "", counts_of(entry.second.find("shape"))};
  const Value* dtype = entry.second.find("dtype");
  const std::optional<std::vector<std::int64_t>> offsets = counts_of(entry.second.find("data_offsets"));
  if (dtype == nullptr || !dtype->is_string() || !tensor.shape || !offsets) {
    problems.add(Problem{file, entry.first, "needs dtype, shape and data_offsets", ""});
    return tensor;
  }
  tensor.dtype = dtype->as_string();
  const std::string wrong = check_offsets(tensor, *offsets, data_bytes);
  if (!wrong.empty()) problems.add(Problem{file, entry.first, wrong, ""});
  return tensor;
}

std::uint64_t length_field(std::string_view start) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(kLengthField); ++i) {
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(start[i])) << (8 * i);
  }
  return length;
}

// The length of the header, checked. `start` holds the length field at least, or the whole of a shorter file.
std::int64_t header_length(std::string_view start, std::int64_t file_bytes, const std::string& file) {
  const auto fail = [&](const std::string& message) { throw InputError(Problem{file, "", message, ""}); };
  if (static_cast<std::int64_t>(start.size()) < kLengthField) fail("is too short for a safetensors file");
  const std::uint64_t length = length_field(start);
  if (length > static_cast<std::uint64_t>(kLargestFile - kLengthField))
    fail("is no safetensors file: its header would be larger than 64 MiB");
  if (static_cast<std::int64_t>(length) > file_bytes - kLengthField) fail("is truncated: its header leaves the file");
  return static_cast<std::int64_t>(length);
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// Adds the tensors of one file; a file that is absent or a Git LFS pointer is a warning and adds none.
bool add_file(const fs::path& path, Checkpoint& checkpoint) {
  const std::string name = path.filename().string();
  if (!is_file(path)) return checkpoint.warnings.push_back(name + " is missing"), false;
  std::int64_t total = 0;
  TextFile start = read_file_start(path.string(), static_cast<std::int64_t>(kLfsPointer.size()), total);
  if (start.text == kLfsPointer)
    return checkpoint.warnings.push_back(name + " is a Git LFS pointer, not the weights"), false;
  const std::int64_t length = header_length(start.text, total, name);
  start = read_file_start(path.string(), kLengthField + length, total);
  for (StoredTensor& tensor : parse_safetensors(start.text, total, name))
    checkpoint.tensors.push_back(std::move(tensor));
  return true;
}

Checkpoint read_index(const fs::path& folder) {
  const TextFile text = read_file((folder / kIndex).string());
  const Value index = parse_json(text.text, text.name);
  Checkpoint checkpoint;
  checkpoint.file = text.name;
  const Value* weight_map = index.find("weight_map");
  if (weight_map == nullptr || !weight_map->is_map())
    throw InputError(Problem{text.name, "weight_map", "needs a map of tensors to files", ""});
  if (const Value* metadata = index.find("metadata"); metadata != nullptr) {
    const Value* total = metadata->find("total_size");
    if (total != nullptr && total->is_int()) checkpoint.total_size = total->as_int();
  }
  Problems problems;
  std::vector<std::string> files;
  for (const auto& [name, file] : weight_map->entries()) {
    const bool good = file.is_string() && !file.as_string().empty() && file.as_string().find('/') == std::string::npos;
    if (!good)
      problems.add(Problem{text.name, "weight_map." + name, "needs the name of a file in the same folder", ""});
    if (good) files.push_back(file.as_string());
  }
  problems.throw_if_any();
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  if (files.size() > kMostFiles) throw InputError(Problem{text.name, "weight_map", "names more than 4096 files", ""});
  const bool any_there =
      std::any_of(files.begin(), files.end(), [&](const std::string& file) { return is_file(folder / file); });
  std::vector<std::string> absent;
  for (const std::string& file : files) {
    if (!any_there || !add_file(folder / file, checkpoint)) absent.push_back(file);
  }
  for (const auto& [name, file] : weight_map->entries()) {
    if (std::binary_search(absent.begin(), absent.end(), file.as_string()))
      checkpoint.tensors.push_back({name, "", std::nullopt});
  }
  return checkpoint;
}

// The weight files of a folder without an index: model*.safetensors, or else all but adapters.
std::vector<fs::path> weight_files(const fs::path& folder) {
  std::vector<fs::path> model;
  std::vector<fs::path> other;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".safetensors" || !is_file(entry.path()) || name.starts_with("adapter")) continue;
    (name.starts_with("model") ? model : other).push_back(entry.path());
  }
  std::vector<fs::path>& chosen = model.empty() ? other : model;
  std::sort(chosen.begin(), chosen.end());
  if (chosen.size() > kMostFiles) chosen.resize(kMostFiles);
  return chosen;
}

}  // namespace

std::vector<StoredTensor> parse_safetensors_header(std::string_view header, std::int64_t data_bytes,
                                                   const std::string& file) {
  const Value tree = parse_json(header, file);
  if (!tree.is_map()) throw InputError(Problem{file, "", "its header is no map of tensors", ""});
  Problems problems;
  std::vector<StoredTensor> tensors;
  for (const Value::Entry& entry : tree.entries()) {
    if (entry.first != "__metadata__") tensors.push_back(read_tensor(entry, data_bytes, file, problems));
  }
  problems.throw_if_any();
  return tensors;
}

std::vector<StoredTensor> parse_safetensors(std::string_view start, std::int64_t file_bytes, const std::string& file) {
  const std::int64_t length = header_length(start, file_bytes, file);
  if (static_cast<std::int64_t>(start.size()) < kLengthField + length)
    throw InputError(Problem{file, "", "is truncated: its header leaves the file", ""});
  const std::string_view header =
      start.substr(static_cast<std::size_t>(kLengthField), static_cast<std::size_t>(length));
  return parse_safetensors_header(header, file_bytes - kLengthField - length, file);
}

std::optional<Checkpoint> read_checkpoint(const std::string& folder) {
  if (is_file(fs::path(folder) / kIndex)) return read_index(folder);
  const std::vector<fs::path> files = weight_files(folder);
  if (files.empty()) return std::nullopt;
  Checkpoint checkpoint;
  checkpoint.file = files.front().filename().string();
  for (const fs::path& file : files) add_file(file, checkpoint);
  return checkpoint;
}

}  // namespace membill::io

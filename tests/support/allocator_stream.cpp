#include "support/allocator_stream.h"
#include "support/places.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace membill::test {

namespace {

void read_header(std::istringstream& in, AllocatorStream& stream) {
  std::string key;
  in >> key;
  if (key == "settings") in >> stream.settings;
  if (key == "capacity") in >> stream.capacity.emplace();
  if (key == "fraction") in >> stream.fraction.emplace();
}

void read_line(const std::string& line, std::int32_t& next_id, AllocatorStream& stream) {
  std::istringstream in(line);
  char kind = 0;
  in >> kind;
  AllocatorEvent event;
  if (kind == '#') return read_header(in, stream);
  if (kind == 'c') {
    std::string key;
    in >> key;
    in >> stream.counters[key];
    return;
  }
  if (kind == '=') {
    Checkpoint checkpoint{stream.events.size(), {}};
    for (std::int64_t value = 0; in >> value;) checkpoint.counters.push_back(value);
    stream.checkpoints.push_back(checkpoint);
    return;
  }
  if (kind == 'a' || kind == 'x') {
    in >> event.bytes >> event.stream;
    event.id = next_id++;
  } else if (kind == 'f') {
    event.kind = AllocatorEventKind::release;
    in >> event.id;
  } else {
    event.kind = AllocatorEventKind::empty_cache;
  }
  stream.events.push_back(event);
  stream.failed.push_back(kind == 'x');
}

AllocatorStream read_stream(const std::filesystem::path& path) {
  AllocatorStream stream;
  stream.name = path.stem().string();
  std::ifstream in(path);
  std::int32_t next_id = 0;
  for (std::string line; std::getline(in, line);) read_line(line, next_id, stream);
  return stream;
}

}  // namespace

std::vector<AllocatorStream> allocator_streams(std::string_view prefix) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(test::in_source("tests/data/allocator"))) {
    if (entry.path().extension() == ".txt" && entry.path().stem().string().starts_with(prefix))
      paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<AllocatorStream> streams;
  for (const auto& path : paths) streams.push_back(read_stream(path));
  return streams;
}

AllocatorSettings settings_of(const AllocatorStream& stream) {
  AllocatorSettingsText text = read_allocator_settings(stream.settings);
  if (!text.problems.empty()) throw std::runtime_error(stream.name + ": " + text.problems.front().message);
  if (stream.fraction) text.settings.per_process_memory_fraction = stream.fraction;
  return text.settings;
}

}  // namespace membill::test

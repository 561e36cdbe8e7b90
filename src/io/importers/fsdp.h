// FSDP's options: by themselves, or as a part of another job.
#pragma once

#include <string>

#include "io/importers/importer.h"

namespace membill::io {

// What is said outside of the options' own map.
struct FsdpSurroundings {
  std::string strategy;  // "full_shard" ...; empty: the map says it, or full shard
  bool offload = false;
  bool wrap = true;  // layers are units unless the map says otherwise; Hugging Face's fsdp needs "auto_wrap" for it
  std::int64_t version = 1;  // where the map has none
  std::string prefix;        // of keys in records: "fsdp_config."
};

// Reads the options into the draft. Keys may carry the prefix "fsdp_".
void read_fsdp_part(const Value& options, const std::string& file, const FsdpSurroundings& around, Draft& draft);

// Hugging Face's pair of arguments: fsdp ("full_shard auto_wrap offload", a list, true) and fsdp_config (a map, a path, or absent).
void read_fsdp_arguments(KeyReader& reader, Draft& draft);

}  // namespace membill::io

// Hardware: on what the job runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "membill/source.h"
#include "membill/units.h"

namespace membill {

// One kind of card.
struct GpuSpec {
  std::string name;                     // "NVIDIA A100 80GB"
  std::string short_name;               // kebab preset name ("a100-80gb")
  std::string vendor;                   // "NVIDIA", "AMD", "Huawei", ...
  std::int64_t marketed_gb = 0;         // as sold; 0 = unknown
  std::optional<Bytes> reported;        // what nvidia-smi (or npu-smi) prints as total
  std::optional<Bytes> usable;          // total that the framework sees (cudaMemGetInfo)
  std::optional<int> capability_major;  // CUDA compute capability; none for other vendors
  int capability_minor = 0;
  std::optional<bool> bf16;
  std::optional<bool> fp8;
  std::optional<std::int64_t> bandwidth_gb_s;
  std::optional<std::int64_t> bf16_tflops;
  std::optional<Bytes> context,
      communicator;  // measured on the user's own machine, beside the allocator; none: estimated
  std::vector<Source> sources;
  std::vector<std::string> notes;
};

// The machine of one job.
struct Hardware {
  std::optional<GpuSpec> gpu;            // none: no card named, no verdict
  std::int64_t count = 1;                // cards in all, >= 1
  std::int64_t nodes = 1;                // divides count
  std::optional<Bytes> host_ram;         // of one node
  std::optional<std::int64_t> rank;      // bill this data-parallel rank; none: the heaviest
  Bytes others_use{0};                   // bytes of each card that other processes hold
  Bytes margin{0};                       // bytes of each card that are to stay free
  std::vector<std::string> assumptions;  // how a missing figure was filled

  // Bytes of one card that this job may use: gpu->usable less others_use and margin, at least 0; none when no card was named or its size
  // is unknown.
  [[nodiscard]] std::optional<Bytes> usable() const;
};

}  // namespace membill

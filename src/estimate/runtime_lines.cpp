#include "estimate/runtime_lines.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/release.h"

namespace membill {
namespace {

constexpr std::int64_t kMoreKernels =
    450;  // MiB that loading kernels lazily added, at most: pytorch/pytorch#109888, ml-engineering

constexpr std::int64_t kWidestPercent = 35;
constexpr std::int64_t kPartNotKnown = 12;  // of FSDP1's reserved memory: held_range

constexpr std::array kReadings = {
    ContextReading{"a100-80gb", true, 481, "torch 2.1.1, CUDA 12.1",
                   "stas00/ml-engineering training/performance/README.md"},
    ContextReading{"rtx-6000-ada", true, 426, "torch 2.10, CUDA 13.0", "unslothai/unsloth-zoo#1053"},
    ContextReading{"rtx-3090", true, 256, "torch 2.7.1, CUDA 12.8", "invoke-ai/InvokeAI#9413"},
    ContextReading{"rtx-pro-6000", true, 555, "llama.cpp", "ggml-org/llama.cpp#23604"},
    ContextReading{"", true, 563, "a distributed test before its first collective",
                   "stas00/ml-engineering training/performance/README.md"},
    ContextReading{"a100-80gb", false, 942, "torch 2.1.1, CUDA 12.1, eager loading",
                   "stas00/ml-engineering training/performance/README.md"},
    ContextReading{"a100-80gb", false, 922, "torch 1.13.1", "stas00/ml-engineering training/performance/README.md"},
    ContextReading{"a100-80gb", false, 1823, "torch 1.10.2", "stas00/ml-engineering training/performance/README.md"},
    ContextReading{"rtx-3090", false, 1001, "torch 1.8, CUDA 11.1", "pytorch/pytorch#54564"},
    ContextReading{"v100-16gb", false, 1343, "torch 1.11 or so", "huggingface/transformers docs perf_train_gpu_one"},
    ContextReading{"", false, 1008, "torch 1.3, Titan V", "pytorch/pytorch#28394"},
};

// Other vendors: what an idle card holds.
struct VendorReading {
  std::string_view vendor;
  std::int64_t low = 0, likely = 0, high = 0;  // MiB
  std::string_view source;
};
constexpr std::array kVendors = {
    VendorReading{"Huawei", 2900, 3150, 3400, "npu-smi of idle cards in vllm-project/vllm-ascend issues"},
    VendorReading{"Intel Habana", 600, 768, 1200,
                  "hl-smi of an idle Gaudi 2 (768 MiB); the range around it is assumed"},
    VendorReading{"", 250, 600, 1500, "no reading of this vendor's cards: assumed"},
};

const VendorReading& other_vendor(std::string_view vendor) {
  return *std::find_if(kVendors.begin(), kVendors.end() - 1,
                       [&](const VendorReading& reading) { return reading.vendor == vendor; });
}

bool is_other_vendor(const GpuSpec& gpu) { return !gpu.vendor.empty() && gpu.vendor != "NVIDIA"; }

bool loads_lazily(const TrainingPlan& plan) {
  const auto torch = plan.software.find("torch");
  return torch == plan.software.end() || !is_before(torch->second, 2, 0);
}

bool is_of(const ContextReading& reading, const GpuSpec& gpu) { return reading.card == gpu.short_name; }

struct Readings {
  std::int64_t least = 0, most = 0;
  std::optional<std::int64_t> own;
  std::int64_t middle = 0;
};

Readings readings_of(const Hardware& hardware, bool lazy) {
  std::vector<std::int64_t> all;
  Readings found;
  for (const ContextReading& reading : kReadings) {
    if (reading.lazy != lazy) continue;
    all.push_back(reading.mib);
    if (hardware.gpu && is_of(reading, *hardware.gpu) && !found.own) found.own = reading.mib;
  }
  std::sort(all.begin(), all.end());
  found.least = all.front();
  found.most = all.back();
  found.middle = all[all.size() / 2];
  return found;
}

std::int64_t mib(std::int64_t count) { return count << 20; }

}  // namespace

std::span<const ContextReading> context_readings() { return kReadings; }

Range context_bytes(const Hardware& hardware, const TrainingPlan& plan) {
  if (hardware.gpu && hardware.gpu->context) return Range::exact(hardware.gpu->context->count());
  if (hardware.gpu && is_other_vendor(*hardware.gpu)) {
    const VendorReading& idle = other_vendor(hardware.gpu->vendor);
    return {mib(idle.low), mib(idle.likely), mib(idle.high)};
  }
  const bool lazy = loads_lazily(plan);
  const Readings found = readings_of(hardware, lazy);
  const std::int64_t likely = found.own.value_or(found.middle);
  const std::int64_t high = lazy ? std::max(likely, found.most) + kMoreKernels : std::max(likely, found.most);
  return {mib(found.least), mib(likely), mib(high)};
}

Source context_source(const Hardware& hardware, const TrainingPlan& plan) {
  if (hardware.gpu && hardware.gpu->context) return "measured on this machine (membill compare --calibrate)";
  if (hardware.gpu && is_other_vendor(*hardware.gpu)) return std::string(other_vendor(hardware.gpu->vendor).source);
  std::string text;
  for (const ContextReading& reading : kReadings) {
    if (reading.lazy != loads_lazily(plan)) continue;
    const bool own = hardware.gpu && is_of(reading, *hardware.gpu);
    if (own) return "measured on this card with " + std::string(reading.software) + ": " + std::string(reading.source);
    text += (text.empty() ? "measured on other cards: " : "; ") + std::string(reading.source);
  }
  return text;
}

Range held_range(const Range& reserved, const Range& beside, std::optional<std::int64_t> card, Engine engine) {
  const std::int64_t likely = checked_add(*reserved.likely, *beside.likely);
  const std::int64_t more = engine == Engine::fsdp ? *reserved.likely / kPartNotKnown : 0;
  std::int64_t high = checked_add(std::max(checked_add(*reserved.likely, more), *reserved.high), *beside.high);
  if (card && high > *card) high = std::max(likely, *card);
  const std::int64_t widest = likely / 100 * kWidestPercent;
  const std::int64_t low = std::min(likely, checked_add(*reserved.low, *beside.low));
  if (high - low <= widest) return {low, likely, high};
  const std::int64_t raised = std::min(likely, high - widest);
  return {raised, likely, std::min(high, raised + widest)};
}

Bytes matmul_workspace_bytes(const Hardware& hardware, const TrainingPlan& plan) {
  constexpr Bytes kUsual{8519680};
  if (!hardware.gpu) return kUsual;
  const GpuSpec& gpu = *hardware.gpu;
  if (gpu.vendor == "AMD") return gpu.short_name.rfind("mi3", 0) == 0 ? 128_MiB : 32_MiB;
  const int major = gpu.capability_major.value_or(0);
  const auto torch = plan.software.find("torch");
  const bool newest = torch == plan.software.end() || !is_before(torch->second, 2, 15);
  return major == 9 || (major > 9 && newest) ? 32_MiB : kUsual;
}

}  // namespace membill

#include "estimate/runtime_lines.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "blocks/generations.h"

namespace membill {
namespace {

constexpr std::int64_t kMoreKernels =
    450;  // MiB that loading kernels lazily added, at most: pytorch/pytorch#109888, ml-engineering

constexpr std::int64_t kFifth = 5;
constexpr std::int64_t kWidestPercent = 35;

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

// Other vendors: what an idle card holds. npu-smi readings in vllm-project/vllm-ascend issues, hl-smi of a Gaudi 2.
Range other_vendor(const std::string& vendor) {
  if (vendor == "Huawei") return {(2900_MiB).count(), (3150_MiB).count(), (3400_MiB).count()};
  if (vendor == "Intel Habana") return {(600_MiB).count(), (768_MiB).count(), (1200_MiB).count()};
  return {(250_MiB).count(), (600_MiB).count(), (1500_MiB).count()};
}

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
  if (hardware.gpu && !hardware.gpu->vendor.empty() && hardware.gpu->vendor != "NVIDIA")
    return other_vendor(hardware.gpu->vendor);
  const bool lazy = loads_lazily(plan);
  const Readings found = readings_of(hardware, lazy);
  const std::int64_t likely = found.own.value_or(found.middle);
  const std::int64_t high = lazy ? std::max(likely, found.most) + kMoreKernels : std::max(likely, found.most);
  return {mib(found.least), mib(likely), mib(high)};
}

Source context_source(const Hardware& hardware, const TrainingPlan& plan) {
  if (hardware.gpu && hardware.gpu->context) return "measured on this machine (membill compare --calibrate)";
  std::string text;
  for (const ContextReading& reading : kReadings) {
    if (reading.lazy != loads_lazily(plan)) continue;
    const bool own = hardware.gpu && is_of(reading, *hardware.gpu);
    if (own) return "measured on this card with " + std::string(reading.software) + ": " + std::string(reading.source);
    text += (text.empty() ? "measured on other cards: " : "; ") + std::string(reading.source);
  }
  return text;
}

Range device_range(std::int64_t allocated, std::int64_t reserved, const Range& beside,
                   std::optional<std::int64_t> card) {
  const std::int64_t likely = checked_add(reserved, *beside.likely);
  std::int64_t high = checked_add(checked_add(reserved, reserved / kFifth), *beside.high);
  if (card && high > *card) high = std::max(likely, *card);
  const std::int64_t widest = likely / 100 * kWidestPercent;
  const std::int64_t low = std::max(checked_add(allocated, *beside.low), high - widest);
  return {std::min(low, likely), likely, high};
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

// A planner's table has 342 MiB for two cards; measured at the first barrier of two cards: 0.55 to 2.00 GiB, most often about 1.
Range communicator_bytes(const Hardware& hardware) {
  if (hardware.count < 2) return Range::exact(0);
  if (hardware.gpu && hardware.gpu->communicator) return Range::exact(hardware.gpu->communicator->count());
  return {(342_MiB).count(), (1_GiB).count(), (2_GiB).count()};
}

}  // namespace membill

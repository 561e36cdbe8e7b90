#include "card.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace phantom {
namespace {

constexpr Card kCards[] = {
    {"a100-80gb", "NVIDIA A100-SXM4-80GB", 8, 0, 108, 84987740160, 166912, 41943040},
    {"a100-40gb", "NVIDIA A100-SXM4-40GB", 8, 0, 108, 42298834944, 166912, 41943040},
    {"h100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 84929347584, 232448, 52428800},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 8, 9, 128, 25282281472, 101376, 75497472},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 8, 6, 82, 25438126080, 101376, 6291456},
    {"t4", "Tesla T4", 7, 5, 40, 15828320256, 65536, 4194304},
};

std::atomic<std::size_t> capacity{0};

std::size_t bytes_from_environment(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

Card card_from_environment() {
  const char* wanted = std::getenv("PHANTOM_GPU");
  Card found = kCards[0];
  for (const Card& known : kCards)
    if (wanted != nullptr && std::strcmp(known.key, wanted) == 0) found = known;
  found.bytes = bytes_from_environment("PHANTOM_BYTES", found.bytes);
  return found;
}

int threads_per_multiprocessor(const Card& c) {
  if (c.major == 7) return 1024;
  return c.major == 8 && c.minor != 0 ? 1536 : 2048;
}

}  // namespace

Card card() {
  static const Card kFixed = card_from_environment();
  Card now = kFixed;
  if (capacity != 0) now.bytes = capacity;
  return now;
}

void set_capacity(std::size_t bytes) { capacity = bytes; }

std::size_t context_bytes() {
  static const std::size_t kBytes = bytes_from_environment("PHANTOM_CONTEXT", 0);
  return kBytes;
}

int attribute(int which) {
  const Card c = card();
  switch (which) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: return 1024;
    case cudaDevAttrMaxBlockDimZ: return 64;
    case cudaDevAttrMaxGridDimX: return 2147483647;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
    case cudaDevAttrTotalConstantMemory: return 65536;
    case cudaDevAttrMaxSharedMemoryPerBlock: return 49152;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return static_cast<int>(c.shared_optin);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return static_cast<int>(c.shared_optin) + 1024;
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrMultiProcessorCount: return c.multiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return threads_per_multiprocessor(c);
    case cudaDevAttrL2CacheSize: return static_cast<int>(c.level2_cache);
    case cudaDevAttrComputeCapabilityMajor: return c.major;
    case cudaDevAttrComputeCapabilityMinor: return c.minor;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrCooperativeLaunch:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: return 1;
    case cudaDevAttrClockRate: return 1410000;
    case cudaDevAttrMemoryClockRate: return 1593000;
    case cudaDevAttrGlobalMemoryBusWidth: return 5120;
    default: return 0;
  }
}

}  // namespace phantom

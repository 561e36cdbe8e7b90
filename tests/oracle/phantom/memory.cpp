// cudaMalloc and its relatives. Copies do nothing but give plausible answers to the host.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "api.h"
#include "card.h"
#include "store.h"

using namespace phantom;

namespace {

constexpr std::size_t kGranule = std::size_t{2} << 20;  // the driver hands out memory in units of 2 MiB
constexpr std::size_t kSmallCopy = std::size_t{4}
                                   << 20;  // larger ones into page-locked memory leave its pages untouched

std::size_t in_granules(std::size_t bytes) { return (bytes + kGranule - 1) / kGranule * kGranule; }

bool leaves_large_copies() {
  static const bool kLazy = std::getenv("PHANTOM_LAZY") != nullptr;
  return kLazy;
}

// From the card: one byte reads as true (all-ones masks, "all finite"), the rest as zero.
void copy(void* to, const void* from, std::size_t bytes) {
  if (device_ranges().contains(to)) return;
  if (!device_ranges().contains(from)) {
    std::memmove(to, from, bytes);
    return;
  }
  if (bytes <= kSmallCopy || !(leaves_large_copies() || host_ranges().contains(to)))
    std::memset(to, bytes == 1 ? 1 : 0, bytes);
}

}  // namespace

PHANTOM_API void phantom_set_bytes(std::size_t bytes) { set_capacity(bytes); }

PHANTOM_API cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  const std::size_t charged = in_granules(bytes);
  *out = nullptr;
  if (!charge(charged)) return fail(cudaErrorMemoryAllocation);
  void* begin = reserve_addresses(charged);
  if (begin == nullptr) {
    give_back(charged);
    return fail(cudaErrorMemoryAllocation);
  }
  device_ranges().add(begin, charged);
  *out = begin;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaFree(void* begin) {
  const std::size_t bytes = begin == nullptr ? 0 : device_ranges().remove(begin);
  if (bytes == 0) return cudaSuccess;
  unmap(begin, bytes);
  give_back(bytes);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMallocAsync(void** out, std::size_t bytes, cudaStream_t) { return cudaMalloc(out, bytes); }
PHANTOM_API cudaError_t cudaFreeAsync(void* begin, cudaStream_t) { return cudaFree(begin); }

PHANTOM_API cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
  *total = card().bytes;
  *available = free_bytes();
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaHostAlloc(void** out, std::size_t bytes, unsigned) {
  const std::size_t mapped = bytes == 0 ? 1 : bytes;
  *out = map_host(mapped);
  if (*out == nullptr) return fail(cudaErrorMemoryAllocation);
  host_ranges().add(*out, mapped);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMallocHost(void** out, std::size_t bytes) { return cudaHostAlloc(out, bytes, 0); }
PHANTOM_API cudaError_t cudaMallocManaged(void** out, std::size_t bytes, unsigned flags) {
  return cudaHostAlloc(out, bytes, flags);
}

PHANTOM_API cudaError_t cudaFreeHost(void* begin) {
  const std::size_t bytes = host_ranges().remove(begin);
  if (bytes != 0) unmap(begin, bytes);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaHostRegister(void*, std::size_t, unsigned) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  copy(to, from, bytes);
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  copy(to, from, bytes);
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaMemcpy2DAsync(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t,
                                          cudaMemcpyKind, cudaStream_t) {
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaMemcpyPeerAsync(void*, int, const void*, int, std::size_t, cudaStream_t) {
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaMemcpyToSymbol(const void*, const void*, std::size_t, std::size_t, cudaMemcpyKind) {
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaMemcpyToSymbolAsync(const void*, const void*, std::size_t, std::size_t, cudaMemcpyKind,
                                                cudaStream_t) {
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaMemset(void*, int, std::size_t) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaMemsetAsync(void*, int, std::size_t, cudaStream_t) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaGetSymbolAddress(void** out, const void*) {
  *out = new_handle();
  return cudaSuccess;
}

#if CUDART_VERSION >= 13000
PHANTOM_API cudaError_t cudaMemPrefetchAsync(const void*, std::size_t, cudaMemLocation, unsigned, cudaStream_t) {
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaMemAdvise(const void*, std::size_t, cudaMemoryAdvise, cudaMemLocation) {
  return cudaSuccess;
}
#else
PHANTOM_API cudaError_t cudaMemPrefetchAsync(const void*, std::size_t, int, cudaStream_t) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaMemAdvise(const void*, std::size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
#endif

PHANTOM_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* address) {
  std::memset(out, 0, sizeof *out);
  const bool device = device_ranges().contains(address);
  const bool host = !device && host_ranges().contains(address);
  out->type = device ? cudaMemoryTypeDevice : host ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  if (device || host) out->devicePointer = const_cast<void*>(address);
  if (host) out->hostPointer = const_cast<void*>(address);
  return cudaSuccess;
}

// Questions about the card, and errors.
#include <cstdio>
#include <cstring>

#include "api.h"
#include "card.h"
#include "store.h"

using namespace phantom;

namespace {

thread_local cudaError_t last_error = cudaSuccess;

void fill_limits(cudaDeviceProp& p) {
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 2147483647;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.maxBlocksPerMultiProcessor = 32;
  p.maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
}

void fill_memory(cudaDeviceProp& p, const Card& c) {
  p.totalGlobalMem = c.bytes;
  p.totalConstMem = 65536;
  p.sharedMemPerBlock = 49152;
  p.sharedMemPerBlockOptin = c.shared_optin;
  p.sharedMemPerMultiprocessor = c.shared_optin + 1024;
  p.l2CacheSize = static_cast<int>(c.level2_cache);
  p.memPitch = 2147483647;
  p.memoryBusWidth = 5120;
  p.textureAlignment = 512;
  p.texturePitchAlignment = 32;
}

}  // namespace

namespace phantom {

cudaError_t fail(cudaError_t error) {
  last_error = error;
  return error;
}

}  // namespace phantom

PHANTOM_API cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaSetDevice(int) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
PHANTOM_API cudaError_t cudaDriverGetVersion(int* version) {
  *version = kCudaVersion;
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kCudaVersion;
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:00:04.0");
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  *value = attribute(which);
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit) {
  *value = 0;
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  *pool = static_cast<cudaMemPool_t>(new_handle());
  return cudaSuccess;
}

#undef cudaGetDeviceProperties
PHANTOM_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  const Card c = card();
  cudaDeviceProp& p = *properties;
  std::memset(&p, 0, sizeof p);
  std::snprintf(p.name, sizeof p.name, "%s", c.name);
  p.major = c.major;
  p.minor = c.minor;
  p.multiProcessorCount = c.multiprocessors;
  p.unifiedAddressing = p.managedMemory = p.concurrentKernels = p.cooperativeLaunch = p.concurrentManagedAccess = 1;
  p.asyncEngineCount = 3;
  fill_limits(p);
  fill_memory(p, c);
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp* properties, int device) {
  return cudaGetDeviceProperties(properties, device);
}

PHANTOM_API cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
PHANTOM_API cudaError_t cudaPeekAtLastError() { return last_error; }
PHANTOM_API const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaSuccess) return "no error";
  return error == cudaErrorMemoryAllocation ? "out of memory" : "error of the phantom card";
}
PHANTOM_API const char* cudaGetErrorName(cudaError_t error) {
  if (error == cudaSuccess) return "cudaSuccess";
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorUnknown";
}

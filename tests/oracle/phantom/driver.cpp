// The driver interface: contexts, virtual memory (expandable segments), modules and launches of Triton's kernels.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "api.h"
#include "card.h"
#include "store.h"

using namespace phantom;

namespace {

constexpr std::size_t kGranule = std::size_t{2} << 20;

CUcontext only_context() { return reinterpret_cast<CUcontext>(0x77); }

// Sizes of physical allocations, by their handle.
Ranges& physical() {
  static auto* const kRanges = new Ranges;
  return *kRanges;
}

const void* address(CUdeviceptr pointer) { return reinterpret_cast<const void*>(pointer); }

}  // namespace

PHANTOM_API CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
PHANTOM_API CUresult cuDriverGetVersion(int* version) {
  *version = kCudaVersion;
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuDeviceGet(CUdevice* device, int) {
  *device = 0;
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuDeviceGetName(char* text, int size, CUdevice) {
  std::snprintf(text, static_cast<std::size_t>(size), "%s", card().name);
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) {
  *bytes = card().bytes;
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  *value = attribute(which);
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice) {
  std::memset(uuid, 7, sizeof *uuid);
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = only_context();
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }
PHANTOM_API CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = only_context();
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
PHANTOM_API CUresult cuCtxPushCurrent_v2(CUcontext) { return CUDA_SUCCESS; }
PHANTOM_API CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (context != nullptr) *context = only_context();
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuStreamGetCtx(CUstream, CUcontext* context) {
  *context = only_context();
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS ? "no error" : "error of the phantom driver";
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR_UNKNOWN";
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp*,
                                                   CUmemAllocationGranularity_flags) {
  *bytes = kGranule;
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuMemAddressReserve(CUdeviceptr* out, std::size_t bytes, std::size_t, CUdeviceptr,
                                         unsigned long long) {
  void* begin = reserve_addresses(bytes);
  if (begin == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  device_ranges().add(begin, bytes);
  *out = reinterpret_cast<CUdeviceptr>(begin);
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuMemAddressFree(CUdeviceptr begin, std::size_t bytes) {
  device_ranges().remove(address(begin));
  unmap(reinterpret_cast<void*>(begin), bytes);
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuMemCreate(CUmemGenericAllocationHandle* out, std::size_t bytes, const CUmemAllocationProp*,
                                 unsigned long long) {
  if (!charge(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = reinterpret_cast<CUmemGenericAllocationHandle>(new_handle());
  physical().add(reinterpret_cast<void*>(*out), bytes);
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  give_back(physical().remove(reinterpret_cast<void*>(handle)));
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuMemMap(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long) {
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuMemUnmap(CUdeviceptr, std::size_t) { return CUDA_SUCCESS; }
PHANTOM_API CUresult cuMemSetAccess(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) {
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuMemGetAddressRange_v2(CUdeviceptr* begin, std::size_t* bytes, CUdeviceptr pointer) {
  std::uintptr_t first = 0;
  std::size_t size = 0;
  if (!device_ranges().find(address(pointer), first, size)) return CUDA_ERROR_INVALID_VALUE;
  if (begin != nullptr) *begin = first;
  if (bytes != nullptr) *bytes = size;
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuPointerGetAttribute(void* value, CUpointer_attribute which, CUdeviceptr pointer) {
  const bool device = device_ranges().contains(address(pointer));
  if (which == CU_POINTER_ATTRIBUTE_DEVICE_POINTER) {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *static_cast<CUdeviceptr*>(value) = pointer;
    return CUDA_SUCCESS;
  }
  *static_cast<unsigned*>(value) = which != CU_POINTER_ATTRIBUTE_MEMORY_TYPE ? 0
                                   : device                                  ? CU_MEMORYTYPE_DEVICE
                                                                             : CU_MEMORYTYPE_HOST;
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuModuleLoadData(CUmodule* module, const void*) {
  *module = static_cast<CUmodule>(new_handle());
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return cuModuleLoadData(module, image);
}
PHANTOM_API CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }
PHANTOM_API CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char*) {
  *function = static_cast<CUfunction>(new_handle());
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuModuleGetGlobal_v2(CUdeviceptr* begin, std::size_t* bytes, CUmodule, const char*) {
  *begin = reinterpret_cast<CUdeviceptr>(new_handle());
  if (bytes != nullptr) *bytes = 8;
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction) {
  *value = which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : which == CU_FUNC_ATTRIBUTE_NUM_REGS ? 32 : 0;
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
PHANTOM_API CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
PHANTOM_API CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                    CUstream, void**, void**) {
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuLaunchKernelEx(const CUlaunchConfig*, CUfunction, void**, void**) { return CUDA_SUCCESS; }
PHANTOM_API CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig*) {
  *clusters = 1;
  return CUDA_SUCCESS;
}

PHANTOM_API int phantom_nothing() { return 0; }

#undef cuGetProcAddress
PHANTOM_API CUresult cuGetProcAddress_v2(const char* name, void** out, int, cuuint64_t,
                                         CUdriverProcAddressQueryResult* status) {
  void* found = dlsym(RTLD_DEFAULT, (std::string(name) + "_v2").c_str());
  if (found == nullptr) found = dlsym(RTLD_DEFAULT, name);
  *out = found != nullptr ? found : reinterpret_cast<void*>(phantom_nothing);
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}
PHANTOM_API CUresult cuGetProcAddress(const char* name, void** out, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(name, out, version, flags, nullptr);
}
PHANTOM_API cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** out, unsigned, unsigned long long,
                                                         cudaDriverEntryPointQueryResult* status) {
  cuGetProcAddress_v2(name, out, 0, 0, nullptr);
  if (status != nullptr) *status = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaGetDriverEntryPoint(const char* name, void** out, unsigned long long flags,
                                                cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(name, out, 0, flags, status);
}

// Streams, events and kernels: all work is done at once, since none is done.
#include <cstring>

#include "api.h"
#include "card.h"
#include "store.h"

using namespace phantom;

namespace {

cudaError_t make_stream(cudaStream_t* stream) {
  *stream = static_cast<cudaStream_t>(new_handle());
  return cudaSuccess;
}

cudaError_t make_event(cudaEvent_t* event) {
  *event = static_cast<cudaEvent_t>(new_handle());
  return cudaSuccess;
}

cudaError_t no_capture(cudaStreamCaptureStatus* status, unsigned long long* id) {
  *status = cudaStreamCaptureStatusNone;
  if (id != nullptr) *id = 0;
  return cudaSuccess;
}

}  // namespace

PHANTOM_API cudaError_t cudaStreamCreate(cudaStream_t* stream) { return make_stream(stream); }
PHANTOM_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return make_stream(stream); }
PHANTOM_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return make_stream(stream);
}
PHANTOM_API cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) {
  *priority = 0;
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return no_capture(status, nullptr);
}
#if CUDART_VERSION >= 13000
PHANTOM_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status, unsigned long long* id,
                                                 cudaGraph_t*, const cudaGraphNode_t**, const cudaGraphEdgeData**,
                                                 std::size_t*) {
  return no_capture(status, id);
}
#else
PHANTOM_API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t, cudaStreamCaptureStatus* status,
                                                    unsigned long long* id, cudaGraph_t*, const cudaGraphNode_t**,
                                                    std::size_t*) {
  return no_capture(status, id);
}
#endif
PHANTOM_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t call, void* data, unsigned) {
  call(stream, cudaSuccess, data);
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t call, void* data) {
  call(data);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaEventCreate(cudaEvent_t* event) { return make_event(event); }
PHANTOM_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return make_event(event); }
PHANTOM_API cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t, cudaStream_t, unsigned) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaEventElapsedTime_v2(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;
  return cudaSuccess;
}

// Anything but success here makes the compiler's launch stub leave the launch out.
PHANTOM_API cudaError_t __cudaPushCallConfiguration(...) { return cudaErrorNotReady; }
PHANTOM_API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  *grid = *block = dim3(1);
  *shared = 0;
  *static_cast<void**>(stream) = nullptr;
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return cudaSuccess;
}
PHANTOM_API cudaError_t __cudaLaunchKernel(...) { return cudaSuccess; }
PHANTOM_API cudaError_t __cudaGetKernel(void** kernel, const void*) {
  *kernel = new_handle();
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaLaunchCooperativeKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return cudaSuccess;
}

PHANTOM_API void** __cudaRegisterFatBinary(void*) {
  static void* registered = nullptr;
  return &registered;
}
PHANTOM_API void __cudaRegisterFatBinaryEnd(void**) {}
PHANTOM_API void __cudaUnregisterFatBinary(void**) {}
PHANTOM_API void __cudaRegisterFunction(...) {}
PHANTOM_API void __cudaRegisterVar(...) {}
PHANTOM_API void __cudaRegisterManagedVar(...) {}
PHANTOM_API char __cudaInitModule(void**) { return 1; }

PHANTOM_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void*) {
  std::memset(out, 0, sizeof *out);
  const Card c = card();
  out->maxThreadsPerBlock = 1024;
  out->numRegs = 32;
  out->ptxVersion = out->binaryVersion = 10 * c.major + c.minor;
  out->maxDynamicSharedSizeBytes = static_cast<int>(c.shared_optin);
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
PHANTOM_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, std::size_t) {
  *blocks = 2;
  return cudaSuccess;
}
PHANTOM_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int,
                                                                               std::size_t, unsigned) {
  *blocks = 2;
  return cudaSuccess;
}

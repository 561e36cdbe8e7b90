// What every file of exported CUDA functions needs. Parameters that nobody reads have no names.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#define PHANTOM_API extern "C" __attribute__((visibility("default")))

namespace phantom {

// The library answers for the CUDA release whose headers it was built with.
inline constexpr int kCudaVersion = CUDART_VERSION >= 13000 ? 13020 : CUDART_VERSION;

// Remembers the error for cudaGetLastError and returns it.
cudaError_t fail(cudaError_t error);

}  // namespace phantom

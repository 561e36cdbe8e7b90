// The parts of cuBLAS, cuDNN and NCCL whose answers PyTorch reads. All other functions of theirs return 0 (build.sh).
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "api.h"
#include "store.h"

using namespace phantom;

namespace {

constexpr std::size_t kDescription = 512;  // more than any description of cuBLASLt

int make_description(void** out) {
  *out = std::calloc(1, kDescription);
  return 0;
}

int drop_description(void* description) {
  std::free(description);
  return 0;
}

int make_handle(void** out) {
  *out = new_handle();
  return 0;
}

}  // namespace

PHANTOM_API int cublasCreate_v2(void** handle) { return make_handle(handle); }
PHANTOM_API int cublasLtCreate(void** handle) { return make_handle(handle); }
PHANTOM_API int cublasGetMathMode(void*, int* mode) {
  *mode = 0;
  return 0;
}
PHANTOM_API int cublasGetPointerMode_v2(void*, int* mode) {
  *mode = 0;
  return 0;
}
PHANTOM_API int cublasGetVersion_v2(void*, int* version) {
  *version = 10 * kCudaVersion;
  return 0;
}
PHANTOM_API std::size_t cublasLtGetVersion() { return 10 * kCudaVersion; }
PHANTOM_API std::size_t cublasLtGetCudartVersion() { return kCudaVersion; }
PHANTOM_API int cublasLtMatmulDescCreate(void** out, int, int) { return make_description(out); }
PHANTOM_API int cublasLtMatmulDescDestroy(void* description) { return drop_description(description); }
PHANTOM_API int cublasLtMatmulPreferenceCreate(void** out) { return make_description(out); }
PHANTOM_API int cublasLtMatmulPreferenceDestroy(void* description) { return drop_description(description); }
PHANTOM_API int cublasLtMatrixLayoutCreate(void** out, int, std::uint64_t, std::uint64_t, std::int64_t) {
  return make_description(out);
}
PHANTOM_API int cublasLtMatrixLayoutDestroy(void* description) { return drop_description(description); }
PHANTOM_API int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int, void*,
                                               int* found) {
  *found = 1;
  return 0;
}

PHANTOM_API int cudnnCreate(void** handle) { return make_handle(handle); }
PHANTOM_API std::size_t cudnnGetVersion() { return kCudaVersion >= 13000 ? 91400 : 90100; }
PHANTOM_API std::size_t cudnnGetCudartVersion() { return kCudaVersion; }
PHANTOM_API const char* cudnnGetErrorString(int) { return "error of the phantom cuDNN"; }

PHANTOM_API int ncclGetVersion(int* version) {
  *version = 22800;
  return 0;
}
PHANTOM_API const char* ncclGetErrorString(int) { return "error of the phantom NCCL"; }

#include "estimate/runtime_lines.h"

namespace membill {

// Lazily loaded kernels (PyTorch built for CUDA 11.7 or later). Seen: 256 MiB (RTX 3090, torch 2.7), 426 (RTX 6000 Ada, torch 2.10),
// 481 (A100 80GB, torch 2.1), 563 (a distributed test before its first collective); kernels loaded later add up to 450 MiB.
Range context_bytes(const Hardware&) { return {(250_MiB).count(), (450_MiB).count(), (1010_MiB).count()}; }

}  // namespace membill

// The card that the phantom library pretends to be.
#pragma once

#include <cstddef>

namespace phantom {

struct Card {
  const char* key;   // PHANTOM_GPU
  const char* name;  // as the driver prints it
  int major, minor;  // compute capability
  int multiprocessors;
  std::size_t bytes;         // total that cudaMemGetInfo gives
  std::size_t shared_optin;  // shared memory of a block, at most
  std::size_t level2_cache;
};

// PHANTOM_GPU (a100-80gb when not set) with PHANTOM_BYTES, or the last set_capacity(), as its memory.
[[nodiscard]] Card card();
// 0: the card's own memory again.
void set_capacity(std::size_t bytes);
// PHANTOM_CONTEXT: bytes that the context holds; 0 when not set.
[[nodiscard]] std::size_t context_bytes();
// A CUDA or driver attribute; 0 for those that nobody asks for.
[[nodiscard]] int attribute(int which);

}  // namespace phantom

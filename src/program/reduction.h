// What PyTorch's reduction kernel takes for a moment.
#pragma once

#include "program/recorder.h"

namespace membill {

// x.sum(0) of `rows` x `width` elements: where too few blocks would be busy, several work on the same outputs and leave partial sums in
// a buffer that has a place for each thread (aten/src/ATen/native/cuda/Reduce.cuh setReduceConfig, global_memory_size; torch 2.15).
// The result is allocated before, by the caller.
void use_reduction_scratch(Recorder& recorder, const Size& rows, const Size& width);

}  // namespace membill

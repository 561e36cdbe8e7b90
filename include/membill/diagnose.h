// Out-of-memory messages in a log: what was asked for, what was free, and whose fault it was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "membill/estimate.h"

namespace membill {

enum class OutOfMemoryKind : std::uint8_t {
  card,         // PyTorch's caching allocator: CUDA or HIP
  ascend,       // torch_npu's
  bare,         // the driver's own error without figures ("CUDA error: out of memory")
  library,      // cuBLAS, cuDNN, NCCL or HCCL, whose buffers lie beside the allocator's
  host,         // host memory: DefaultCPUAllocator
  host_killed,  // the kernel ended a process (exit code -9)
};

// One message. Sizes in bytes, as precise as the message writes them; empty: not said.
struct OutOfMemoryEvent {
  OutOfMemoryKind kind = OutOfMemoryKind::card;
  std::size_t line = 0;              // of the log, from 1
  std::optional<std::int64_t> card;  // its number
  std::optional<std::int64_t> asked, total, free, allocated;
  std::optional<std::int64_t> reserved;  // in all, allocated included
  std::optional<std::int64_t> in_use;    // by this process, memory outside of PyTorch included
  std::optional<std::int64_t> others;    // by other processes, as far as the message names them
  std::optional<std::int64_t> allowed;   // a limit of the process below the card's
};

// Every message of the text, in order; one that is repeated word for word is told once.
[[nodiscard]] std::vector<OutOfMemoryEvent> find_out_of_memory(std::string_view log);

enum class OutOfMemoryCause : std::uint8_t {
  capacity,       // the tensors alone need more than there is
  fragmentation,  // enough is reserved and unused, but not in one piece
  other_process,  // somebody else holds what is missing
  limit,          // a limit of the process, not the card
  leak,           // each message of the log holds more than the one before
  host,           // host memory
  unknown,        // the message has no figures
};
[[nodiscard]] std::string_view cause_word(OutOfMemoryCause cause);

struct Diagnosis {
  OutOfMemoryEvent event;
  OutOfMemoryCause cause = OutOfMemoryCause::unknown;
  std::string because;  // one sentence with the figures
};
// `all`: every event of the log, `number` the one in question.
[[nodiscard]] Diagnosis diagnose(const std::vector<OutOfMemoryEvent>& all, std::size_t number);

// A tensor of a job's billed step whose block is as large as what was asked for.
struct SizeMatch {
  std::string label;   // "logits"
  std::string item;    // id of the bill: "loss.logits"
  std::string moment;  // of the step
  std::int64_t bytes = 0;
};
// Each kind of tensor once, in the order of the step. `asked` was rounded to hundredths of its unit by the message.
[[nodiscard]] std::vector<SizeMatch> tensors_of_size(const ModelSpec& model, const TrainingPlan& plan,
                                                     const Hardware& hardware, std::int64_t asked);

// What to do first, what then; each with the variable or key to set.
[[nodiscard]] std::vector<std::string> remedies_in_order(const Diagnosis& diagnosis);

}  // namespace membill

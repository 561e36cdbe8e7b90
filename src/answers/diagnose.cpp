#include "membill/diagnose.h"

#include <algorithm>

#include "base/gib_text.h"
#include "membill/units.h"
#include "trace/allocator_settings.h"

namespace membill {
namespace {

constexpr std::int64_t kContextAtMost = (std::int64_t{3} << 30) / 2;  // a process's context and kernels stay below
// Of a card: what cut-off ends of blocks take on any that is full.
constexpr std::int64_t kUsualRemainder = 100;

std::string size_words(std::optional<std::int64_t> bytes) {
  if (!bytes) return "an unknown size";
  const std::int64_t mib = (*bytes + (std::int64_t{1} << 19)) >> 20;
  if (mib < 1024) return std::to_string(mib) + " MiB";
  return gib_text(*bytes);
}

// Bytes of the card that neither this process nor the free memory accounts for.
std::int64_t held_by_others(const OutOfMemoryEvent& event) {
  if (event.others) return *event.others;
  if (!event.total || !event.free) return 0;
  if (event.in_use) return *event.total - *event.free - *event.in_use;
  if (!event.reserved) return 0;
  return *event.total - *event.free - *event.reserved - kContextAtMost;
}

// What the allocator asks the driver for to serve a request.
std::int64_t segment_of(std::int64_t asked) { return segment_bytes_for({}, rounded_request({}, asked)); }

// Whether what others hold is what is missing, rather than the unused part of the cache.
bool is_held_by_others(const OutOfMemoryEvent& event, std::int64_t missing, std::int64_t unused) {
  const std::int64_t others = held_by_others(event);
  return others > 0 && others >= missing && (unused < segment_of(*event.asked) || others >= unused);
}

// Whether the cache has room that the request did not find in one piece.
bool is_in_pieces(const OutOfMemoryEvent& event, std::int64_t unused) {
  const std::int64_t card = event.total.value_or(event.reserved.value_or(0));
  return unused > 0 && unused >= card / kUsualRemainder && checked_add(unused, event.free.value_or(0)) >= *event.asked;
}

// Whether the messages of the same card hold more and more, at least three of them.
bool grows(const std::vector<OutOfMemoryEvent>& all, std::size_t number) {
  std::int64_t last = -1;
  std::size_t count = 0;
  for (std::size_t i = 0; i <= number; ++i) {
    if (all[i].card != all[number].card || !all[i].allocated) continue;
    if (*all[i].allocated <= last) return false;
    last = *all[i].allocated;
    ++count;
  }
  return count >= 3;
}

}  // namespace

std::string_view cause_word(OutOfMemoryCause cause) {
  switch (cause) {
    case OutOfMemoryCause::capacity: return "capacity";
    case OutOfMemoryCause::fragmentation: return "fragmentation";
    case OutOfMemoryCause::other_process: return "other process";
    case OutOfMemoryCause::limit: return "limit";
    case OutOfMemoryCause::leak: return "leak";
    case OutOfMemoryCause::host: return "host memory";
    case OutOfMemoryCause::unknown: break;
  }
  return "unknown";
}

Diagnosis diagnose(const std::vector<OutOfMemoryEvent>& all, std::size_t number) {
  Diagnosis result;
  result.event = all.at(number);
  const OutOfMemoryEvent& event = result.event;
  const std::int64_t unused = event.reserved && event.allocated ? *event.reserved - *event.allocated : 0;
  const std::int64_t missing = event.asked ? segment_of(*event.asked) - event.free.value_or(0) : 0;
  if (event.kind == OutOfMemoryKind::host || event.kind == OutOfMemoryKind::host_killed) {
    result.cause = OutOfMemoryCause::host;
    result.because = event.kind == OutOfMemoryKind::host
                         ? "host memory had no room for " + size_words(event.asked)
                         : "the kernel ended a process (signal 9): as a rule host memory ran out";
  } else if (event.kind == OutOfMemoryKind::library) {
    result.cause = OutOfMemoryCause::capacity;
    result.because =
        "a library (cuBLAS, cuDNN, NCCL) found no memory for its own buffers, which lie beside PyTorch's cache: the "
        "card is full";
  } else if (!event.asked) {
    result.because =
        event.kind == OutOfMemoryKind::bare
            ? "the driver itself had no memory left, and its message has no figures: another process holds the card, "
              "or this one's cache does"
            : "the message lacks the size that was asked for, or no card has that much";
  } else if (event.allowed && event.total && *event.allowed < *event.total) {
    result.cause = OutOfMemoryCause::limit;
    result.because = "the process may use " + size_words(event.allowed) + " of " + size_words(event.total);
  } else if (grows(all, number)) {
    result.cause = OutOfMemoryCause::leak;
    result.because =
        "each message of the log holds more than the one before: something keeps tensors from step to step";
  } else if (event.free && missing <= 0) {
    result.cause = OutOfMemoryCause::fragmentation;
    result.because = size_words(event.asked) + " were asked for and " + size_words(event.free) +
                     " free: not in one piece, or held back by a limit outside of PyTorch (a container, WSL, MIG)";
  } else if (is_held_by_others(event, missing, unused)) {
    result.cause = OutOfMemoryCause::other_process;
    result.because = "other processes hold " + size_words(held_by_others(event)) + " of the card, more than the " +
                     size_words(missing) + " that were missing";
  } else if (is_in_pieces(event, unused)) {
    result.cause = OutOfMemoryCause::fragmentation;
    result.because = size_words(unused) + " were reserved and unused and " + size_words(event.free) +
                     " free, in pieces of which none held " + size_words(event.asked);
  } else {
    result.cause = OutOfMemoryCause::capacity;
    result.because = size_words(event.asked) + " were asked for, " + size_words(event.free) + " were free" +
                     (event.allocated ? ", tensors held " + size_words(event.allocated) : std::string()) +
                     (unused > 0 ? "; the " + size_words(unused) + " of unused cache are no help" : std::string());
  }
  return result;
}

std::vector<std::string> remedies_in_order(const Diagnosis& diagnosis) {
  const bool ascend = diagnosis.event.kind == OutOfMemoryKind::ascend;
  const std::string expandable =
      ascend ? "set PYTORCH_NPU_ALLOC_CONF=expandable_segments:True"
             : "set PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF before torch 2.9)";
  const std::vector<std::string> less{
      "batch 1 and accumulate more: the same tokens a step",
      "checkpointing full: one layer's activations at a time",
      "a fused loss (liger), attention sdpa or flash: no whole logits copies, no square scores",
      "optimizer adamw_8bit, or fused instead of foreach",
      "method lora, or qlora for a 4-bit base",
      "engine deepspeed with sharding.zero 2 or 3, or fsdp2, over more cards; offload the optimizer",
      "a shorter seq",
      "a larger card: membill plan names the smallest that does"};
  std::vector<std::string> list;
  switch (diagnosis.cause) {
    case OutOfMemoryCause::fragmentation:
      list = {expandable, "pad to a few fixed lengths: sequences of every length leave pieces of every size",
              "membill estimate --expandable-segments says whether that is enough"};
      break;
    case OutOfMemoryCause::other_process:
      list = {std::string(ascend ? "npu-smi info" : "nvidia-smi") + " names the process; end it, or take another card",
              "a run that crashed may have left workers behind", "membill check --others-use SIZE counts it in"};
      break;
    case OutOfMemoryCause::limit:
      list = {"raise torch.cuda.set_per_process_memory_fraction, or the share of the card's partition"};
      break;
    case OutOfMemoryCause::leak:
      list = {"keep loss.item() or loss.detach(), never the loss itself", "clear lists of outputs after each step",
              "evaluate under torch.no_grad()"};
      break;
    case OutOfMemoryCause::host:
      list = {"load with low_cpu_mem_usage, one rank at a time", "no optimizer offload, or more host memory",
              "fewer data-loader workers"};
      return list;
    case OutOfMemoryCause::unknown:
      list = {std::string(ascend ? "npu-smi info" : "nvidia-smi") + " shows who holds the card"};
      break;
    case OutOfMemoryCause::capacity: break;
  }
  list.insert(list.end(), less.begin(), less.end());
  if (diagnosis.cause == OutOfMemoryCause::capacity) list.insert(list.begin() + 3, expandable);
  if (diagnosis.event.kind == OutOfMemoryKind::library)
    list.insert(list.begin(),
                "leave a few hundred MiB free (membill check --margin 1GiB): these buffers are taken late");
  return list;
}

}  // namespace membill

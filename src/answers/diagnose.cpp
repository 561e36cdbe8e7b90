#include "membill/diagnose.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "membill/units.h"

namespace membill {
namespace {

constexpr std::size_t kLongestMessage = 1200;
constexpr std::int64_t kContextAtMost = (std::int64_t{3} << 30) / 2;  // a process's context and kernels stay below

// The size that ends right before `at` ("23.69 GiB" of "(GPU 0; 23.69 GiB total capacity").
std::optional<std::int64_t> size_before(std::string_view text, std::size_t at) {
  const std::string_view left = trim(text.substr(0, at));
  const std::size_t unit = left.rfind(' ');
  if (unit == std::string_view::npos || unit == 0) return std::nullopt;
  const std::size_t digits = left.find_last_not_of("0123456789.", unit - 1);
  Bytes bytes;
  std::string why;
  std::string written(left.substr(digits == std::string_view::npos ? 0 : digits + 1));
  if (written.substr(written.find(' ') + 1) == "bytes") written = written.substr(0, written.find(' ')) + " B";
  return parse_bytes(written, bytes, why) ? std::optional(bytes.count()) : std::nullopt;
}

// The size that follows `at`.
std::optional<std::int64_t> size_after(std::string_view text, std::size_t at) {
  text = trim(text.substr(std::min(at, text.size())));
  const std::size_t digits = text.find_first_not_of("0123456789.");
  if (digits == 0 || digits == std::string_view::npos) return std::nullopt;
  const std::string_view rest = trim(text.substr(digits));
  std::string unit(rest.substr(0, rest.find_first_of(" .,;)\n\r")));
  if (unit == "bytes") unit = "B";
  Bytes bytes;
  std::string why;
  std::string_view number = text.substr(0, digits);
  return parse_bytes(std::string(number) + " " + unit, bytes, why) ? std::optional(bytes.count()) : std::nullopt;
}

// The size before the first of `phrases` that occurs.
std::optional<std::int64_t> size_of(std::string_view text, std::initializer_list<std::string_view> phrases) {
  for (const std::string_view phrase : phrases)
    if (const std::size_t at = text.find(phrase); at != std::string_view::npos) return size_before(text, at);
  return std::nullopt;
}

std::optional<std::int64_t> number_after(std::string_view text, std::string_view phrase) {
  const std::size_t at = text.find(phrase);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = trim(text.substr(at + phrase.size()));
  std::int64_t number = 0;
  const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

// "Process 4711 has 12.00 GiB memory in use.", as often as it stands there.
std::optional<std::int64_t> other_processes(std::string_view text) {
  std::optional<std::int64_t> sum;
  for (std::size_t at = text.find("Process "); at != std::string_view::npos; at = text.find("Process ", at + 1)) {
    const std::size_t has = text.find(" has ", at);
    if (has == std::string_view::npos || has > at + 24) continue;
    if (const auto bytes = size_after(text, has + 5)) sum = checked_add(sum.value_or(0), *bytes);
  }
  return sum;
}

// Both generations of the caching allocator's message, and torch_npu's copy of the first.
OutOfMemoryEvent read_allocator_message(std::string_view text, OutOfMemoryKind kind) {
  OutOfMemoryEvent event;
  event.kind = kind;
  if (const std::size_t at = text.find("Tried to allocate "); at != std::string_view::npos)
    event.asked = size_after(text, at + 18);
  event.card = number_after(text, kind == OutOfMemoryKind::ascend ? "(NPU " : "GPU ");
  event.total = size_of(text, {" total capacity", " total capacty"});
  if (!event.total)
    for (const std::string_view phrase : {"has a total capacity of ", "has a total capacty of "})
      if (const std::size_t at = text.find(phrase); at != std::string_view::npos)
        event.total = size_after(text, at + phrase.size());
  event.free = size_of(text, {" is free", " free;", " free"});
  event.allocated = size_of(text, {" already allocated", " is allocated by PyTorch"});
  event.reserved = size_of(text, {" reserved in total by PyTorch"});
  // Releases before 1.4 told the unused part of the cache.
  const auto unused = size_of(text, {" is reserved by PyTorch but unallocated", " cached)", " cached;"});
  if (unused && event.allocated) event.reserved = checked_add(*event.allocated, *unused);
  if (const std::size_t at = text.find("this process has "); at != std::string_view::npos)
    event.in_use = size_after(text, at + 17);
  event.allowed = size_of(text, {" allowed"});
  event.others = other_processes(text);
  // In the newest text a line "Process N has" may be this process itself, when it is told apart no further.
  if (event.others && !event.in_use && event.allocated && *event.others >= *event.allocated) {
    event.in_use = event.others;
    event.others.reset();
  }
  return event;
}

struct Opening {
  std::string_view words;
  OutOfMemoryKind kind;
};
constexpr std::array<Opening, 24> kOpenings{{
    {"CUDA out of memory.", OutOfMemoryKind::card},
    {"HIP out of memory.", OutOfMemoryKind::card},
    {"XPU out of memory.", OutOfMemoryKind::card},
    {"NPU out of memory.", OutOfMemoryKind::ascend},
    {"CUDA error: out of memory", OutOfMemoryKind::bare},
    {"CUDA driver error: out of memory", OutOfMemoryKind::bare},        // expandable segments
    {"cuda runtime error (2) : out of memory", OutOfMemoryKind::bare},  // torch before 1.0
    {"HIP error: out of memory", OutOfMemoryKind::bare},
    {"hipErrorOutOfMemory", OutOfMemoryKind::bare},
    {"cudaErrorMemoryAllocation", OutOfMemoryKind::bare},
    {"ACL_ERROR_RT_MEMORY_ALLOCATION", OutOfMemoryKind::bare},
    {"error code is 207001", OutOfMemoryKind::bare},  // the same by its number
    {"CUBLAS_STATUS_ALLOC_FAILED", OutOfMemoryKind::library},
    {"CUDNN_STATUS_ALLOC_FAILED", OutOfMemoryKind::library},
    {"Cuda failure 2 'out of memory'", OutOfMemoryKind::library},  // NCCL
    {"Cuda failure 'out of memory'", OutOfMemoryKind::library},
    {"DefaultCPUAllocator: can't allocate memory", OutOfMemoryKind::host},
    {"DefaultCPUAllocator: not enough memory", OutOfMemoryKind::host},
    {"numpy.core._exceptions._ArrayMemoryError", OutOfMemoryKind::host},
    {"Cannot allocate memory (12)", OutOfMemoryKind::host},         // unable to mmap
    {"exits with return code = -9", OutOfMemoryKind::host_killed},  // deepspeed
    {"exitcode: -9", OutOfMemoryKind::host_killed},                 // torch.distributed.elastic
    {"Signal 9 (SIGKILL)", OutOfMemoryKind::host_killed},
    {"oom-kill", OutOfMemoryKind::host_killed},  // slurmstepd and the kernel
}};

OutOfMemoryEvent read_message(std::string_view text, OutOfMemoryKind kind) {
  if (kind == OutOfMemoryKind::card || kind == OutOfMemoryKind::ascend) return read_allocator_message(text, kind);
  OutOfMemoryEvent event;
  event.kind = kind;
  for (const std::string_view words : {"tried to allocate ", "Unable to allocate "})
    if (const std::size_t at = text.find(words); at != std::string_view::npos && kind == OutOfMemoryKind::host)
      event.asked = size_after(text, at + words.size());
  return event;
}

std::string size_words(std::optional<std::int64_t> bytes) {
  if (!bytes) return "an unknown size";
  const std::int64_t mib = (*bytes + (std::int64_t{1} << 19)) >> 20;
  if (mib < 1024) return std::to_string(mib) + " MiB";
  const std::int64_t hundredths = (*bytes * 100 + (std::int64_t{1} << 29)) >> 30;
  const std::string fraction = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + (fraction.size() < 2 ? "0" : "") + fraction + " GiB";
}

// Bytes of the card that neither this process nor the free memory accounts for.
std::int64_t held_by_others(const OutOfMemoryEvent& event) {
  if (event.others) return *event.others;
  if (!event.total || !event.free) return 0;
  if (event.in_use) return *event.total - *event.free - *event.in_use;
  if (!event.reserved) return 0;
  return *event.total - *event.free - *event.reserved - kContextAtMost;
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

std::vector<OutOfMemoryEvent> find_out_of_memory(std::string_view log) {
  std::vector<OutOfMemoryEvent> events;
  std::vector<std::string_view> seen;
  std::size_t line = 1, counted = 0;
  for (std::size_t at = 0; at < log.size();) {
    const Opening* first = nullptr;
    std::size_t where = std::string_view::npos;
    for (const Opening& opening : kOpenings) {
      const std::size_t found = log.find(opening.words, at);
      if (found >= where) continue;
      where = found;
      first = &opening;
    }
    if (first == nullptr) break;
    line += static_cast<std::size_t>(std::count(log.begin() + static_cast<std::ptrdiff_t>(counted),
                                                log.begin() + static_cast<std::ptrdiff_t>(where), '\n'));
    counted = where;
    std::string_view text = log.substr(where, kLongestMessage);
    text = text.substr(0, text.find("\n\n"));
    for (const Opening& opening : kOpenings)
      if (const std::size_t next = text.find(opening.words, 1); next != std::string_view::npos)
        text = text.substr(0, next);
    const std::string_view whole = text.substr(0, text.find('\n'));
    if (std::find(seen.begin(), seen.end(), whole) == seen.end()) {
      seen.push_back(whole);
      events.push_back(read_message(text, first->kind));
      events.back().line = line;
    }
    at = where + first->words.size();
  }
  return events;
}

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
  const std::int64_t missing = event.asked ? *event.asked - event.free.value_or(0) : 0;
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
        "the driver itself had no memory left, and its message has no figures: another process holds the card, or "
        "this one's cache does";
  } else if (event.allowed && event.total && *event.allowed < *event.total) {
    result.cause = OutOfMemoryCause::limit;
    result.because = "the process may use " + size_words(event.allowed) + " of " + size_words(event.total);
  } else if (grows(all, number)) {
    result.cause = OutOfMemoryCause::leak;
    result.because =
        "each message of the log holds more than the one before: something keeps tensors from step to step";
  } else if (held_by_others(event) > 0 && held_by_others(event) >= missing) {
    result.cause = OutOfMemoryCause::other_process;
    result.because = "other processes hold " + size_words(held_by_others(event)) + " of the card, more than the " +
                     size_words(std::max<std::int64_t>(0, missing)) + " that were missing";
  } else if (unused > 0 && checked_add(unused, event.free.value_or(0)) >= *event.asked) {
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

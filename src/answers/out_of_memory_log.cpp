// Finds the out-of-memory messages of a log.
#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "answers/out_of_memory_text.h"
#include "membill/diagnose.h"
#include "membill/units.h"

namespace membill {
namespace {

constexpr std::size_t kLongestMessage = 2400;
constexpr std::size_t kSameError = 200;  // characters within which the driver's error has its other names

struct Opening {
  std::string_view words;
  OutOfMemoryKind kind;
};
constexpr std::array kOpenings{
    Opening{"CUDA out of memory.", OutOfMemoryKind::card},
    Opening{"HIP out of memory.", OutOfMemoryKind::card},
    Opening{"XPU out of memory.", OutOfMemoryKind::card},
    Opening{"MPS backend out of memory", OutOfMemoryKind::card},
    Opening{"NPU out of memory.", OutOfMemoryKind::ascend},
    Opening{"CUDA error: out of memory", OutOfMemoryKind::bare},
    Opening{"CUDA driver error: out of memory", OutOfMemoryKind::bare},        // expandable segments
    Opening{"cuda runtime error (2) : out of memory", OutOfMemoryKind::bare},  // torch before 1.0
    Opening{"HIP error: out of memory", OutOfMemoryKind::bare},
    Opening{"hipErrorOutOfMemory", OutOfMemoryKind::bare},
    Opening{"cudaErrorMemoryAllocation", OutOfMemoryKind::bare},
    Opening{"ACL_ERROR_RT_MEMORY_ALLOCATION", OutOfMemoryKind::bare},
    Opening{"error code is 207001", OutOfMemoryKind::bare},  // the same by its number
    Opening{"CUBLAS_STATUS_ALLOC_FAILED", OutOfMemoryKind::library},
    Opening{"CUDNN_STATUS_ALLOC_FAILED", OutOfMemoryKind::library},
    Opening{"Cuda failure 2 'out of memory'", OutOfMemoryKind::library},  // NCCL
    Opening{"Cuda failure 'out of memory'", OutOfMemoryKind::library},
    Opening{"DefaultCPUAllocator: can't allocate memory", OutOfMemoryKind::host},
    Opening{"DefaultCPUAllocator: not enough memory", OutOfMemoryKind::host},
    Opening{"numpy.core._exceptions._ArrayMemoryError", OutOfMemoryKind::host},
    Opening{"Cannot allocate memory (12)", OutOfMemoryKind::host},         // unable to mmap
    Opening{"exits with return code = -9", OutOfMemoryKind::host_killed},  // deepspeed
    Opening{"exitcode: -9", OutOfMemoryKind::host_killed},                 // torch.distributed.elastic
    Opening{"Signal 9 (SIGKILL)", OutOfMemoryKind::host_killed},
    Opening{"oom-kill", OutOfMemoryKind::host_killed},  // slurmstepd and the kernel
};
// What is left of a message whose first words were not copied.
constexpr std::array kHeadless{Opening{"Tried to allocate ", OutOfMemoryKind::card}};

// Both generations of the caching allocator's message, torch_npu's copy of the first, and that of Apple's backend.
OutOfMemoryEvent read_allocator_message(const BareMessage& text, OutOfMemoryKind kind) {
  OutOfMemoryEvent event;
  event.kind = kind;
  event.asked = text.size_after({"Tried to allocate "});
  event.card = text.number_after(kind == OutOfMemoryKind::ascend ? "(NPU " : "GPU ");
  event.total = text.size_before({" total capacity", " total capacty"});
  if (!event.total)
    event.total = text.size_after({"has a total capacity of ", "has a total capacty of ", "max allowed: "});
  event.free = text.size_before({" is free", " free;", " free"});
  event.allocated = text.size_before({" already allocated", " is allocated by PyTorch"});
  if (!event.allocated) event.allocated = text.size_after({"MPS allocated: "});
  event.reserved = text.size_before({" reserved in total by PyTorch"});
  // Releases before 1.4 told the unused part of the cache.
  auto unused = text.size_before({" is reserved by PyTorch but unallocated", " cached)", " cached;"});
  if (!unused) unused = text.size_after({"other allocations: "});
  if (unused && event.allocated) event.reserved = checked_add(*event.allocated, *unused);
  event.in_use = text.size_after({"this process has "});
  event.allowed = text.size_before({" allowed"});
  event.others = text.sum_of_processes();
  // In the newest text a line "Process N has" may be this process itself, when it is told apart no further.
  if (event.others && !event.in_use && event.allocated && *event.others >= *event.allocated) {
    event.in_use = event.others;
    event.others.reset();
  }
  return event;
}

OutOfMemoryEvent read_message(const BareMessage& text, OutOfMemoryKind kind) {
  if (kind == OutOfMemoryKind::card || kind == OutOfMemoryKind::ascend) return read_allocator_message(text, kind);
  OutOfMemoryEvent event;
  event.kind = kind;
  if (kind == OutOfMemoryKind::host) event.asked = text.size_after({"tried to allocate ", "Unable to allocate "});
  return event;
}

class LogReader {
 public:
  LogReader(std::string_view log, std::span<const Opening> openings) : log_(log), openings_(openings) {
    for (const Opening& opening : openings_) next_.push_back(log_.find(opening.words));
  }

  std::vector<OutOfMemoryEvent> events() && {
    while (true) {
      const auto first = std::min_element(next_.begin(), next_.end());
      if (*first == std::string_view::npos) break;
      const Opening& opening = openings_[static_cast<std::size_t>(first - next_.begin())];
      read(opening, *first);
      *first = log_.find(opening.words, *first + opening.words.size());
    }
    return std::move(events_);
  }

 private:
  void read(const Opening& opening, std::size_t where) {
    line_ += static_cast<std::size_t>(std::count(log_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                                 log_.begin() + static_cast<std::ptrdiff_t>(where), '\n'));
    counted_ = where;
    const std::string_view text = message_at(where);
    const bool goes_on = opening.kind == OutOfMemoryKind::bare && where < same_until_;
    if (opening.kind == OutOfMemoryKind::bare) same_until_ = where + kSameError;
    if (goes_on || !seen_.insert(text.substr(0, text.find('\n'))).second) return;
    const std::size_t start = log_.find_last_of("\r\n", where) + 1;  // npos + 1 is 0
    events_.push_back(read_message(BareMessage(text, log_.substr(start, where - start)), opening.kind));
    events_.back().line = line_;
  }

  // To the end of its line where the message ends there; else over the lines that follow, up to the next message.
  [[nodiscard]] std::string_view message_at(std::size_t where) const {
    std::string_view text = log_.substr(where, kLongestMessage);
    const std::string_view first_line = text.substr(0, text.find('\n'));
    for (const std::string_view last : {"by PyTorch", "unallocated", "cached)", "pool."})
      if (first_line.find(last) != std::string_view::npos && first_line.find("Tried") != std::string_view::npos)
        text = first_line;
    text = text.substr(0, text.find("\n\n"));
    for (std::size_t i = 0; i < openings_.size(); ++i) {
      const std::size_t next = text.find(openings_[i].words, 1);
      if (next != std::string_view::npos) text = text.substr(0, next);
    }
    return text;
  }

  std::string_view log_;
  std::span<const Opening> openings_;
  std::vector<std::size_t> next_;  // where each opening comes next
  std::set<std::string_view> seen_;
  std::vector<OutOfMemoryEvent> events_;
  std::size_t line_ = 1, counted_ = 0, same_until_ = 0;
};

}  // namespace

std::vector<OutOfMemoryEvent> find_out_of_memory(std::string_view log) {
  std::vector<OutOfMemoryEvent> events = LogReader(log, kOpenings).events();
  return events.empty() ? LogReader(log, kHeadless).events() : events;
}

}  // namespace membill

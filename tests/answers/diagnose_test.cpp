// Out-of-memory messages of every generation, with figures of real reports.
#include <fmt/format.h>

#include "membill/catalog.h"
#include "membill/diagnose.h"
#include "support/catch.h"

namespace membill {
namespace {

constexpr const char* kFirst =
    "RuntimeError: CUDA out of memory. Tried to allocate {} (GPU 0; {} total capacity; {} already allocated; {} free; "
    "{} reserved "
    "in total by PyTorch)";
constexpr const char* kSecond =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {}. GPU 0 has a total capacity of {} of which {} is "
    "free. "
    "Including non-PyTorch memory, this process has {} memory in use. Of the allocated memory {} is allocated by "
    "PyTorch, and {} is "
    "reserved by PyTorch but unallocated.";

// Public issues, by their ids among the outcomes that were collected; GiB, 0 where the report does not say.
struct RealReport {
  const char* id;
  double asked, total, allocated, unused, free;
};
constexpr RealReport kRealReports[] = {
    {"oom-007", 16.83, 79.33, 0, 0, 10.31},
    {"oom-037", 0.02, 24.0, 23.01, 0.118, 0},
    {"oom-065", 9.37, 139.72, 130.77, 4.76, 0.93},
    {"oom-074", 0.438, 79.2, 75.1, 0, 0.273},
    {"oom-075", 1.25, 79.1, 76.13, 0, 0.283},
    {"oom-077", 0.096, 39.59, 37.33, 0, 0.016},
    {"oom-083", 0.379, 31.75, 28.42, 0, 0.333},
    {"oom-085", 0.203, 39.41, 0, 0, 0.179},
    {"oom-086", 0.49, 39.59, 35.54, 0, 0.27},
    {"oom-087", 0.488, 7.78, 6.68, 0, 0.223},
    {"oom-105", 3.77, 79.11, 75.16, 1.27, 1.61},
    {"oom-106", 34.83, 44.55, 0, 0, 22.25},
    {"oom-111", 26.44, 60.96, 30.23, 2.85, 25.36},
    {"oom-129", 0.094, 31.75, 30.97, 0.02, 0.06},
    {"oom-136", 6.54, 80, 0, 0, 0},
};

Diagnosis only(const std::string& text) {
  const std::vector<OutOfMemoryEvent> events = find_out_of_memory(text);
  REQUIRE(events.size() == 1);
  return diagnose(events, 0);
}

std::string size(double gib) { return fmt::format("{:.2f} GiB", gib); }

double gib_of(std::optional<std::int64_t> bytes) { return bytes ? static_cast<double>(*bytes) / (1 << 30) : -1; }

}  // namespace

TEST_CASE("both generations of the allocator's message are read") {
  for (const bool first : {true, false}) {
    const std::string text =
        first ? fmt::format(kFirst, "3.77 GiB", "79.11 GiB", "75.16 GiB", "1.61 GiB", "76.43 GiB")
              : fmt::format(kSecond, "3.77 GiB", "79.11 GiB", "1.61 GiB", "77.49 GiB", "75.16 GiB", "1.27 GiB");
    const Diagnosis found = only("step 1\n" + text + "\n");
    const OutOfMemoryEvent& event = found.event;
    CHECK(event.line == 2);
    CHECK(event.card == 0);
    CHECK(fmt::format("{:.2f} {:.2f} {:.2f} {:.2f} {:.2f}", gib_of(event.asked), gib_of(event.total),
                      gib_of(event.allocated), gib_of(event.free),
                      gib_of(event.reserved)) == "3.77 79.11 75.16 1.61 76.43");
    CHECK(found.cause == OutOfMemoryCause::capacity);
  }
}

TEST_CASE("older and foreign spellings are read") {
  // pytorch/pytorch#16417: what is cached is the unused part of the cache, less than what is allocated.
  const Diagnosis first = only(
      "CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; 8.57 MiB already allocated; "
      "9.28 GiB free; "
      "4.68 MiB cached)");
  CHECK(*first.event.reserved - *first.event.allocated == 4907335);
  CHECK(only("HIP out of memory. Tried to allocate 20 bytes. GPU 0 has a total capacty of 63.98 GiB of which 0 bytes "
             "is free.")
            .event.asked == 20);
  CHECK(only("NPU out of memory. Tried to allocate 26.44 GiB (NPU 5; 60.96 GiB total capacity; 30.23 GiB already "
             "allocated; 30.23 GiB "
             "current active; 25.36 GiB free; 33.08 GiB reserved in total by PyTorch)")
            .event.card == 5);
  CHECK(only("DefaultCPUAllocator: can't allocate memory: you tried to allocate 26306674688 bytes.").event.asked ==
        26306674688);
  CHECK(only("Process 12 exits with return code = -9").cause == OutOfMemoryCause::host);
  CHECK(only("CUDA error: out of memory").cause == OutOfMemoryCause::unknown);
  CHECK(find_out_of_memory("the loss is 2.3\n").empty());
  CHECK(find_out_of_memory("CUDA out of memory. Tried to allocate ").size() == 1);
}

TEST_CASE("causes are told apart") {
  CHECK(only(fmt::format(kFirst, "500.00 MiB", "7.78 GiB", "4.68 GiB", "222.88 MiB", "6.70 GiB")).cause ==
        OutOfMemoryCause::fragmentation);
  CHECK(only(fmt::format(kFirst, "20.00 MiB", "23.69 GiB", "4.68 GiB", "12.00 MiB", "4.80 GiB")).cause ==
        OutOfMemoryCause::other_process);
  CHECK(only("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.69 GiB of which 12.44 "
             "MiB is free. "
             "Process 4711 has 18.20 GiB memory in use. Including non-PyTorch memory, this process has 5.40 GiB memory "
             "in use. Of the "
             "allocated memory 4.91 GiB is allocated by PyTorch, and 40.10 MiB is reserved by PyTorch but unallocated.")
            .cause == OutOfMemoryCause::other_process);
  // A container does not know its own process by number.
  CHECK(only("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.00 "
             "GiB is free. "
             "Process 4711 has 22.60 GiB memory in use. Of the allocated memory 22.00 GiB is allocated by PyTorch, and "
             "40.10 MiB is "
             "reserved by PyTorch but unallocated.")
            .cause == OutOfMemoryCause::capacity);
  CHECK(only("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 50.00 "
             "GiB is free. "
             "24.00 GiB allowed; Of the allocated memory 22.50 GiB is allocated by PyTorch, and 40.10 MiB is reserved "
             "by PyTorch but "
             "unallocated.")
            .cause == OutOfMemoryCause::limit);
}

TEST_CASE("messages that hold more and more are a leak") {
  std::string log;
  for (const char* held : {"20.00 GiB", "20.50 GiB", "21.00 GiB"})
    log += fmt::format(kFirst, "3.00 GiB", "23.69 GiB", held, "1.00 GiB", "22.00 GiB") + "\n";
  const std::vector<OutOfMemoryEvent> events = find_out_of_memory(log + log);
  REQUIRE(events.size() == 3);
  CHECK(diagnose(events, 2).cause == OutOfMemoryCause::leak);
  CHECK(diagnose(events, 1).cause != OutOfMemoryCause::leak);
}

TEST_CASE("figures of real reports come back from either text") {
  for (const RealReport& row : kRealReports) {
    INFO(row.id);
    const std::string old = fmt::format(kFirst, size(row.asked), size(row.total), size(row.allocated), size(row.free),
                                        size(row.allocated + row.unused));
    const std::string recent = fmt::format(kSecond, size(row.asked), size(row.total), size(row.free),
                                           size(row.total - row.free), size(row.allocated), size(row.unused));
    for (const std::string& text : {old, recent}) {
      const OutOfMemoryEvent event = only(text).event;
      CHECK(size(gib_of(event.asked)) == size(row.asked));
      CHECK(size(gib_of(event.total)) == size(row.total));
      CHECK(size(gib_of(event.free)) == size(row.free));
      CHECK(size(gib_of(event.allocated)) == size(row.allocated));
    }
  }
}

TEST_CASE("the tensor of the size that was asked for is named") {
  Problems problems;
  GenericModel given;
  given.hidden = 1024;
  given.layers = 8;
  given.heads = 16;
  given.intermediate = 2816;
  given.vocab = 32000;
  TrainingPlan plan;
  plan.seq = 4096;
  const std::vector<SizeMatch> found =
      tensors_of_size(generic_model(given, problems), plan, {}, std::int64_t{500} << 20);
  REQUIRE(!found.empty());
  CHECK(found.front().item == "loss.upcast");
  CHECK(found.front().moment == "loss");
}

// As the releases print them; figures of public reports where there are some.
TEST_CASE("messages of other generations and of libraries are told apart") {
  struct Message {
    const char* text;
    OutOfMemoryKind kind;
    OutOfMemoryCause cause;
  };
  const Message messages[] = {
      {"RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.93 GiB total capacity; 7.36 GiB "
       "already allocated; "
       "10.12 MiB free; 4.50 MiB cached)",
       OutOfMemoryKind::card, OutOfMemoryCause::capacity},
      {"RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58",
       OutOfMemoryKind::bare, OutOfMemoryCause::unknown},
      {"torch.AcceleratorError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
       OutOfMemoryKind::bare, OutOfMemoryCause::unknown},
      {"RuntimeError: CUDA driver error: out of memory", OutOfMemoryKind::bare, OutOfMemoryCause::unknown},
      {"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
       OutOfMemoryKind::library, OutOfMemoryCause::capacity},
      {"node:811:1024 [3] NCCL WARN Cuda failure 2 'out of memory'", OutOfMemoryKind::library,
       OutOfMemoryCause::capacity},
      {"torch.distributed.DistBackendError: NCCL error: unhandled cuda error\nLast error:\nCuda failure 'out of "
       "memory'",
       OutOfMemoryKind::library, OutOfMemoryCause::capacity},
      {"RuntimeError: NPU out of memory. Tried to allocate 26.44 GiB (NPU 3; 60.96 GiB total capacity; 30.23 GiB "
       "already "
       "allocated; 30.23 GiB current active; 25.36 GiB free; 33.08 GiB reserved in total by PyTorch)",
       OutOfMemoryKind::ascend, OutOfMemoryCause::fragmentation},
      {"torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 63.98 GiB "
       "of which "
       "1.02 GiB is free. Of the allocated memory 61.90 GiB is allocated by PyTorch, and 12.00 MiB is reserved by "
       "PyTorch "
       "but unallocated.",
       OutOfMemoryKind::card, OutOfMemoryCause::capacity},
      {"[enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
       "234881024 bytes. Error code 12 (Cannot allocate memory)",
       OutOfMemoryKind::host, OutOfMemoryCause::host},
      {"RuntimeError: unable to mmap 9976576152 bytes from file </model.safetensors>: Cannot allocate memory (12)",
       OutOfMemoryKind::host, OutOfMemoryCause::host},
      {"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 1.95 GiB for an array", OutOfMemoryKind::host,
       OutOfMemoryCause::host},
      {"traceback : Signal 9 (SIGKILL) received by PID 8716", OutOfMemoryKind::host_killed, OutOfMemoryCause::host},
      {"[launch.py:321:sigkill_handler] exits with return code = -9", OutOfMemoryKind::host_killed,
       OutOfMemoryCause::host},
      {"slurmstepd: error: Detected 1 oom-kill event(s) in StepId=77.batch", OutOfMemoryKind::host_killed,
       OutOfMemoryCause::host},
  };
  for (const Message& message : messages) {
    INFO(message.text);
    const Diagnosis found = only(message.text);
    CHECK(found.event.kind == message.kind);
    CHECK(found.cause == message.cause);
    CHECK(!remedies_in_order(found).empty());
  }
  CHECK_THAT(gib_of(only(messages[7].text).event.asked), Catch::Matchers::WithinAbs(26.44, 0.01));
}

}  // namespace membill

// Measured figures as people have them.
#include "membill/compare.h"

#include "support/catch.h"

namespace membill {
namespace {

constexpr const char* kSummary =
    "|                  PyTorch CUDA memory summary, device ID 0                 |\n"
    "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"
    "|---------------------------------------------------------------------------|\n"
    "| Allocated memory      |   6144 KiB |   8192 KiB |  20480 KiB |  14336 KiB |\n"
    "|       from large pool |   6144 KiB |   8192 KiB |  20480 KiB |  14336 KiB |\n"
    "| Requested memory      |   6143 KiB |   8190 KiB |  20475 KiB |  14332 KiB |\n"
    "| GPU reserved memory   |     20 MiB |     22 MiB |     22 MiB |      0 B   |\n";

}  // namespace

TEST_CASE("a memory summary is read") {
  const Measured measured = read_measured_text(kSummary);
  CHECK(measured.allocated == 8192 * 1024);
  CHECK(measured.requested == 8190 * 1024);
  CHECK(measured.reserved == 22 * 1024 * 1024);
  CHECK(!measured.device);
}

TEST_CASE("figures in words are read") {
  const Measured measured = read_measured_text("peak 14.25 GiB, reserved=15GiB nvidia-smi: 16384 MiB");
  CHECK(measured.allocated == 15300820992);
  CHECK(measured.reserved == std::int64_t{15} << 30);
  CHECK(measured.device == std::int64_t{16} << 30);
  CHECK(read_measured_text("max_memory_allocated: 123456").allocated == 123456);
  CHECK(read_measured_text("the loss is 2.3").empty());
}

TEST_CASE("the item as large as the difference is named") {
  Report report;
  report.totals.allocated = Range::exact(10000);
  report.totals.reserved = Range::exact(20000);
  LineItem item;
  item.id = "loss.upcast";
  item.label = "fp32 copy of the logits";
  item.bytes = 1010;
  item.at_peak = 0;
  report.items.push_back(item);
  Measured measured;
  measured.allocated = 11000;
  measured.reserved = 20000;
  const Comparison found = compare(measured, report);
  REQUIRE(found.figures.size() == 2);
  CHECK(found.figures[0].difference == 1000);
  REQUIRE(found.suspects.size() == 1);
  CHECK(found.suspects[0].id == "loss.upcast");
  CHECK(!found.suspects[0].at_peak);
  measured.allocated = 10050;
  CHECK(compare(measured, report).suspects.empty());
}

}  // namespace membill

#include "io/gpu_query.h"

#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include "errors.h"
#include "io/run_program.h"
#include "support/catch.h"
#include "temporary_folder.h"

namespace membill::io_test {
namespace {

std::string nvidia_error(const std::string& output) {
  return error_of([&] { return io::parse_nvidia_smi(output); });
}
std::string npu_error(const std::string& output) {
  return error_of([&] { return io::parse_npu_smi(output); });
}

// Puts programs of the test's own on the PATH, and nothing else.
class FakePath {
 public:
  FakePath() : before_(std::getenv("PATH")) { ::setenv("PATH", folder_.path().c_str(), 1); }
  FakePath(const FakePath&) = delete;
  FakePath& operator=(const FakePath&) = delete;
  ~FakePath() { ::setenv("PATH", before_.c_str(), 1); }
  void add(const std::string& name, const std::string& script) const {
    ::chmod(folder_.write(name, "#!/bin/sh\n" + script + "\n").c_str(), 0700);
  }

 private:
  TemporaryFolder folder_;
  std::string before_;
};

constexpr const char* kNpuTable =
    "+------------------------------------------------------------------------------------------------+\n"
    "| npu-smi 24.1.rc3                 Version: 24.1.rc3                                             |\n"
    "+---------------------------+---------------+----------------------------------------------------+\n"
    "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|\n"
    "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |\n"
    "+===========================+===============+====================================================+\n"
    "| 0     910B3               | OK            | 93.6        40                0    / 0             |\n"
    "| 0                         | 0000:C1:00.0  | 0           0    / 0          3161 / 65536         |\n"
    "+===========================+===============+====================================================+\n"
    "| 1     910B3               | OK            | 90.1        39                0    / 0             |\n"
    "| 0                         | 0000:C2:00.0  | 0           0    / 0          9000 / 65536         |\n"
    "+===========================+===============+====================================================+\n"
    "| No running processes found in NPU 0                                                            |\n";

}  // namespace

TEST_CASE("nvidia-smi lists a line per card") {
  const auto cards =
      io::parse_nvidia_smi("NVIDIA A100-SXM4-80GB, 81920, 4\r\n\nNVIDIA A100-SXM4-80GB, 81920 MiB, 1024 MiB\n");
  REQUIRE(cards.size() == 2);
  CHECK(cards[0].name == "NVIDIA A100-SXM4-80GB");
  CHECK(cards[0].total == 80_GiB);
  CHECK(cards[0].used == 4_MiB);
  CHECK(cards[1].used == 1_GiB);
  CHECK(io::parse_nvidia_smi("Card, with comma, 100, 0")[0].name == "Card, with comma");
}

TEST_CASE("nvidia-smi output of another form") {
  const auto [output, message] = GENERATE(table<std::string, std::string>({
      {"", "found no card"},
      {"No devices were found\n", "found no card"},
      {"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
       "printed 'NVIDIA-SMI has failed because it couldn't communicate with t...' (expected name, total and used "
       "memory)"},
      {"NVIDIA GB10, [N/A], [N/A]",
       "does not tell the total memory of 'NVIDIA GB10' (name the card or its size: --gpu 24GiB)"},
      {"X, 100, [Not Supported]", "does not tell the used memory of 'X' (name the card or its size: --gpu 24GiB)"},
      {"X, 100, N/A", "does not tell the used memory of 'X' (name the card or its size: --gpu 24GiB)"},
      {"X, 100, -1", "the used memory of 'X', '-1', must not be negative"},
      {"X, 1e3, 0", "the total memory of 'X', '1e3', needs a whole number in plain digits"},
      {"X, 99999999999999999999, 0", "the total memory of 'X', '99999999999999999999', is too large"},
      {"X, 9999999999999, 0", "the total memory of 'X' is too large"},
      {"X, 100, 200", "'X' uses more memory than it has"},
      {"X, 0, 0", "'X' has no memory (name the card or its size: --gpu 24GiB)"},
      {"X, 100", "printed 'X, 100' (expected name, total and used memory)"},
      {", 100, 0", "printed ', 100, 0' (expected name, total and used memory)"},
      {",,", "printed ',,' (expected name, total and used memory)"},
  }));
  CHECK(nvidia_error(output) == "nvidia-smi: " + message);
}

TEST_CASE("npu-smi lists two lines per card") {
  const auto cards = io::parse_npu_smi(kNpuTable);
  REQUIRE(cards.size() == 2);
  CHECK(cards[0].name == "910B3");
  CHECK(cards[0].total == 64_GiB);
  CHECK(cards[1].used == 9000 * 1_MiB);
  CHECK(npu_error("") == "npu-smi: found no card");
  CHECK(npu_error("| 0     910B3 | OK | 93.6 |\n+====+\n") == "npu-smi: printed a table of another form");
  CHECK(npu_error("| 0     910B3 | OK | 93.6 |\n| 0 | x | 1 / 2 |\n") == "npu-smi: printed a table of another form");
}

TEST_CASE("the card with the least free memory decides") {
  const auto cards = io::parse_nvidia_smi(
      "NVIDIA A100-SXM4-80GB, 81920, 0\nNVIDIA A100-SXM4-80GB, 81920, 5000\nNVIDIA A100-SXM4-80GB, 81920, 900\n");
  const io::DetectedHardware all = io::choose_cards(cards, std::nullopt, {});
  CHECK(all.hardware.count == 3);
  CHECK(all.cards.size() == 3);
  CHECK(all.hardware.gpu->short_name == "a100-80gb");
  CHECK(all.hardware.others_use == 5000 * 1_MiB);
  CHECK(all.hardware.assumptions.empty());
  const io::DetectedHardware two = io::choose_cards(cards, 2, {});
  CHECK(two.hardware.count == 2);
  CHECK(two.hardware.others_use == 900 * 1_MiB);
  CHECK(error_of([&] { return io::choose_cards(cards, 4, {}); }) == "--gpu: needs 4 cards, this machine has 3");
}

TEST_CASE("cards that differ or are not known are read by their totals") {
  const auto mixed = io::choose_cards(io::parse_nvidia_smi("NVIDIA GeForce RTX 4090, 24564, 10\nTesla T4, 15360, 0\n"),
                                      std::nullopt, {});
  CHECK(mixed.hardware.gpu->short_name == "t4");
  CHECK(mixed.hardware.assumptions == Lines{"the cards differ; Tesla T4 has the least free memory and decides"});
  const auto unknown = io::choose_cards(io::parse_nvidia_smi("NVIDIA Next 9, 102400, 10\n"), std::nullopt, {});
  CHECK(unknown.hardware.gpu->name == "NVIDIA Next 9");
  CHECK(unknown.hardware.gpu->usable == 102400 * 1_MiB - Bytes(751619276));
  CHECK(unknown.hardware.assumptions == Lines{"usable memory of NVIDIA Next 9: the driver's total less 0.7 GiB"});
  // The 8 GB card of the same name.
  const auto smaller =
      io::choose_cards(io::parse_nvidia_smi("NVIDIA GeForce RTX 4060 Ti, 8188, 0\n"), std::nullopt, {});
  CHECK(smaller.hardware.gpu->usable == 7676 * 1_MiB);
  CHECK(smaller.hardware.gpu->short_name.empty());
}

TEST_CASE("what npu-smi counts for the driver is not counted twice") {
  const auto found = io::choose_cards(io::parse_npu_smi(kNpuTable), 1, {});
  CHECK(found.hardware.gpu->short_name == "ascend-910b3-64gb");
  CHECK(found.hardware.others_use < 200 * 1_MiB);
}

TEST_CASE("auto runs the tool that is installed") {
  const FakePath path;
  const auto detect = [] { return io::detect_hardware(std::nullopt, {}); };
  CHECK(error_of(detect) ==
        "--gpu: 'auto' needs nvidia-smi or npu-smi, and neither is installed (name the card: --gpu rtx-4090)");
  path.add("npu-smi", "printf '%s' '" + std::string(kNpuTable) + "'");
  CHECK(detect().hardware.gpu->short_name == "ascend-910b3-64gb");
  path.add("nvidia-smi", "echo 'Tesla T4, 15360, 12'");
  CHECK(detect().hardware.gpu->short_name == "t4");
  CHECK(detect().hardware.others_use == 12 * 1_MiB);
  path.add("nvidia-smi", "echo 'No devices were found'; exit 6");
  CHECK(error_of(detect) == "nvidia-smi: failed and printed 'No devices were found' (name the card: --gpu rtx-4090)");
}

TEST_CASE("programs are run within bounds") {
  const FakePath path;
  path.add("good", "echo out; echo err >&2");
  path.add("bad", "echo why; exit 3");
  path.add("slow", "while :; do :; done");
  path.add("loud", "while :; do echo 0123456789012345678901234567890123456789; done");
  path.add("mute", "exec >&-; while :; do :; done");
  CHECK(io::run_program({"good"}, 10).output == "out\n");
  CHECK(io::run_program({"good"}, 10).end == io::ProgramEnd::done);
  CHECK(io::run_program({"bad"}, 10).end == io::ProgramEnd::failed);
  CHECK(io::run_program({"bad"}, 10).output == "why\n");
  CHECK(io::run_program({"none"}, 10).end == io::ProgramEnd::not_found);
  CHECK(io::run_program({"slow"}, 1).end == io::ProgramEnd::timed_out);
  CHECK(io::run_program({"mute"}, 1).end == io::ProgramEnd::timed_out);
  CHECK(io::run_program({"loud"}, 60).end == io::ProgramEnd::too_much);
}

}  // namespace membill::io_test

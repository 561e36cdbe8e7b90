#include "io/hardware_source.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "errors.h"
#include "io/embedded.h"
#include "support/catch.h"
#include "temporary_folder.h"

namespace membill::io_test {
namespace {

std::string short_name(const std::string& text) { return io::find_gpu(text, {}).gpu.short_name; }
std::string gpu_error(const std::string& text, const io::DataDirs& dirs = {}) {
  return error_of([&] { return io::find_gpu(text, dirs); });
}

}  // namespace

TEST_CASE("every preset of a card is complete") {
  const std::vector<io::FoundGpu> all = io::all_gpus({});
  REQUIRE(all.size() == io::embedded_files("hardware").size());
  REQUIRE(all.size() >= 92);
  for (const io::FoundGpu& found : all) {
    INFO(found.gpu.short_name);
    CHECK_FALSE(found.gpu.name.empty());
    CHECK_FALSE(found.gpu.vendor.empty());
    CHECK_FALSE(found.gpu.sources.empty());
    CHECK(found.gpu.marketed_gb > 0);
    REQUIRE(found.gpu.usable.has_value());
    CHECK(found.gpu.usable->count() > 0);
    if (found.gpu.reported) CHECK(*found.gpu.usable <= *found.gpu.reported);
    CHECK(*found.gpu.usable <= found.gpu.marketed_gb * 1_GiB);
    CHECK(found.gpu.capability_major.has_value() == (found.gpu.vendor == "NVIDIA"));
    const std::string& name = found.gpu.short_name;
    CHECK(std::all_of(name.begin(), name.end(),
                      [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '-'; }));
  }
}

TEST_CASE("a card answers to its short name, its full name and every alias") {
  for (const io::FoundGpu& found : io::all_gpus({})) {
    CHECK(short_name(found.gpu.short_name) == found.gpu.short_name);
    CHECK(short_name(found.gpu.name) == found.gpu.short_name);
  }
}

TEST_CASE("cards are found as people and drivers write them") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>({
      {"rtx-4090", "rtx-4090"},
      {"RTX 4090", "rtx-4090"},
      {"rtx4090", "rtx-4090"},
      {"RTX_4090", "rtx-4090"},
      {"4090", "rtx-4090"},
      {"NVIDIA GeForce RTX 4090", "rtx-4090"},
      {"NVIDIA GeForce RTX 3090 Ti", "rtx-3090-ti"},
      {"A100 80GB", "a100-80gb"},
      {"a100-80GB", "a100-80gb"},
      {"A100 80 GB", "a100-80gb"},
      {"A100 80G", "a100-80gb"},
      {"A100-40G", "a100-40gb"},
      {"RTX 4060", "rtx-4060"},
      {"RTX 4060 Ti", "rtx-4060-ti"},
      {"NVIDIA GeForce RTX 4090 D", "rtx-4090-d"},
      {"Titan RTX-24GB", "titan-rtx"},
      {"RTX2070-8GB", "rtx-2070"},
      {"V100S-PCIE-32GB", "v100-32gb"},
      {"NVIDIA A100-SXM4-80GB", "a100-80gb"},
      {"NVIDIA A100-SXM4-40GB", "a100-40gb"},
      {"NVIDIA A100 80GB PCIe", "a100-pcie-80gb"},
      {"NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"},
      {"NVIDIA H100 80GB HBM3", "h100-80gb"},
      {"NVIDIA H100 PCIe", "h100-pcie-80gb"},
      {"NVIDIA H100 NVL", "h100-nvl-94gb"},
      {"NVIDIA H200", "h200-141gb"},
      {"h200", "h200-141gb"},
      {"Tesla T4", "t4"},
      {"Tesla V100-SXM2-16GB", "v100-16gb"},
      {"Tesla V100-SXM2-32GB", "v100-32gb"},
      {"NVIDIA L4", "l4"},
      {"NVIDIA L40", "l40"},
      {"NVIDIA L40S", "l40s"},
      {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"},
      {"NVIDIA GH200 480GB", "gh200-96gb"},
      {"NVIDIA B200", "b200"},
      {"AMD Instinct MI300X", "mi300x"},
      {"MI300X", "mi300x"},
      {"910B3", "ascend-910b3-64gb"},
      {"Ascend 910B3", "ascend-910b3-64gb"},
  }));
  INFO(text);
  CHECK(short_name(text) == expected);
}

TEST_CASE("usable memory is what a framework sees") {
  CHECK(io::find_gpu("rtx-4090", {}).gpu.usable == Bytes(25383256719));  // 23.64 GiB
  CHECK(io::find_gpu("rtx-4090", {}).assumptions.empty());
  CHECK(io::usable_of_reported(24564 * 1_MiB) == 24052 * 1_MiB);
  CHECK(io::usable_of_reported(81920 * 1_MiB) == 81920 * 1_MiB - Bytes(751619276));
  CHECK(io::usable_of_reported(100 * 1_MiB) == Bytes(0));
  const io::FoundGpu estimated = io::find_gpu("l40", {});
  CHECK(estimated.assumptions == Lines{"usable memory of the L40 48GB: as on the L40S, which has the same memory"});
  const io::FoundGpu by_rule = io::find_gpu("rtx-a5000", {});
  CHECK(by_rule.gpu.usable == 24052 * 1_MiB);
  CHECK(by_rule.assumptions == Lines{"usable memory of the RTX A5000 24GB: the driver's total less 0.5 GiB"});
}

TEST_CASE("a size is a card of its own") {
  CHECK(io::find_gpu("24 GiB", {}).gpu.usable == 24_GiB);
  CHECK(io::find_gpu("80GB", {}).gpu.usable == 80_GB);
  CHECK(io::find_gpu("24 GiB", {}).gpu.short_name.empty());
  CHECK(io::find_gpu("24 GiB", {}).gpu.name == "24 GiB");
  CHECK(io::find_gpu("24 GiB", {}).assumptions == Lines{"a card given as a size: all 24 GiB of it are usable"});
}

TEST_CASE("names that no card or several cards have") {
  CHECK(gpu_error("rtx-4091") == "--gpu: 'rtx-4091' is no known card and no size (rtx-4090)");
  CHECK(gpu_error("RTX 6000") == "--gpu: 'RTX 6000' may be more than one card (rtx-6000-ada, rtx-pro-6000)");
  CHECK(gpu_error("RTX 5880") == "--gpu: 'RTX 5880' is no known card and no size (rtx-5880-ada)");
  CHECK(gpu_error("") == "--gpu: '' is no known card and no size");
  CHECK(gpu_error("nvidia") == "--gpu: 'nvidia' is no known card and no size");
  CHECK(gpu_error("v100") == "--gpu: 'v100' may be more than one card (v100-16gb, v100-32gb)");
  CHECK(gpu_error("H100") == "--gpu: 'H100' may be more than one card (h100-80gb, h100-nvl-94gb, h100-pcie-80gb)");
  CHECK(gpu_error("24") == "--gpu: '24' needs a unit such as GiB or GB (or the name of a card)");
  CHECK(gpu_error("0 GiB") == "--gpu: needs a size above 0");
  CHECK(gpu_error("0") == "--gpu: needs a size above 0");
  CHECK(gpu_error("../hardware/t4") == "--gpu: '../hardware/t4' is no known card and no size");
}

TEST_CASE("the user's own cards go before the program's") {
  const TemporaryFolder folder;
  folder.write("hardware/t4.json", R"({"name": "My T4", "vendor": "NVIDIA", "reported_mib": 15000, "usable_gib": 14})");
  folder.write("hardware/lab-card.json",
               R"({"name": "Lab card", "vendor": "us", "aliases": ["labby"], "usable_gib": 10.5})");
  const io::DataDirs dirs{{folder.path()}};
  CHECK(io::find_gpu("t4", dirs).gpu.usable == 14_GiB);
  CHECK(io::find_gpu("Lab Card", dirs).gpu.usable == Bytes(11274289152));
  CHECK(io::find_gpu("labby", dirs).gpu.short_name == "lab-card");
  CHECK(io::all_gpus(dirs).size() == io::all_gpus({}).size() + 1);
}

TEST_CASE("a card's file with mistakes names them all") {
  const TemporaryFolder folder;
  folder.write(
      "hardware/bad.json",
      R"({"name": 7, "vendor": "us", "memory_gb": 0, "reported_mib": "80 GiB", "bf16": "yes", "usable": 3, "notes": "none"})");
  const Lines expected{
      "bad.json: name: needs text, not whole number",
      "bad.json: memory_gb: needs a whole number of at least 1, not 0",
      "bad.json: reported_mib: needs a whole number of at least 1, not text '80 GiB'",
      "bad.json: usable_gib: is missing (or give reported_mib, or usable_estimate_gib and usable_estimate_why)",
      "bad.json: bf16: needs true or false, not text 'yes'",
      "bad.json: notes: needs a list of texts, not text 'none'",
      "bad.json: usable: is no known key"};
  CHECK(errors_of([&] { return io::find_gpu("bad", io::DataDirs{{folder.path()}}); }) == expected);
}

TEST_CASE("a data folder that is none is refused") {
  CHECK(error_of([] { return io::data_dirs("/no/such/folder"); }) == "--data: '/no/such/folder' is no folder");
}

}  // namespace membill::io_test

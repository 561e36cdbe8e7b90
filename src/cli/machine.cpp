#include "cli/machine.h"

#include "io/gpu_query.h"
#include "io/hardware_source.h"
#include "membill/units.h"

namespace membill::cli {
namespace {

constexpr const char* kGroup = "Machine";

void read_count(const Arguments& arguments, const char* option, std::optional<std::int64_t>& result,
                Problems& problems) {
  const std::string* text = arguments.value(option);
  if (text == nullptr) return;
  std::int64_t count = 0;
  std::string why;
  if (!parse_count(*text, count, why)) {
    problems.add({kCommandLine, option, why, ""});
  } else if (count < 1) {
    problems.add({kCommandLine, option, "must be at least 1, not " + *text, ""});
  } else {
    result = count;
  }
}

void read_size(const Arguments& arguments, const char* option, std::optional<Bytes>& result, Problems& problems) {
  const std::string* text = arguments.value(option);
  if (text == nullptr) return;
  Bytes size;
  std::string why;
  if (parse_bytes(*text, size, why)) {
    result = size;
  } else {
    problems.add({kCommandLine, option, why, ""});
  }
}

// Fills gpu and what comes with it.
void find_card(const std::string& gpu, bool typed, const io::HardwareRequest& request, const io::JobFile& job,
               const TrainingPlan& plan, const io::DataDirs& dirs, Hardware& hardware) {
  if (gpu == "auto") {
    std::optional<std::int64_t> count = request.count;
    if (!count && plan.engine == Engine::torch) count = 1;
    hardware = io::detect_hardware(count, dirs).hardware;
    return;
  }
  io::FoundGpu found =
      typed ? io::find_gpu(gpu, dirs, "--gpu", kCommandLine) : io::find_gpu(gpu, dirs, "hardware.gpu", job.file);
  hardware.gpu = std::move(found.gpu);
  hardware.assumptions = std::move(found.assumptions);
}

}  // namespace

std::vector<OptionSpec> machine_options() {
  return {{"--gpu",
           Takes::value,
           "NAME|SIZE|auto",
           "the card: a row of membill gpus, a size, or what this machine has",
           kGroup,
           {}},
          {"--gpus", Takes::value, "N", "cards in all; 1 by default", kGroup, {}},
          {"--nodes", Takes::value, "N", "machines that the cards are spread over; 1 by default", kGroup, {}},
          {"--host-ram", Takes::value, "SIZE", "memory of one machine", kGroup, {}},
          {"--others-use", Takes::value, "SIZE", "memory of each card that other processes hold", kGroup, {}},
          {"--margin", Takes::value, "SIZE", "memory of each card that is to stay free", kGroup, {}}};
}

Hardware read_machine(const Arguments& arguments, const io::JobFile& job, const TrainingPlan& plan,
                      const io::DataDirs& dirs, Problems& problems) {
  io::HardwareRequest request = job.hardware;
  const std::string* typed = arguments.value("--gpu");
  if (typed != nullptr) request.gpu = *typed;
  read_count(arguments, "--gpus", request.count, problems);
  read_count(arguments, "--nodes", request.nodes, problems);
  read_size(arguments, "--host-ram", request.host_ram, problems);
  read_size(arguments, "--others-use", request.others_use, problems);
  Hardware hardware;
  if (request.gpu) find_card(*request.gpu, typed != nullptr, request, job, plan, dirs, hardware);
  hardware.count = request.count.value_or(hardware.count);
  hardware.nodes = request.nodes.value_or(hardware.nodes);
  hardware.others_use = request.others_use.value_or(hardware.others_use);
  hardware.host_ram = request.host_ram;
  if (std::optional<Bytes> margin; read_size(arguments, "--margin", margin, problems), margin) {
    hardware.margin = *margin;
    hardware.assumptions.push_back("--margin: " + *arguments.value("--margin") + " of each card are to stay free");
  }
  return hardware;
}

}  // namespace membill::cli

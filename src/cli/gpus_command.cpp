// membill gpus: the cards that are known by name.
#include "cli/command_list.h"
#include "cli/data_option.h"
#include "cli/listing.h"
#include "io/hardware_source.h"
#include "report/text.h"

namespace membill::cli {
namespace {

Cell count_or_none(const std::optional<std::int64_t>& value) { return value ? Cell(*value) : Cell(); }
Cell bytes_or_none(const std::optional<Bytes>& value) { return value ? Cell(value->count()) : Cell(); }
Cell flag_or_none(const std::optional<bool>& value) { return value ? Cell(*value) : Cell(); }

Cell capability(const GpuSpec& gpu) {
  if (!gpu.capability_major) return {};
  return std::to_string(*gpu.capability_major) + "." + std::to_string(gpu.capability_minor);
}

ListingRow listing_row(const GpuSpec& gpu) {
  const std::optional<Bytes>& memory = gpu.usable ? gpu.usable : gpu.reported;
  return {gpu.short_name,
          {{"short_name", gpu.short_name},
           {"name", gpu.name},
           {"vendor", gpu.vendor},
           {"marketed_gb", gpu.marketed_gb > 0 ? Cell(gpu.marketed_gb) : Cell()},
           {"reported_bytes", bytes_or_none(gpu.reported)},
           {"usable_bytes", bytes_or_none(gpu.usable)},
           {"usable", memory ? Cell(report::size_text(memory->count())) : Cell()},
           {"capability", capability(gpu)},
           {"bf16", flag_or_none(gpu.bf16)},
           {"fp8", flag_or_none(gpu.fp8)},
           {"bandwidth_gb_s", count_or_none(gpu.bandwidth_gb_s)},
           {"bf16_tflops", count_or_none(gpu.bf16_tflops)},
           {"notes", gpu.notes},
           {"source", gpu.sources}}};
}

std::vector<ArgumentSpec> arguments() { return {{"NAME", "one card in full", false, {}}}; }

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all = listing_options();
  all.push_back(data_option());
  return all;
}

ExitCode run_gpus(const Arguments& arguments, Output& output) {
  const std::string format = listing_format(arguments);
  const io::DataDirs dirs = data_dirs(arguments);
  if (const std::string* name = arguments.positional(0)) {
    output.out = render_row(listing_row(io::find_gpu(*name, dirs, "NAME", kCommandLine).gpu), format);
    return ExitCode::computed;
  }
  Listing listing{{"short_name", "usable", "name"}, {}};
  for (const io::FoundGpu& found : io::all_gpus(dirs)) listing.rows.push_back(listing_row(found.gpu));
  output.out = render_listing(listing, format);
  return ExitCode::computed;
}

}  // namespace

Command gpus_command() {
  return {"gpus",
          "The cards: what the driver reports, what a framework can use, sources",
          arguments,
          options,
          {"gpus", "gpus rtx-4090", "gpus --format csv"},
          run_gpus};
}

}  // namespace membill::cli

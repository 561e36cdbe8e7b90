#include "io/importers/python_import.h"

#include <algorithm>

#include "io/importers/python_job.h"
#include "io/text_file.h"

namespace membill::io {
namespace {

std::optional<NamedText> program_of_command(const JobSource& source) {
  if (!source.launch.path.ends_with(".py")) return std::nullopt;
  return find_text(source.launch.path, source.folder, source.launch.files.get());
}

}  // namespace

std::optional<JobFile> import_python(const ProgramText& text, const std::string& file, const std::string& folder,
                                     const Launch& launch, const std::map<std::string, Value>& flags,
                                     const ImportContext& context, Problems& problems) {
  std::optional<PythonJob> job = read_python(text.program, file, folder, launch, flags, context, problems);
  if (!job) return std::nullopt;
  job->source.requirements = text.requirements;
  ImportContext as = context;
  if (!as.format) as.format = job->format;
  return import_source(job->source, as, problems);
}

std::optional<JobFile> import_started(const JobSource& source, const ImportContext& context, Problems& problems) {
  const std::optional<NamedText> file = program_of_command(source);
  if (!file) return std::nullopt;
  std::map<std::string, Value> flags;
  for (const auto& [key, value] : source.keys.entries()) flags[key] = value;
  return import_python(program_text(check_text(file->text, file->name), file->name), file->name, file->folder,
                       source.launch, flags, context, problems);
}

bool leaves_adapters_to_program(const JobSource& source, int claimed) {
  constexpr int kByKeys = 60;  // what trl and hf-trainer claim by keys alone, at most
  constexpr std::string_view kAdapters =
      "use_peft use_lora use_peft_lora lora_enable lora_r lora_rank lora_dim peft_lora_r q_lora use_qlora load_in_4bit "
      "load_in_8bit bits use_4bit_quantization use_8bit_quantization full_finetune full_finetuning";
  if (claimed > kByKeys || count_keys(source.keys, kAdapters) > 0) return false;
  const std::optional<NamedText> file = program_of_command(source);
  if (!file) return false;
  const PythonProgram program(file->text);
  const auto makes_adapters = [](const PythonCall& call) { return call.function() == "LoraConfig"; };
  const auto trains = [](const PythonCall& call) { return call.function().ends_with("Trainer"); };
  return std::any_of(program.calls().begin(), program.calls().end(), makes_adapters) &&
         std::any_of(program.calls().begin(), program.calls().end(), trains);
}

}  // namespace membill::io

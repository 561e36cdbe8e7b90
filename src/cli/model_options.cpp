#include "cli/model_options.h"

#include <algorithm>
#include <array>

#include "io/model_source.h"
#include "membill/catalog.h"

namespace membill::cli {
namespace {

struct SizeOption {
  const char* name;
  const char* key;  // of a job file
  const char* help;
};

constexpr std::array<SizeOption, 8> kSizes{{
    {"--params", "params", "parameters in all: 7e9, 7B, 7000000000"},
    {"--hidden", "hidden", "hidden size"},
    {"--layers", "layers", "layers"},
    {"--heads", "heads", "attention heads"},
    {"--kv-heads", "kv_heads", "key and value heads"},
    {"--head-dim", "head_dim", "width of a head"},
    {"--intermediate", "intermediate", "width of the MLP"},
    {"--vocab", "vocab", "rows of the embedding"},
}};

// The first size option that was given, nullptr for none.
const SizeOption* first_given(const Arguments& arguments) {
  const auto given = [&](const SizeOption& size) { return arguments.has(size.name); };
  const auto found = std::find_if(kSizes.begin(), kSizes.end(), given);
  return found == kSizes.end() ? nullptr : &*found;
}

// Problems of a generic model belong to the option that was typed, else to the job file.
Problem placed(Problem problem, const Arguments& arguments, const io::JobFile& job) {
  const auto is_key = [&](const SizeOption& size) { return size.key == problem.key; };
  const auto size = std::find_if(kSizes.begin(), kSizes.end(), is_key);
  const bool typed = size != kSizes.end() && arguments.has(size->name);
  const bool in_file = !typed && job.generic.has_value();
  problem.file = in_file ? job.file : kCommandLine;
  if (size != kSizes.end()) problem.key = in_file ? "model." + problem.key : size->name;
  return problem;
}

ModelSpec read_generic(const Arguments& arguments, const io::JobFile& job, Problems& problems) {
  GenericModel given = job.generic.value_or(GenericModel());
  Problems found;
  for (const SizeOption& size : kSizes) {
    const std::string* text = arguments.value(size.name);
    std::string why;
    if (text != nullptr && !io::set_generic(given, size.key, *text, why)) found.add({kCommandLine, size.key, why, ""});
  }
  ModelSpec model;
  if (found.empty()) model = generic_model(given, found);
  for (const Problem& problem : found.list()) problems.add(placed(problem, arguments, job));
  return model;
}

// How a job's model is given that no preset describes.
constexpr const char* kAdvice = "its config.json as MODEL; check: --model";

// `advice`: how else the model can be given, where its name leads nowhere; empty: not said.
ModelSpec load(const std::string& name, const io::DataDirs& dirs, const char* key, const std::string& file,
               const std::string& advice = {}) {
  try {
    return io::describe_model(io::load_model(name, dirs, key));
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) {
      if (!problem.file.empty()) continue;
      problem.file = file;
      if (!advice.empty()) problem.hint += (problem.hint.empty() ? "" : ", or ") + advice;
    }
    throw InputError(std::move(problems));
  }
}

}  // namespace

std::vector<OptionSpec> model_options() {
  std::vector<OptionSpec> options;
  options.reserve(kSizes.size());
  for (const SizeOption& size : kSizes) {
    options.push_back({size.name, Takes::value, "N", size.help, "Generic model, in place of MODEL", {}});
  }
  return options;
}

ModelSpec read_model(const Arguments& arguments, const std::string* typed, const io::JobFile& job,
                     const io::DataDirs& dirs, Problems& problems) {
  const SizeOption* size = first_given(arguments);
  if (typed != nullptr && size != nullptr) {
    problems.add({kCommandLine, size->name, "describes a generic model, but MODEL is " + quoted(*typed),
                  "leave out one of them"});
    return {};
  }
  if (typed != nullptr) return load(*typed, dirs, "MODEL", kCommandLine);
  if (size != nullptr || job.generic) return read_generic(arguments, job, problems);
  if (job.config) return io::describe_model(io::load_config(*job.config, job.file, "model.config"));
  if (job.model) return load(*job.model, dirs, "model", job.file, job.format.empty() ? "" : kAdvice);
  const std::string where = job.file.empty() ? kCommandLine : job.file;
  problems.add({where, job.file.empty() ? "MODEL" : "model", "is missing",
                "a row of membill models, a config.json, a model folder, - for standard input, or --params 7e9" +
                    std::string(job.format.empty() ? "" : "; check: --model")});
  return {};
}

std::shared_ptr<const ModelSpec> read_teacher(const TrainingPlan& plan, const io::JobFile& job,
                                              const io::DataDirs& dirs) {
  if (!plan.teacher) return nullptr;
  if (job.teacher && *plan.teacher == "config")
    return std::make_shared<const ModelSpec>(
        io::describe_model(io::load_config(*job.teacher, job.file, "teacher.config")));
  const bool typed = job.plan.find("teacher") == nullptr;
  return std::make_shared<const ModelSpec>(
      load(*plan.teacher, dirs, typed ? "--teacher" : "teacher", typed ? kCommandLine : job.file));
}

}  // namespace membill::cli

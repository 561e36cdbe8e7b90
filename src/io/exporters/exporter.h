// Exporters: what a plan says about memory, as a training framework's file says it. Each format is one file, which writes by the key
// table of its importer, and one line in exporters.cpp: what is written reads back as the same plan, as far as the format can say it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "io/job_file.h"
#include "io/preset_files.h"
#include "membill/catalog.h"
#include "membill/problem.h"
#include "membill/training_plan.h"
#include "membill/value.h"

namespace membill::io {

struct ExportJob {
  TrainingPlan plan;
  std::string model;            // as a framework finds it: a hub id or a path; empty: none is named
  std::string preset;           // the preset's short name; empty: it is none
  std::optional<Value> config;  // the model, where the job describes it
  std::int64_t count = 1;       // cards in all
  std::int64_t nodes = 1;
};

enum class Syntax : std::uint8_t { json, yaml, toml, script };

struct Exporter {
  std::string_view name;     // "llamafactory": the importer that reads it back
  std::string_view summary;  // one line
  Syntax syntax = Syntax::yaml;
  bool part = false;  // the file is a part of a job (an engine's settings, adapters): the rest is said elsewhere
  // The file as a tree. What the format cannot run at all (another engine, a method that it does not have) is a problem whose key is the
  // plan's; what it cannot say otherwise is left out.
  Value (*write)(const ExportJob& job, Problems& problems) = nullptr;
};

[[nodiscard]] std::span<const Exporter> exporters();
// By name; nullptr: none.
[[nodiscard]] const Exporter* find_exporter(std::string_view name);

// The text of the file. Problems: those of Exporter::write.
[[nodiscard]] std::string export_text(const Exporter& exporter, const ExportJob& job, Problems& problems);

// The job as the importer of `format` understands an exported text.
struct ReadBack {
  JobFile job;
  TrainingPlan plan;
};
// Throws InputError when it cannot be read at all.
[[nodiscard]] ReadBack read_back(std::string_view format, const ExportJob& job, const std::string& text,
                                 const DataDirs& dirs, Problems& problems);

// PEFT's targets for the preset's type, where a plan with adapters names none.
void name_default_targets(const std::string& preset, const DataDirs& dirs, TrainingPlan& plan);

// Fields of the plan that the exported `text` does not say: it is read back, and one line tells of each field that comes to something
// else ("lengths: \"fixed\" cannot be said in a file of llamafactory, where it comes to \"varied\""); of a part, one line names them all.
[[nodiscard]] std::vector<std::string> left_out(const Exporter& exporter, const ExportJob& job, const std::string& text,
                                                const DataDirs& dirs);

}  // namespace membill::io

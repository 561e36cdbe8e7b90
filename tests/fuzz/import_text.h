// What the harnesses of the importers share: any bytes as a job of one format give a plan, problems, or an InputError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "io/importers/importer.h"
#include "membill/catalog.h"
#include "membill/problem.h"

namespace membill::fuzz {

// `format` nullptr: as the file's name and content say.
inline int import_as(const char* format, const std::uint8_t* data, std::size_t size, const char* file = "job") {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  io::ImportContext context;
  if (format != nullptr) context.format = format;
  try {
    Problems problems;
    TrainingPlan plan;
    const io::JobFile job = io::import_text(text, file, "", context, problems);
    read_plan(job.plan, job.file, plan, problems);
    for (const io::KeyRecord& record : job.records) (void)io::to_text(record);
  } catch (const InputError&) {
  }
  return 0;
}

}  // namespace membill::fuzz

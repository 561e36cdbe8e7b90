// A plan ready to be written in a framework's format.
#ifndef MEMBILL_CLI_EXPORT_JOB_H_
#define MEMBILL_CLI_EXPORT_JOB_H_

#include <string>

#include "io/exporters/exporter.h"
#include "membill/hardware.h"

namespace membill::cli {

// `model`: as the user or the job names it; a preset is written by its hub id. Other frameworks have other default targets than PEFT's of
// the model's type: these are named.
[[nodiscard]] io::ExportJob export_job(const TrainingPlan& plan, const Hardware& hardware, const std::string& model,
                                       const io::DataDirs& dirs);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_EXPORT_JOB_H_

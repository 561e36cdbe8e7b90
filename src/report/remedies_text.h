// The changes that make a job fit, for people.
#ifndef MEMBILL_REPORT_REMEDIES_TEXT_H_
#define MEMBILL_REPORT_REMEDIES_TEXT_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "membill/remedies.h"
#include "report/messages.h"

namespace membill::report {

// Of `settings`, as below.
[[nodiscard]] std::string settings_text(const std::vector<PlanSetting>& settings);
// "--checkpointing full --set sharding.offload=optimizer": the settings as options of membill.
[[nodiscard]] std::string settings_text(const RemedyTrial& trial);
// "the same results, 33.0 % more compute".
[[nodiscard]] std::string price_text(const RemedyTrial& trial, Language language);
// "checkpoint the layers + 8-bit Adam states".
[[nodiscard]] std::string remedies_name(const RemedyTrial& trial, Language language);

// The settings as the user's job spells them, a line each.
using SettingLines = std::function<std::vector<std::string>(const RemedyTrial& trial)>;

// `width`: columns of the terminal.
[[nodiscard]] std::string render_remedies(const RemedyPlan& plan, Language language, std::size_t width,
                                          const SettingLines& settings);

}  // namespace membill::report

#endif  // MEMBILL_REPORT_REMEDIES_TEXT_H_

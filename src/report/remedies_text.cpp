#include "report/remedies_text.h"

#include <algorithm>

#include "membill/catalog.h"
#include "report/explain_parts.h"
#include "report/text.h"

namespace membill::report {
namespace {

constexpr std::size_t kIndent = 4;  // of what stands under a number
constexpr const char* kAccuracyKeys[] = {"accuracy.same", "accuracy.fewer_bits", "accuracy.adapters",
                                         "accuracy.quantized", "accuracy.less_data"};

std::string tenths(std::int64_t value) { return std::to_string(value / 10) + "." + std::to_string(value % 10); }

bool suffices(const RemedyTrial& trial) { return trial.answer == Answer::fits || trial.answer == Answer::tight; }

class RemediesPage {
 public:
  RemediesPage(const RemedyPlan& plan, Language language, std::size_t width, const SettingLines& settings)
      : plan_(plan), language_(language), width_(std::max(width, kMinimumWidth)), settings_(settings) {}

  std::string render() {
    for (const std::string& part : wrapped(verdict_sentence(plan_.now, language_), width_)) line(part);
    if (plan_.fits_now()) {
      line(std::string(message("plan.fits", language_)));
      return std::move(out_);
    }
    const bool single = !plan_.single.empty() && suffices(plan_.single.front());
    if (single) list("plan.single", [](const RemedyTrial& trial) { return suffices(trial); });
    number_ = 0;
    if (!plan_.together.empty()) heading(single ? "plan.together.card" : "plan.together");
    for (const RemedyTrial& trial : plan_.together) entry(trial);
    if (!single && plan_.together.empty()) nothing();
    number_ = 0;
    list("plan.helps", [](const RemedyTrial& trial) { return !suffices(trial); });
    out_ += "\n";
    cards();
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += text + "\n"; }
  void heading(const char* key) { out_ += "\n" + std::string(message(key, language_)) + "\n"; }
  // Under a number, broken where the terminal ends.
  void detail(const std::string& text) {
    for (const std::string& part : wrapped(text, width_ - kIndent)) line(std::string(kIndent, ' ') + part);
  }

  template <typename Wanted>
  void list(const char* key, const Wanted& wanted) {
    bool first = true;
    for (const RemedyTrial& trial : plan_.single) {
      if (!wanted(trial)) continue;
      if (first) heading(key);
      first = false;
      entry(trial);
    }
  }

  void entry(const RemedyTrial& trial) {
    const std::size_t start = out_.size();
    detail(remedies_name(trial, language_));
    out_.replace(start, kIndent, right_aligned(std::to_string(++number_), kIndent - 2) + ". ");
    detail(say(language_, "plan.saves", size_text(trial.saved), size_text(trial.device),
               size_text(plan_.now.verdict.capacity), message(answer_word(trial.answer), language_)));
    detail(say(language_, "price", price_text(trial, language_)));
    for (const std::string& setting : settings_(trial)) detail(setting);
  }

  void nothing() {
    heading("plan.nothing");
    if (!plan_.smallest) return;
    line(say(language_, "plan.least", size_text(plan_.smallest->device)));
    detail(remedies_name(*plan_.smallest, language_));
    for (const std::string& setting : settings_(*plan_.smallest)) detail(setting);
  }

  void cards() {
    if (plan_.card_then)
      line(say(language_, "plan.card.then", plan_.card_then->short_name, size_text(plan_.card_then->usable)));
    if (plan_.card_now)
      line(say(language_, "plan.card.now", plan_.card_now->short_name, size_text(plan_.card_now->usable)));
    else
      line(std::string(message("plan.card.none", language_)));
    if (plan_.cards)
      line(say(language_, plan_.cards->sharded ? "plan.cards.zero" : "plan.cards", plan_.cards->count,
               size_text(plan_.cards->device)));
  }

  const RemedyPlan& plan_;
  Language language_;
  std::size_t width_;
  const SettingLines& settings_;
  std::string out_;
  int number_ = 0;
};

}  // namespace

std::string settings_text(const std::vector<PlanSetting>& settings) {
  std::string text;
  for (const PlanSetting& setting : settings) {
    const PlanFieldRow* row = find_plan_field(setting.key);
    if (!text.empty()) text += " ";
    if (row == nullptr || row->flag.empty())
      text += "--set " + setting.key + "=" + setting.text;
    else if (row->values == "true false")
      text += setting.text == "true" ? row->flag : "--no-" + row->flag.substr(2);
    else
      text += row->flag + " " + setting.text;
  }
  return text;
}

std::string settings_text(const RemedyTrial& trial) { return settings_text(trial.settings()); }

std::string price_text(const RemedyTrial& trial, Language language) {
  std::string text(message(kAccuracyKeys[static_cast<std::size_t>(trial.accuracy)], language));
  const auto add = [&](const std::string& part) { text.append(message("list.comma", language)).append(part); };
  if (trial.extra_compute > 0) add(say(language, "price.compute", tenths(trial.extra_compute)));
  if (trial.communication > 0) add(say(language, "price.send", size_text(trial.communication)));
  if (trial.host_transfer > 0) add(say(language, "price.host", size_text(trial.host_transfer)));
  return text;
}

std::string remedies_name(const RemedyTrial& trial, Language language) {
  std::string text;
  for (const Remedy& remedy : trial.remedies) {
    if (!text.empty()) text += " + ";
    text += message("remedy." + remedy.id, language);
  }
  return text;
}

std::string render_remedies(const RemedyPlan& plan, Language language, std::size_t width,
                            const SettingLines& settings) {
  return RemediesPage(plan, language, width, settings).render();
}

}  // namespace membill::report

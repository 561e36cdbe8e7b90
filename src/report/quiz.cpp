// explain --quiz: ten questions on the job, with numbers of its own.
#include <algorithm>

#include "report/explain.h"
#include "report/explain_parts.h"
#include "report/formula.h"
#include "report/text.h"

namespace membill::report {
namespace {

// `bytes` for each of `count`, one decimal.
std::string each_text(std::int64_t bytes, std::int64_t count) {
  if (count <= 0) return "0";
  const std::int64_t tenths = bytes / count * 10 + (bytes % count * 10 + count / 2) / count;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

class Quiz {
 public:
  Quiz(const Report& report, Language language)
      : report_(report), language_(language), peak_(report.totals.requested.likely.value_or(0)) {}

  std::string text() {
    out_ = head_lines(report_, language_);
    parameters();
    moments();
    sizes();
    remedies();
    reserved();
    question("quiz.conventions");
    for (const ThumbRule& rule : thumb_rules())
      out_ += "    " + std::to_string(rule.trained) + ": " + std::string(message(rule.key, language_)) + "\n";
    return std::move(out_);
  }

 private:
  void question(const std::string& key) {
    out_ += "\n" + std::to_string(++number_) + ". " + std::string(message(key + ".q", language_)) + "\n";
  }
  void answer(const std::string& text) { out_ += "    " + text + "\n"; }

  template <typename... Args>
  void ask(const std::string& key, const Args&... args) {
    question(key);
    answer(say(language_, key + ".a", args...));
  }

  void parameters() {
    const std::int64_t all = report_.model.parameters.value_or(0),
                       trained = report_.model.trainable_parameters.value_or(0);
    ask("quiz.count", count_text(all), count_text(trained), share_text(trained, all));
    const std::int64_t gradients = highest_of(report_, "gradients"), states = highest_of(report_, "optimizer");
    ask("quiz.bytes", size_text(gradients), size_text(states), count_text(trained),
        each_text(gradients + states, trained));
  }

  void moments() {
    const Moment* second = second_moment(report_);
    ask("quiz.peak", message(report_.peak_moment, language_), size_text(peak_),
        message(second == nullptr ? report_.peak_moment : second->name, language_),
        size_text(second == nullptr ? peak_ : second->requested));
  }

  void sizes() {
    std::int64_t grows = 0;
    for (const LineItem& item : report_.items)
      if (item.where == Place::device && item.at_peak.value_or(0) > 0)
        grows += part_with(item.formula, report_.symbols, {"b", "N"});
    ask("quiz.batch", size_text(grows));
    const LineItem* largest = largest_at_peak(report_);
    if (largest == nullptr) return;
    ask("quiz.largest", item_name(*largest, language_), share_text(*largest->at_peak, peak_), largest->formula,
        size_text(*largest->at_peak));
  }

  void remedies() {
    ask("quiz.zero2", size_text(at_peak(report_, "gradients") + at_peak(report_, "optimizer")), size_text(peak_));
    ask("quiz.checkpoint", size_text(at_peak(report_, "activations.block")),
        size_text(at_peak(report_, "activations.boundaries")));
    const std::int64_t trained = report_.model.trainable_parameters.value_or(0);
    const std::int64_t two = highest_of(report_, "optimizer.m") + highest_of(report_, "optimizer.v");
    ask("quiz.adam8", size_text(two), each_text(two, trained), size_text(std::min(two, 2 * trained)));
  }

  void reserved() {
    const Totals& t = report_.totals;
    ask("quiz.reserved", size_text(peak_), size_text(t.allocated.likely), size_text(t.reserved.likely));
  }

  const Report& report_;
  Language language_;
  std::int64_t peak_;
  std::string out_;
  int number_ = 0;
};

}  // namespace

std::string quiz(const Report& report, Language language) { return Quiz(report, language).text(); }

}  // namespace membill::report

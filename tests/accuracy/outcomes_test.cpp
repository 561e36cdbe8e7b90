// membill's verdict on runs of which it is known whether they fitted: reports of out-of-memory errors, and published runs that ran.
#include <fmt/format.h>

#include <map>
#include <string>

#include "membill/estimate.h"
#include "support/catch.h"
#include "support/outcome_rows.h"
#include "support/places.h"
#include "support/published_rows.h"
#include "support/readme_row.h"

namespace membill::accuracy {
namespace {

constexpr double kComfortable = 0.85;  // of the card: below it a run should be said to fit

struct Verdicts {
  int fits = 0, tight = 0, does_not_fit = 0;
  [[nodiscard]] int all() const { return fits + tight + does_not_fit; }
  void add(Answer answer) {
    fits += answer == Answer::fits;
    tight += answer == Answer::tight;
    does_not_fit += answer == Answer::does_not_fit;
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("{} fits, {} tight, {} does-not-fit", fits, tight, does_not_fit);
  }
};

std::string part(int count, const Verdicts& of) { return fmt::format("{} of {}", count, of.all()); }

class Tally {
 public:
  Verdicts ran, comfortable, out_of_memory;
  int unexplained_fits = 0;  // said of runs that ran out of memory, without a cause in the row

  void add_outcome(const OutcomeRow& row) {
    const std::string why = !row.not_a_job.empty() ? row.not_a_job : row.job.not_billed;
    if (!why.empty()) return skip(row.repository + ", " + why);
    if (!row.complete) return skip(row.repository + ", the report does not say every input");
    const Answer answer = judge(row.job);
    if (answer == Answer::unknown) return skip(row.repository + ", no block program for " + row.job.model.model_type);
    (row.ran ? ran : out_of_memory).add(answer);
    unexplained_fits += !row.ran && answer == Answer::fits && row.cause.empty();
    note_wrong(row.id, row.ran, answer, row.cause);
  }

  // A published device total: the run ran on this card.
  void add_published(const PublishedRow& row) {
    if (!row.not_a_job.empty() || !row.job.not_billed.empty() || !row.job.hardware.gpu) return;
    for (const Figure& figure : row.figures) {
      if (figure.phase != "peak" || figure.kind == "allocated") continue;
      const Answer answer = judge(row.job);
      if (answer == Answer::unknown) return;
      ran.add(answer);
      const double part = static_cast<double>(figure.bytes) / static_cast<double>(row.job.hardware.usable()->count());
      if (part < kComfortable) comfortable.add(answer);
      note_wrong(row.id, true, answer, "");
    }
  }

  [[nodiscard]] std::string text() const {
    std::string text = fmt::format("ran: {}\nran, below 85 % of the card: {}\nran out of memory: {}\n", ran.text(),
                                   comfortable.text(), out_of_memory.text());
    text += "not judged:\n";
    for (const auto& [why, count] : skipped_) text += fmt::format("  {:>3} {}\n", count, why);
    return text + "wrong or undecided:\n" + wrong_;
  }

 private:
  static Answer judge(const RowJob& job) { return estimate(job.model, job.plan, job.hardware).verdict.answer; }

  void skip(const std::string& why) { ++skipped_[why]; }

  void note_wrong(const std::string& id, bool ran_there, Answer answer, const std::string& cause) {
    if (answer == (ran_there ? Answer::fits : Answer::does_not_fit)) return;
    const char* said = answer == Answer::fits ? "fits" : answer == Answer::tight ? "tight" : "does-not-fit";
    wrong_ += fmt::format("  {}: {}, said {}{}\n", id, ran_there ? "ran" : "ran out of memory", said,
                          cause.empty() ? "" : "; " + cause);
  }

  std::map<std::string, int> skipped_;
  std::string wrong_;
};

}  // namespace

TEST_CASE("verdicts agree with reported outcomes") {
  Tally tally;
  for (const OutcomeRow& row : read_outcome_rows(test::in_source("data/measurements/outcomes.jsonl")))
    tally.add_outcome(row);
  for (const PublishedRow& row : read_published_rows(test::in_source("data/measurements/published.jsonl")))
    tally.add_published(row);
  fmt::print("{}", tally.text());
  CHECK(tally.unexplained_fits == 0);
  CHECK(20 * tally.ran.does_not_fit <= tally.ran.all());
  CHECK(5 * tally.comfortable.fits >= 4 * tally.comfortable.all());
  CHECK(5 * tally.out_of_memory.does_not_fit >= 3 * tally.out_of_memory.all());
  CHECK(stale_readme_row("runs that ran, said to fit", {part(tally.ran.fits, tally.ran), "", "", ""}).empty());
  CHECK(stale_readme_row("runs that ran out of memory, said not to fit",
                         {part(tally.out_of_memory.does_not_fit, tally.out_of_memory), "", "", ""})
            .empty());
}

}  // namespace membill::accuracy

// From a job that does not fit to the shortest list of changes that makes it fit, decided by estimating each of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "membill/catalog.h"
#include "membill/estimate.h"

namespace membill {

// What a change does to the result of training, the least harm first.
enum class Accuracy : std::uint8_t {
  same,        // the same arithmetic, summed in another order at most
  fewer_bits,  // something that is trained or computed is kept in fewer bits
  adapters,    // adapters train, the base stays as it is
  quantized,   // the base itself is stored in 8 or 4 bits
  less_data,   // tokens are cut off
};

// One change of the plan.
struct Remedy {
  std::string id;                     // "checkpointing"
  std::string group;                  // remedies of one group exclude each other
  std::vector<PlanSetting> settings;  // keys of a job file and what they become
  Accuracy accuracy = Accuracy::same;
  std::int64_t extra_compute = 0;  // in tenths of a percent of the step's matrix products
  std::int64_t communication = 0;  // bytes that each card sends a step beyond what it sends now
  std::int64_t host_transfer = 0;  // bytes that cross the card's host link a step
};

// Remedies applied together, and what the job then needs.
struct RemedyTrial {
  std::vector<Remedy> remedies;
  TrainingPlan plan;        // with them
  std::int64_t saved = 0;   // of the device total
  std::int64_t device = 0;  // likely
  std::optional<std::int64_t> headroom;
  Answer answer = Answer::none;
  Accuracy accuracy = Accuracy::same;                                    // the worst of them
  std::int64_t extra_compute = 0, communication = 0, host_transfer = 0;  // their sums
  [[nodiscard]] std::vector<PlanSetting> settings() const;               // of all remedies, in their order
};

// The smallest card of the catalogue on which a job survives.
struct CardFound {
  std::string short_name;
  std::int64_t usable = 0;
  std::int64_t device = 0;  // what the job needs there
};

// The fewest cards like the job's own, a power of two, over which it fits: as it is where it shards its weights, else with ZeRO-3.
struct CardsFound {
  std::int64_t count = 0;
  std::int64_t device = 0;  // what the job then needs of each
  bool sharded = false;     // ZeRO-3 is the one other change
};

struct RemedyPlan {
  Report now;                       // the job as it is
  std::vector<RemedyTrial> single;  // each change by itself that saves something: those that suffice first
  // Where no single one suffices without the host link: the shortest lists that do, best first; at most five. Where one suffices that uses
  // the host link, lists without it.
  std::vector<RemedyTrial> together;
  std::optional<CardFound> card_now;    // without any change
  std::optional<RemedyTrial> smallest;  // the least that the changes together can reach, where nothing suffices
  std::optional<CardFound> card_then;   // with those
  std::optional<CardsFound> cards;
  [[nodiscard]] bool fits_now() const {
    return now.verdict.answer == Answer::fits || now.verdict.answer == Answer::tight;
  }
};

// Changes that the plan allows, whether or not they help.
[[nodiscard]] std::vector<Remedy> remedies(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware);

// `cards`: where to look for a card that is large enough. REQUIRES: a card of known size; validate() finds nothing. Throws InputError when
// activations are unknown.
[[nodiscard]] RemedyPlan find_remedies(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
                                       const std::vector<GpuSpec>& cards);

}  // namespace membill

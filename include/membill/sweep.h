// A sweep: one row of figures for each case of a cross product, in a stable order, on every core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "membill/estimate.h"

namespace membill {

// Everything of a case but its batch and its seq.
struct SweepBase {
  TrainingPlan plan;
  Hardware hardware;
  std::vector<Problem> problems;  // found while the plan was read; any refuses the base's cases
};

// Cases are numbered from 0: base by base, batch by batch, seq by seq.
struct Sweep {
  const ModelSpec* model = nullptr;
  std::size_t bases = 1;
  std::function<SweepBase(std::size_t)> base;  // called from several threads at once
  std::vector<std::int64_t> batches, seqs;     // at least one each
  bool replay = false;                         // fill in what only the replay knows
  std::size_t first = 0;                       // cases before are left out
  std::size_t part = 0, parts = 1;             // only cases whose number leaves `part` when divided by `parts`
  unsigned threads = 1;                        // at least 1

  [[nodiscard]] std::size_t cases() const { return bases * batches.size() * seqs.size(); }
};

struct SweepCase {
  std::size_t number = 0;
  std::size_t base = 0;
  std::int64_t batch = 1, seq = 1;
  std::int64_t tokens = 0;             // of one optimizer step of all cards
  std::optional<CaseFigures> figures;  // none: refused
  std::string problem;                 // why it was refused, one line
};

// Computes the cases and hands them to `emit` in order, a block at a time, from the calling thread, until `emit` returns false.
// REQUIRES: parts > part; the model's sizes are known as far as estimate() needs them.
void run_sweep(const Sweep& sweep, const std::function<bool(std::span<const SweepCase>)>& emit);

// What a Pareto front weighs: less of the first two is better, more of the others.
enum class ParetoKey : std::uint8_t { memory, gpus, tokens, batch, seq, rank };

struct SweepFilter {
  bool fit = false;               // only cases that survive on the card
  std::size_t top = 0;            // the cases with most tokens a step, least memory first among equals; 0: all
  std::vector<ParetoKey> pareto;  // only cases that no other beats in one key without losing in another; empty: all
  [[nodiscard]] bool needs_all() const { return top > 0 || !pareto.empty(); }
};

// Keeps the cases that a filter lets through. Where the filter needs all cases to decide, take() holds back and finish() hands out.
class SweepSieve {
 public:
  // `rank` and `gpus` of a base, for the Pareto keys.
  SweepSieve(SweepFilter filter, std::function<std::int64_t(ParetoKey, const SweepCase&)> value);
  // Whether the case is to be printed now.
  [[nodiscard]] bool take(const SweepCase& one);
  // What was held back, in order: of top, the best first; else by number.
  [[nodiscard]] std::vector<SweepCase> finish();

 private:
  [[nodiscard]] bool beats(const SweepCase& a, const SweepCase& b) const;
  void keep_front(const SweepCase& one);
  void keep_best(std::size_t most);

  SweepFilter filter_;
  std::function<std::int64_t(ParetoKey, const SweepCase&)> value_;
  std::vector<SweepCase> held_;
};

}  // namespace membill

#include "trace/peak_formula.h"

#include <algorithm>

#include "membill/units.h"

namespace membill {
namespace {

using Coefficients = std::vector<std::int64_t>;

// Every product of symbols is at least 1, so a sum whose coefficients are nowhere higher is never higher.
bool is_covered(const Coefficients& lower, const Coefficients& higher) {
  return std::equal(lower.begin(), lower.end(), higher.begin(), std::less_equal<>());
}

bool is_zero(const Coefficients& sum) {
  return std::all_of(sum.begin(), sum.end(), [](std::int64_t x) { return x == 0; });
}

void add(Coefficients& sum, const Coefficients& part, std::int64_t times = 1) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = checked_add(sum[i], checked_mul(times, part[i]));
}

// A decision that comes out so for all values of at least 1.
bool is_certain(const Decision& decision, const Size& reduced) {
  const auto& terms = reduced.terms();
  const bool none_negative =
      std::all_of(terms.begin(), terms.end(), [](const Size::Term& term) { return term.coefficient >= 0; });
  return decision.kind == Decision::Kind::not_negative && decision.outcome && none_negative;
}

}  // namespace

// Follows fold_peak's walk with polynomials in place of numbers.
class PeakFormula::Walk {
 public:
  Walk(const Trace& trace, const SymbolTable& symbols, PeakFormula& result) : trace_(trace), result_(result) {
    std::vector<Size> sizes;
    for (const Size& size : trace.sizes) sizes.push_back(symbols.reduced(size));
    std::vector<Size::Monomial> monomials{0};
    for (const Size& size : sizes)
      for (const Size::Term& term : size.terms())
        if (std::find(monomials.begin(), monomials.end(), term.monomial) == monomials.end())
          monomials.push_back(term.monomial);
    for (const Size::Monomial monomial : monomials) result_.products_.push_back(Size::product(monomial));
    for (const Size& size : sizes) {
      Coefficients& coefficients = sizes_.emplace_back(monomials.size());
      for (const Size::Term& term : size.terms()) {
        const auto at = std::find(monomials.begin(), monomials.end(), term.monomial);
        coefficients[static_cast<std::size_t>(at - monomials.begin())] = term.coefficient;
      }
    }
    sum_.resize(monomials.size());
  }

  // Whether every loop has a fixed number of turns.
  [[nodiscard]] bool is_possible() const {
    return std::all_of(trace_.events.begin(), trace_.events.end(), [this](const Event& event) {
      if (event.kind != EventKind::loop) return true;
      const Coefficients& turns = sizes_[static_cast<std::size_t>(event.size)];
      return std::all_of(turns.begin() + 1, turns.end(), [](std::int64_t x) { return x == 0; });
    });
  }

  void run() { walk(0, trace_.events.size()); }

 private:
  [[nodiscard]] const Coefficients& value(const Event& event) const {
    return sizes_[static_cast<std::size_t>(event.size)];
  }
  [[nodiscard]] std::int64_t turns(const Event& event) const { return value(event).front(); }

  void walk(std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      const Event& event = trace_.events[i];
      switch (event.kind) {
        case EventKind::allocate:
          add(sum_, value(event));
          if (i + 1 >= to || trace_.events[i + 1].kind != EventKind::allocate) note_sum();
          break;
        case EventKind::release: add(sum_, value(event), -1); break;
        case EventKind::moment:
          moment_ = i < trace_.billed_from ? -1 : event.slot;
          note_sum();
          break;
        case EventKind::loop:
          event.index == 1 ? repeat(i) : layers(i);
          i = static_cast<std::size_t>(event.slot);
          break;
        case EventKind::end_loop:
        case EventKind::empty_cache: break;
      }
    }
  }

  // What lies inside is highest in the first turn or in the last.
  void layers(std::size_t loop) {
    const Event& event = trace_.events[loop];
    const Coefficients start = sum_;
    std::vector<Candidate> before;
    before.swap(result_.candidates_);
    walk(loop + 1, static_cast<std::size_t>(event.slot));
    Coefficients net = sum_;
    add(net, start, -1);
    std::vector<Candidate> inside;
    inside.swap(result_.candidates_);
    result_.candidates_.swap(before);
    const bool grows = !is_zero(net) && turns(event) > 1;
    for (const Candidate& candidate : inside) {
      note(candidate);
      if (!grows) continue;
      Candidate last = candidate;
      add(last.sum, net, turns(event) - 1);
      note(last);
    }
    add(sum_, net, turns(event) - 1);
  }

  void repeat(std::size_t loop) {
    const Event& event = trace_.events[loop];
    const auto end = static_cast<std::size_t>(event.slot);
    Coefficients net = sum_;
    walk(loop + 1, end);
    if (turns(event) < 2) return;
    for (std::size_t i = 0; i < net.size(); ++i) net[i] = checked_sub(sum_[i], net[i]);
    add(sum_, net, turns(event) - 2);
    walk(loop + 1, end);
  }

  void note_sum() {
    if (moment_ >= 0) note({sum_, moment_});
  }

  void note(const Candidate& candidate) {
    std::vector<Candidate>& all = result_.candidates_;
    const auto covers = [&](const Candidate& other) { return is_covered(candidate.sum, other.sum); };
    if (std::any_of(all.begin(), all.end(), covers)) return;
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](const Candidate& other) { return is_covered(other.sum, candidate.sum); }),
              all.end());
    all.push_back(candidate);
  }

  const Trace& trace_;
  PeakFormula& result_;
  std::vector<Coefficients> sizes_;
  Coefficients sum_;
  std::int32_t moment_ = -1;
};

std::optional<PeakFormula> PeakFormula::of(const Trace& trace, const SymbolTable& symbols) {
  PeakFormula result;
  Walk walk(trace, symbols, result);
  if (!walk.is_possible()) return std::nullopt;
  walk.run();
  for (const Decision& decision : symbols.decisions()) {
    Decision kept = decision;
    kept.size = symbols.reduced(decision.size);
    if (!is_certain(kept, kept.size)) result.decisions_.push_back(std::move(kept));
  }
  return result;
}

PeakFormula::Peak PeakFormula::evaluate(const SymbolTable& symbols) const {
  Coefficients values;
  values.reserve(products_.size());
  for (const Size& product : products_) values.push_back(symbols.evaluate(product));
  Peak peak;
  for (const Candidate& candidate : candidates_) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum = checked_add(sum, checked_mul(candidate.sum[i], values[i]));
    if (sum > peak.highest) peak = {sum, candidate.moment};
  }
  return peak;
}

bool PeakFormula::holds(const SymbolTable& symbols) const {
  return std::all_of(decisions_.begin(), decisions_.end(),
                     [&](const Decision& decision) { return symbols.holds(decision); });
}

}  // namespace membill

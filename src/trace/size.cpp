#include "trace/size.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "membill/units.h"

namespace membill {
namespace {

constexpr std::size_t kMaxFactors = 8;

// Both are sorted: they are merged.
Size::Monomial product(Size::Monomial a, Size::Monomial b) {
  if (a == 0) return b;
  if (b == 0) return a;
  Size::Monomial packed = 0;
  std::size_t count = 0;
  while ((a | b) != 0) {
    if (count == kMaxFactors) throw std::logic_error("a size has more than 8 factors");
    Size::Monomial& from = a != 0 && (b == 0 || (a & 0xFFU) < (b & 0xFFU)) ? a : b;
    packed |= (from & 0xFFU) << (8 * count++);
    from >>= 8U;
  }
  return packed;
}

bool comes_before(const Size::Term& a, const Size::Term& b) { return a.monomial < b.monomial; }

}  // namespace

Size::Size(std::int64_t constant) {
  if (constant != 0) few_[count_++] = {0, constant};
}

void Size::add(Term term) {
  if (term.coefficient == 0) return;
  Term* const first = many_.empty() ? few_.data() : many_.data();
  Term* const last = first + terms().size();
  Term* const at = std::lower_bound(first, last, term, comes_before);
  if (at != last && at->monomial == term.monomial) {
    at->coefficient = checked_add(at->coefficient, term.coefficient);
    if (at->coefficient != 0) return;
    std::move(at + 1, last, at);
    many_.empty() ? static_cast<void>(--count_) : many_.pop_back();
  } else if (many_.empty() && count_ < few_.size()) {
    std::move_backward(at, last, last + 1);
    *at = term;
    ++count_;
  } else {
    const auto place = at - first;
    if (many_.empty()) many_.assign(first, last);
    count_ = 0;
    many_.insert(many_.begin() + place, term);
  }
}

Size Size::symbol(SymbolId id) {
  Size size;
  size.add({id, 1});
  return size;
}

Size Size::product(Monomial monomial) {
  Size size;
  size.add({monomial, 1});
  return size;
}

Size& Size::operator+=(const Size& other) {
  for (const Term& term : other.terms()) add(term);
  return *this;
}

Size operator*(const Size& a, const Size& b) {
  Size result;
  if (a.many_.empty() && b.many_.empty() && a.count_ == 1 && b.count_ == 1) {
    const Size::Term &x = a.few_[0], &y = b.few_[0];
    result.few_[0] = {product(x.monomial, y.monomial), checked_mul(x.coefficient, y.coefficient)};
    result.count_ = 1;
    return result;
  }
  for (const Size::Term& x : a.terms())
    for (const Size::Term& y : b.terms())
      result.add({product(x.monomial, y.monomial), checked_mul(x.coefficient, y.coefficient)});
  return result;
}

std::size_t SizeHash::operator()(const Size& size) const {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const Size::Term& term : size.terms()) {
    hash = (hash ^ term.monomial) * 0x100000001b3ULL;
    hash = (hash ^ static_cast<std::uint64_t>(term.coefficient)) * 0x100000001b3ULL;
    hash ^= hash >> 29U;
  }
  return static_cast<std::size_t>(hash);
}

Size SymbolTable::add(std::string name, std::string meaning, Definition definition) {
  if (const auto known = ids_.find(name); known != ids_.end()) return Size::symbol(known->second);
  if (entries_.size() >= 255) throw std::logic_error("more than 255 symbols");
  const std::int64_t value = definition.rule == Rule::given ? 0 : compute(definition);
  const bool named = std::find(varying_names_.begin(), varying_names_.end(), name) != varying_names_.end();
  const bool varying = named || varies(definition.first) || varies(definition.second);
  entries_.push_back({name, std::move(meaning), value, definition.rule != Rule::given, varying});
  definitions_.push_back(std::move(definition));
  const auto id = static_cast<SymbolId>(entries_.size());
  ids_.emplace(std::move(name), id);
  return Size::symbol(id);
}

Size SymbolTable::define(std::string_view name, std::string_view meaning, std::int64_t value) {
  Size result = add(std::string(name), std::string(meaning), {});
  Entry& entry = entries_.at(ids_.at(std::string(name)) - 1U);
  if (entry.value != 0 && entry.value != value) throw std::logic_error("symbol " + entry.name + " has two values");
  entry.value = value;
  return result;
}

Size SymbolTable::define_next(std::string_view name, std::string_view meaning, std::int64_t value) {
  for (int copy = 1;; ++copy) {
    const std::string candidate = std::string(name) + (copy == 1 ? "" : std::to_string(copy));
    const auto known = ids_.find(candidate);
    if (known == ids_.end() || entries_.at(known->second - 1U).value == value) return define(candidate, meaning, value);
  }
}

Size SymbolTable::ceil_div(const Size& numerator, const Size& denominator) {
  if (denominator == Size(1)) return numerator;
  const auto constant = [](const Size& size) {
    return size.terms().empty() || (size.terms().size() == 1 && size.terms()[0].monomial == 0);
  };
  if (constant(numerator) && constant(denominator))
    return membill::ceil_div(value_of(numerator), value_of(denominator));
  return add("⌈" + text(numerator) + "/" + text(denominator) + "⌉", "rounded up",
             {Rule::ceil_div, numerator, denominator});
}

Size SymbolTable::next_power_of_two(const Size& size) {
  return add("pow2(" + text(size) + ")", "next power of two", {Rule::next_power_of_two, size, {}});
}

Size SymbolTable::alias(std::string_view name, std::string_view meaning, const Size& definition) {
  return add(std::string(name), std::string(meaning), {Rule::same, definition, {}});
}

std::int64_t SymbolTable::compute(const Definition& definition) const {
  const std::int64_t first = value_of(definition.first);
  switch (definition.rule) {
    case Rule::ceil_div: return membill::ceil_div(first, value_of(definition.second));
    case Rule::next_power_of_two: return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(first)));
    case Rule::same:
    case Rule::given: return first;
  }
  return first;
}

std::int64_t SymbolTable::evaluate(const Size& size) const {
  const std::int64_t value = value_of(size);
  if (deciding_ && varies(size)) decided({Decision::Kind::value, size, value, true});
  return value;
}

bool SymbolTable::at_least(const Size& a, const Size& b) const {
  if (a == b) return true;
  if (!varies(a) && !varies(b)) return value_of(a) >= value_of(b);
  return decided({Decision::Kind::not_negative, a - b, 0, value_of(a) >= value_of(b)});
}

bool SymbolTable::equal(const Size& a, const Size& b) const {
  if (a == b) return true;
  if (!varies(a) && !varies(b)) return value_of(a) == value_of(b);
  return decided({Decision::Kind::zero, a - b, 0, value_of(a) == value_of(b)});
}

bool SymbolTable::is_multiple(const Size& size, std::int64_t unit) const {
  const bool outcome = value_of(size) % unit == 0;
  return varies(size) ? decided({Decision::Kind::multiple, size, unit, outcome}) : outcome;
}

bool SymbolTable::decided(Decision decision) const {
  const bool outcome = decision.outcome;
  if (deciding_ && std::find(decisions_.begin(), decisions_.end(), decision) == decisions_.end())
    decisions_.push_back(std::move(decision));
  return outcome;
}

bool SymbolTable::holds(const Decision& decision) const {
  const std::int64_t value = value_of(decision.size);
  switch (decision.kind) {
    case Decision::Kind::not_negative: return (value >= 0) == decision.outcome;
    case Decision::Kind::zero: return (value == 0) == decision.outcome;
    case Decision::Kind::multiple: return (value % decision.operand == 0) == decision.outcome;
    case Decision::Kind::value: break;
  }
  return value == decision.operand;
}

bool SymbolTable::varies(const Size& size) const {
  for (const Size::Term& term : size.terms())
    for (Size::Monomial rest = term.monomial; rest != 0; rest >>= 8U)
      if (entries_[(rest & 0xFFU) - 1U].varies) return true;
  return false;
}

Size SymbolTable::reduced(const Size& size) const {
  Size result;
  for (const Size::Term& term : size.terms()) {
    Size product(term.coefficient);
    for (Size::Monomial rest = term.monomial; rest != 0; rest >>= 8U) {
      const auto id = static_cast<SymbolId>(rest & 0xFFU);
      const Entry& entry = entries_[id - 1U];
      const Definition& definition = definitions_[id - 1U];
      if (!entry.varies)
        product = product * Size(entry.value);
      else
        product = product * (definition.rule == Rule::same ? reduced(definition.first) : Size::symbol(id));
    }
    result += product;
  }
  return result;
}

std::int64_t SymbolTable::value_of(const Size& size) const {
  std::int64_t sum = 0;
  for (const Size::Term& term : size.terms()) {
    std::int64_t value = term.coefficient;
    for (Size::Monomial rest = term.monomial; rest != 0; rest >>= 8U)
      value = checked_mul(value, entries_[(rest & 0xFFU) - 1U].value);
    sum = checked_add(sum, value);
  }
  return sum;
}

void SymbolTable::assign(std::string_view name, std::int64_t value) {
  entries_.at(ids_.at(std::string(name)) - 1U).value = value;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (definitions_[i].rule != Rule::given) entries_[i].value = compute(definitions_[i]);
}

std::string SymbolTable::text(const Size& size) const {
  if (size.terms().empty()) return "0";
  std::string result;
  const auto terms = size.terms();
  for (std::size_t i = terms.size(); i-- > 0;) {
    const Size::Term& term = terms[i];
    const std::int64_t magnitude = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    if (!result.empty())
      result += term.coefficient < 0 ? " - " : " + ";
    else if (term.coefficient < 0)
      result += "-";
    std::string factors = magnitude != 1 || term.monomial == 0 ? std::to_string(magnitude) : std::string();
    for (Size::Monomial rest = term.monomial; rest != 0; rest >>= 8U) {
      if (!factors.empty()) factors += "·";
      factors += entries_[(rest & 0xFFU) - 1U].name;
    }
    result += factors;
  }
  return result;
}

}  // namespace membill

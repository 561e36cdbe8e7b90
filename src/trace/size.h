// Sizes as polynomials over named symbols: "8·N·h + 4·N". Built once per plan, evaluated per case, printed by explain.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace membill {

// Index of a symbol in its SymbolTable, from 1. 0 is no symbol.
using SymbolId = std::uint8_t;

// A polynomial with integer coefficients over symbols of one SymbolTable, at most 8 factors to a term.
// Coefficient arithmetic is checked (OverflowError); a term of more than 8 factors throws std::logic_error.
class Size {
 public:
  // Symbols of one product, sorted, packed a byte each; 0 is the empty product.
  using Monomial = std::uint64_t;
  struct Term {
    Monomial monomial = 0;
    std::int64_t coefficient = 0;
    bool operator==(const Term&) const = default;
  };

  Size() = default;
  Size(std::int64_t constant);  // NOLINT(google-explicit-constructor): numbers are sizes
  static Size symbol(SymbolId id);
  static Size product(Monomial monomial);

  // Sorted by monomial, no zero coefficient.
  [[nodiscard]] std::span<const Term> terms() const {
    return many_.empty() ? std::span<const Term>(few_.data(), count_) : std::span<const Term>(many_);
  }
  [[nodiscard]] bool is_zero() const { return terms().empty(); }
  bool operator==(const Size& other) const { return std::ranges::equal(terms(), other.terms()); }
  Size& operator+=(const Size& other);
  friend Size operator+(Size a, const Size& b) { return a += b; }
  friend Size operator-(Size a, const Size& b) { return a += b * Size(-1); }
  friend Size operator*(const Size& a, const Size& b);

 private:
  void add(Term term);

  // Nearly every size has one or two terms; these need no memory of their own.
  std::array<Term, 2> few_{};
  std::size_t count_ = 0;
  std::vector<Term> many_;  // all terms, when they once were more than two
};

struct SizeHash {
  std::size_t operator()(const Size& size) const;
};

// A comparison that was made while a trace was written, and how it came out. For other values of the symbols the trace is the same as
// long as every decision comes out the same.
struct Decision {
  enum class Kind : std::uint8_t {
    not_negative,  // size >= 0
    zero,          // size == 0
    multiple,      // size % operand == 0
    value,         // size == operand: what was asked for is the value itself
  };
  Kind kind = Kind::value;
  Size size;
  std::int64_t operand = 0;
  bool outcome = true;
  bool operator==(const Decision&) const = default;
};

// The symbols of one plan: their names, meanings and present values, and those derived from others.
class SymbolTable {
 public:
  struct Entry {
    std::string name, meaning;
    std::int64_t value = 0;
    bool derived = false;
    bool varies = false;  // a case may give it another value: vary(), or derived from such a symbol
  };

  // A symbol with a given value >= 0. A second definition of a name returns the first's id; its value must agree.
  Size define(std::string_view name, std::string_view meaning, std::int64_t value);
  // The same for a name that may stand for several values: f, then f2, f3 ...
  Size define_next(std::string_view name, std::string_view meaning, std::int64_t value);
  // ⌈numerator / denominator⌉. A constant folds. REQUIRES: the denominator evaluates above 0.
  Size ceil_div(const Size& numerator, const Size& denominator);
  // The least power of two that is not below `size`.
  Size next_power_of_two(const Size& size);
  // A product that formulas call by one name (N for b·s).
  Size alias(std::string_view name, std::string_view meaning, const Size& definition);

  [[nodiscard]] std::int64_t evaluate(const Size& size) const;

  // What code that writes a trace may ask of sizes. Answers that depend on a symbol that varies are kept in decisions(), those of
  // evaluate() as the value itself; so trace code that asks evaluate() for more than it needs only makes fewer cases share a trace.
  [[nodiscard]] bool at_least(const Size& a, const Size& b) const;  // a >= b
  [[nodiscard]] bool equal(const Size& a, const Size& b) const;
  [[nodiscard]] bool is_multiple(const Size& size, std::int64_t unit) const;
  // Says that cases will give the symbol `name` other values. REQUIRES: it is not defined yet.
  void vary(std::string_view name) { varying_names_.emplace_back(name); }
  // Ends the writing of the trace: evaluate() keeps nothing any more.
  void stop_deciding() { deciding_ = false; }
  [[nodiscard]] const std::vector<Decision>& decisions() const { return decisions_; }
  [[nodiscard]] bool holds(const Decision& decision) const;
  // `size` with the present values of what does not vary, over symbols that are given or rounded: names for products are spelled out.
  [[nodiscard]] Size reduced(const Size& size) const;

  // Changes the value of a symbol that define() made, and every symbol derived from it.
  void assign(std::string_view name, std::int64_t value);
  [[nodiscard]] std::string text(const Size& size) const;
  [[nodiscard]] std::span<const Entry> entries() const { return entries_; }

 private:
  enum class Rule : std::uint8_t { given, ceil_div, next_power_of_two, same };
  struct Definition {
    Rule rule = Rule::given;
    Size first, second;
  };
  Size add(std::string name, std::string meaning, Definition definition);
  [[nodiscard]] std::int64_t compute(const Definition& definition) const;
  [[nodiscard]] std::int64_t value_of(const Size& size) const;
  [[nodiscard]] bool varies(const Size& size) const;
  bool decided(Decision decision) const;

  std::vector<std::string> varying_names_;
  mutable std::vector<Decision> decisions_;
  bool deciding_ = true;
  std::vector<Entry> entries_;
  std::vector<Definition> definitions_;
  std::unordered_map<std::string, SymbolId> ids_;
};

}  // namespace membill

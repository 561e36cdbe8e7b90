// Units of membill: counts of bytes and elements as checked 64-bit integers.
//
// Every byte count in membill is an exact signed 64-bit integer. Arithmetic that would leave the range throws
// OverflowError instead of wrapping; the outermost caller turns it into a problem of the input.
// GiB is 2^30 and GB is 10^9 everywhere.
#pragma once

#include <compare>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace membill {

// Thrown when a count leaves the range of a signed 64-bit integer. `what()` names the operation.
class OverflowError : public std::overflow_error {
 public:
  using std::overflow_error::overflow_error;
};

// a + b, a - b and a * b of signed 64-bit integers. Throw OverflowError instead of wrapping.
[[nodiscard]] constexpr std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) throw OverflowError("a sum exceeds 2^63");
  return r;
}
[[nodiscard]] constexpr std::int64_t checked_sub(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_sub_overflow(a, b, &r)) throw OverflowError("a difference exceeds 2^63");
  return r;
}
[[nodiscard]] constexpr std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) throw OverflowError("a product exceeds 2^63");
  return r;
}
// The least integer that is not below a / b. REQUIRES: a >= 0, b > 0.
[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
// The least multiple of `unit` that is not below a. REQUIRES: a >= 0, unit > 0.
[[nodiscard]] constexpr std::int64_t round_up(std::int64_t a, std::int64_t unit) {
  return checked_mul(ceil_div(a, unit), unit);
}

// A count of bytes. Never made from a bare integer silently; adds, subtracts and scales with overflow checks.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t count) : count_(count) {}
  [[nodiscard]] constexpr std::int64_t count() const { return count_; }
  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) {
    count_ = checked_add(count_, other.count_);
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    count_ = checked_sub(count_, other.count_);
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return a -= b; }
  friend constexpr Bytes operator*(Bytes a, std::int64_t n) { return Bytes(checked_mul(a.count_, n)); }
  friend constexpr Bytes operator*(std::int64_t n, Bytes a) { return a * n; }

 private:
  std::int64_t count_ = 0;
};

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes(static_cast<std::int64_t>(n)); }
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes(checked_mul(static_cast<std::int64_t>(n), 1LL << 10));
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes(checked_mul(static_cast<std::int64_t>(n), 1LL << 20));
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes(checked_mul(static_cast<std::int64_t>(n), 1LL << 30));
}
constexpr Bytes operator""_GB(unsigned long long n) {
  return Bytes(checked_mul(static_cast<std::int64_t>(n), 1000000000LL));
}
}  // namespace literals

// Element type of a tensor as it lies in memory.
enum class DType : std::uint8_t { fp32, bf16, fp16, fp8, int64, int32, int8, uint8, boolean };

// Bytes of one element of `type`: 8, 4, 2 or 1.
[[nodiscard]] constexpr std::int64_t bytes_per_element(DType type) {
  switch (type) {
    case DType::int64: return 8;
    case DType::fp32:
    case DType::int32: return 4;
    case DType::bf16:
    case DType::fp16: return 2;
    case DType::fp8:
    case DType::int8:
    case DType::uint8:
    case DType::boolean: return 1;
  }
  return 0;
}
// "fp32", "bf16", ... as membill spells it.
[[nodiscard]] std::string_view dtype_name(DType type);

// A size written by a person: digits, an optional decimal fraction, optional blanks, and a unit (B, KB, MB, GB, TB, KiB, MiB,
// GiB, TiB; case does not matter, "G" alone is refused as ambiguous). "0" needs no unit. A fraction that is not whole bytes is
// rounded down. Returns false and sets `why` to one clause ("needs a unit such as GiB") when the text is not a size.
[[nodiscard]] bool parse_bytes(std::string_view text, Bytes& result, std::string& why);

// A whole number in plain digits, without sign, leading zero, exponent or separator. Returns false and sets `why`.
[[nodiscard]] bool parse_count(std::string_view text, std::int64_t& result, std::string& why);

// A number of parameters: plain digits, or 7e9, 1.5e9, 7B, 1.5B, 350M, 12K (decimal multiples). Must be a whole number.
[[nodiscard]] bool parse_parameters(std::string_view text, std::int64_t& result, std::string& why);

}  // namespace membill

#include "membill/units.h"

#include <limits>
#include <string>

#include "support/catch.h"

using namespace membill;

namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

static_assert(1_KiB == 1024_B);
static_assert(1_MiB == 1024 * 1_KiB);
static_assert(1_GiB == 1024 * 1_MiB);
static_assert(1_GB == 1000000000_B);
static_assert(80_GiB - 80_GB == 5899345920_B);
static_assert(1_GiB > 1_GB);
static_assert(Bytes() == 0_B);
static_assert(2_B + 3_B == 5_B && 2_B - 3_B == Bytes(-1));
static_assert(ceil_div(0, 4) == 0 && ceil_div(1, 4) == 1 && ceil_div(4, 4) == 1 && ceil_div(5, 4) == 2);
static_assert(round_up(0, 512) == 0 && round_up(1, 512) == 512 && round_up(512, 512) == 512 &&
              round_up(513, 512) == 1024);
static_assert(ceil_div(kLargest, 2) == kLargest / 2 + 1);
static_assert(bytes_per_element(DType::fp32) == 4 && bytes_per_element(DType::bf16) == 2 &&
              bytes_per_element(DType::fp16) == 2);
static_assert(bytes_per_element(DType::fp8) == 1 && bytes_per_element(DType::int8) == 1 &&
              bytes_per_element(DType::uint8) == 1);
static_assert(bytes_per_element(DType::int64) == 8 && bytes_per_element(DType::int32) == 4 &&
              bytes_per_element(DType::boolean) == 1);

// The bytes, or the complaint.
std::string bytes_of(std::string_view text) {
  Bytes result(-1);
  std::string why;
  if (!parse_bytes(text, result, why)) return why;
  return std::to_string(result.count());
}

std::string count_of(std::string_view text) {
  std::int64_t result = -1;
  std::string why;
  return parse_count(text, result, why) ? std::to_string(result) : why;
}

std::string parameters_of(std::string_view text) {
  std::int64_t result = -1;
  std::string why;
  return parse_parameters(text, result, why) ? std::to_string(result) : why;
}

}  // namespace

TEST_CASE("sums and products that leave 64 bits throw", "[units]") {
  CHECK_THROWS_WITH(checked_add(kLargest, 1), "a sum exceeds 2^63");
  CHECK_THROWS_WITH(checked_sub(-kLargest, 2), "a difference exceeds 2^63");
  CHECK_THROWS_WITH(checked_mul(kLargest, 2), "a product exceeds 2^63");
  CHECK_THROWS_AS(Bytes(kLargest) + 1_B, OverflowError);
  CHECK_THROWS_AS(Bytes(kLargest) * 2, OverflowError);
  CHECK_THROWS_AS(round_up(kLargest, 512), OverflowError);
  CHECK(Bytes(kLargest) - 1_B == Bytes(kLargest - 1));
}

TEST_CASE("sizes are read exactly", "[units]") {
  CHECK(bytes_of("0") == "0");
  CHECK(bytes_of("80 GiB") == "85899345920");
  CHECK(bytes_of("80GiB") == "85899345920");
  CHECK(bytes_of("80 gib") == "85899345920");
  CHECK(bytes_of("24GB") == "24000000000");
  CHECK(bytes_of("1 TiB") == "1099511627776");
  CHECK(bytes_of("1tb") == "1000000000000");
  CHECK(bytes_of("512 B") == "512");
  CHECK(bytes_of("79.15 GiB") == "84986665369");
  CHECK(bytes_of("0.1 B") == "0");
  CHECK(bytes_of("0.3 KB") == "300");
  CHECK(bytes_of("0.9999999999999999999999 KiB") == "1023");
  CHECK(bytes_of("0.0000000000009094947017729282379150390625 TiB") == "1");
  CHECK(bytes_of("0.0000000000009094947017729282379150390624 TiB") == "0");
  CHECK(bytes_of("9223372036854775807 B") == "9223372036854775807");
}

TEST_CASE("what is no size is refused with a reason", "[units]") {
  CHECK(bytes_of("") == "must begin with a digit");
  CHECK(bytes_of("80") == "needs a unit such as GiB or GB");
  CHECK(bytes_of("0.0") == "needs a unit such as GiB or GB");
  CHECK(bytes_of("80G") == "needs a unit without doubt: GiB or GB, not G alone");
  CHECK(bytes_of("80 m") == "needs a unit without doubt: MiB or MB, not M alone");
  CHECK(bytes_of("80 giga") == "has an unknown unit; B, KB, MB, GB, TB, KiB, MiB, GiB and TiB are known");
  CHECK(bytes_of("80 GiB ") == "has an unknown unit; B, KB, MB, GB, TB, KiB, MiB, GiB and TiB are known");
  CHECK(bytes_of("8e9 B") == "has an unknown unit; B, KB, MB, GB, TB, KiB, MiB, GiB and TiB are known");
  CHECK(bytes_of(" 80GiB") == "must begin with a digit");
  CHECK(bytes_of("GiB") == "must begin with a digit");
  CHECK(bytes_of(".5 GiB") == "must begin with a digit");
  CHECK(bytes_of("5. GiB") == "needs a digit after the decimal point");
  CHECK(bytes_of("-1 GiB") == "must not be negative");
  CHECK(bytes_of("08 GiB") == "must not begin with 0");
  CHECK(bytes_of("9223372036854775808 B") == "is too large");
  CHECK(bytes_of("8388608 TiB") == "is too large");
  CHECK(bytes_of("99999999999999999999999999 GiB") == "is too large");
}

TEST_CASE("counts are plain digits", "[units]") {
  CHECK(count_of("0") == "0");
  CHECK(count_of("8") == "8");
  CHECK(count_of("9223372036854775807") == "9223372036854775807");
  CHECK(count_of("9223372036854775808") == "is too large");
  CHECK(count_of("-1") == "must not be negative");
  CHECK(count_of("08") == "must not begin with 0");
  for (const std::string_view text :
       {"", "2e8", "1.0", "1_000", "1,000", "+1", " 1", "1 ", "eight", "-", "0x10", "nan"}) {
    CHECK(count_of(text) == "needs a whole number in plain digits");
  }
}

TEST_CASE("numbers of parameters may be written short", "[units]") {
  CHECK(parameters_of("6738415616") == "6738415616");
  CHECK(parameters_of("7e9") == "7000000000");
  CHECK(parameters_of("7E+9") == "7000000000");
  CHECK(parameters_of("1.5e9") == "1500000000");
  CHECK(parameters_of("7B") == "7000000000");
  CHECK(parameters_of("1.5b") == "1500000000");
  CHECK(parameters_of("350M") == "350000000");
  CHECK(parameters_of("12k") == "12000");
  CHECK(parameters_of("1T") == "1000000000000");
  CHECK(parameters_of("0.0000000010e9") == "1");
  CHECK(parameters_of("1.50000000000000000000B") == "1500000000");
  CHECK(parameters_of("0") == "0");
}

TEST_CASE("what is no number of parameters is refused with a reason", "[units]") {
  const std::string needed = "needs a number of parameters such as 7000000000, 7e9 or 7B";
  CHECK(parameters_of("7 B") == needed);
  CHECK(parameters_of("7G") == needed);
  CHECK(parameters_of("7e") == needed);
  CHECK(parameters_of("7e-9") == needed);
  CHECK(parameters_of("7e9B") == needed);
  CHECK(parameters_of("") == "must begin with a digit");
  CHECK(parameters_of("inf") == "must begin with a digit");
  CHECK(parameters_of("-7B") == "must not be negative");
  CHECK(parameters_of("1.5") == "needs a whole number of parameters");
  CHECK(parameters_of("1.2345K") == "needs a whole number of parameters");
  CHECK(parameters_of("7e19") == "is too large");
  CHECK(parameters_of("1e999999999999999999999") == "is too large");
  CHECK(parameters_of("10000000000B") == "is too large");
}

TEST_CASE("element types have one spelling each", "[units]") {
  CHECK(dtype_name(DType::fp32) == "fp32");
  CHECK(dtype_name(DType::bf16) == "bf16");
  CHECK(dtype_name(DType::fp16) == "fp16");
  CHECK(dtype_name(DType::fp8) == "fp8");
  CHECK(dtype_name(DType::int64) == "int64");
  CHECK(dtype_name(DType::int32) == "int32");
  CHECK(dtype_name(DType::int8) == "int8");
  CHECK(dtype_name(DType::uint8) == "uint8");
  CHECK(dtype_name(DType::boolean) == "bool");
}

#include "io/json_reader.h"

#include <string>

#include "errors.h"
#include "membill/value.h"
#include "support/catch.h"

namespace membill::io_test {
namespace {

std::string json_error(const std::string& text) {
  return error_of([&] { return io::parse_json(text, "a.json"); });
}

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

}  // namespace

TEST_CASE("json values keep their kind, order, line and spelling") {
  const Value value = io::parse_json("{\"b\": 1,\n \"a\": [true, null, \"x\"],\n \"r\": 1e5, \"n\": -0.5}\n", "a.json");
  REQUIRE(value.is_map());
  REQUIRE(value.entries().size() == 4);
  CHECK(value.entries()[0].first == "b");
  CHECK(value.find("b")->as_int() == 1);
  CHECK(value.find("a")->line == 2);
  CHECK(value.find("a")->items()[0].as_bool());
  CHECK(value.find("a")->items()[1].is_null());
  CHECK(value.find("a")->items()[2].as_string() == "x");
  CHECK(value.find("r")->kind() == Value::Kind::real);
  CHECK(value.find("r")->written() == "1e5");
  CHECK(value.find("r")->as_real() == 1e5);
  CHECK(value.find("n")->as_real() == -0.5);
}

TEST_CASE("json integers are exact to the ends of 64 bits") {
  CHECK(io::parse_json("9223372036854775807", "a.json").as_int() == INT64_MAX);
  CHECK(io::parse_json("-9223372036854775808", "a.json").as_int() == INT64_MIN);
  CHECK(json_error("9223372036854775808") == "a.json: line 1: '9223372036854775808' does not fit 64 bits");
  CHECK(json_error("-9223372036854775809") == "a.json: line 1: '-9223372036854775809' does not fit 64 bits");
}

TEST_CASE("json strings are decoded") {
  CHECK(io::parse_json(R"("a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00")", "a.json").as_string() ==
        "a\"\\/\b\f\n\r\t\xC3\xA9\xF0\x9F\x98\x80");
  CHECK(io::parse_json("\"\xE2\x82\xAC\"", "a.json").as_string() == "\xE2\x82\xAC");
}

TEST_CASE("json that Python writes beyond the standard is text in its dialect only") {
  const Value value = io::parse_json("[Infinity, -Infinity]", "a.json", io::JsonDialect::python);
  CHECK(value.items()[0].as_string() == "Infinity");
  CHECK(value.items()[1].as_string() == "-Infinity");
  CHECK(json_error("[Infinity, -Infinity]") ==
        "a.json: line 1: Infinity is not a number | a.json: line 1: -Infinity is not a number");
  CHECK(error_of([] { return io::parse_json("NaN", "a.json", io::JsonDialect::python); }) ==
        "a.json: line 1: NaN is not a number");
}

TEST_CASE("json independent problems come all at once") {
  const Lines expected{"a.json: a: line 2: duplicate key (first on line 1)",
                       "a.json: b.c: line 3: '1e400' is too large for a number",
                       "a.json: b.d: line 3: NaN is not a number"};
  CHECK(errors_of([] {
          return io::parse_json("{\"a\": 1,\n\"a\": 2,\n\"b\": {\"c\": 1e400, \"d\": NaN}}", "a.json");
        }) == expected);
}

TEST_CASE("json mistakes of syntax") {
  const auto [text, message] = GENERATE(table<std::string, std::string>({
      {"", "is empty"},
      {" \n\t ", "is empty"},
      {"{\"a\": 1} x", "line 1: text follows after the end of the document"},
      {"{}\n{}", "line 2: text follows after the end of the document"},
      {"[1, 2,]", "line 1: a comma stands before ']'"},
      {"{\"a\": 1,\n}", "line 2: a comma stands before '}'"},
      {"[1 2]", "line 1: expected ',' or ']', found '2'"},
      {"{\"a\" 1}", "line 1: expected ':', found '1'"},
      {"{a: 1}", "line 1: expected a key in double quotes, found 'a'"},
      {"{'a': 1}", "line 1: single quotes are not JSON (text needs double quotes)"},
      {"{\"a\": 1", "line 1: the text ends where ',' or '}' is expected"},
      {"[", "line 1: the text ends where a value is expected"},
      {"{\"a\":}", "line 1: expected a value, found '}'"},
      {"// c\n{}", "line 1: JSON has no comments"},
      {"{\"a\": True}", "line 1: 'True' is Python (JSON writes true, false, null)"},
      {"bf16", "line 1: 'bf16' is not a value (text needs double quotes)"},
      {"01", "line 1: a number must not begin with 0"},
      {"-", "line 1: a number needs a digit after '-'"},
      {"1.", "line 1: a number needs a digit after the decimal point"},
      {"1e", "line 1: a number needs a digit in its exponent"},
      {".5", "line 1: expected a value, found '.'"},
      {"+1", "line 1: expected a value, found '+'"},
      {"\"a", "line 1: the text ends inside of a string"},
      {"\"a\nb\"", "line 1: a string is not closed on its line"},
      {"\"a\tb\"", "line 1: a control character in a string needs an escape"},
      {"\"\\x\"", "line 1: a string holds an unknown escape"},
      {"\"\\u12\"", "line 1: a string holds an unknown escape"},
      {"\"\\ud800\"", "line 1: a string holds half of a surrogate pair"},
      {"\"\\udc00\"", "line 1: a string holds half of a surrogate pair"},
      {"\"\xFF\"", "line 1: is not UTF-8 text"},
      {"{}\n\xC0\x80", "line 2: is not UTF-8 text"},
      {"\xED\xA0\x80", "line 1: is not UTF-8 text"},
      {"\x01\x02", "line 1: is binary data, not text"},
      {"\xFF\xFE{\x01", "is UTF-16 text (save it as UTF-8)"},
  }));
  CHECK(json_error(text) == "a.json: " + message);
}

TEST_CASE("json with a zero byte is binary") {
  CHECK(json_error(std::string("{\0}", 3)) == "a.json: line 1: is binary data, not text");
}

TEST_CASE("json with a byte order mark is read") { CHECK(io::parse_json("\xEF\xBB\xBF{}", "a.json").is_map()); }

TEST_CASE("json numbers too small to be told from zero are zero") {
  CHECK(io::parse_json("1e-400", "a.json").as_real() == 0);
  CHECK(io::parse_json("0." + repeated("0", 400) + "1", "a.json").as_real() == 0);
}

TEST_CASE("json nesting is bounded") {
  CHECK(io::parse_json(repeated("[", 64) + repeated("]", 64), "a.json").is_list());
  CHECK(json_error(repeated("[", 65) + repeated("]", 65)) ==
        "a.json: line 1: lists and maps are nested deeper than 64");
  CHECK(json_error(repeated("{\"a\":", 100000)) == "a.json: line 1: lists and maps are nested deeper than 64");
}

TEST_CASE("json holds a bounded number of values") {
  CHECK(json_error("[" + repeated("1,", 2'000'000) + "1]") == "a.json: line 1: holds more than 2000000 values");
}

TEST_CASE("json maps with many keys find their duplicates") {
  std::string text = "{";
  for (int i = 0; i < 1000; ++i) text += "\"k" + std::to_string(i) + "\": 1,\n";
  CHECK(json_error(text + "\"k7\": 2}") == "a.json: k7: line 1001: duplicate key (first on line 8)");
}

}  // namespace membill::io_test

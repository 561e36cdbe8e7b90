#include "io/yaml_reader.h"

#include <string>

#include "errors.h"
#include "membill/value.h"
#include "support/catch.h"

namespace membill::io_test {
namespace {

std::string yaml_error(const std::string& text) {
  return error_of([&] { return io::parse_yaml(text, "a.yaml"); });
}

Value read(const std::string& text) { return io::parse_yaml(text, "a.yaml"); }

// The value under `a` of one line of YAML.
Value scalar(const std::string& text) { return *read("a: " + text + "\n").find("a"); }

}  // namespace

TEST_CASE("yaml lists and maps keep order and lines") {
  const Value value = read("b: 1\na:\n  - x\n  - {y: [1, 2]}\n");
  CHECK(value.entries()[0].first == "b");
  CHECK(value.find("a")->items()[0].as_string() == "x");
  CHECK(value.find("a")->items()[1].find("y")->items()[1].as_int() == 2);
  CHECK(value.find("a")->items()[1].line == 4);
}

TEST_CASE("yaml booleans are those of the frameworks") {
  for (const char* text : {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})
    CHECK(scalar(text).as_bool());
  for (const char* text : {"false", "False", "no", "No", "NO", "off", "Off"}) {
    CHECK(scalar(text).is_bool());
    CHECK_FALSE(scalar(text).as_bool());
  }
  for (const char* text : {"y", "n", "yEs", "tRUE", "\"yes\"", "'no'", "!!str on"}) CHECK(scalar(text).is_string());
}

TEST_CASE("yaml numbers") {
  CHECK(scalar("12").as_int() == 12);
  CHECK(scalar("+4").as_int() == 4);
  CHECK(scalar("-3").as_int() == -3);
  CHECK(scalar("0").as_int() == 0);
  for (const char* text : {"1e5", "1E5", "1.0e+5", "100000.0", "1e+5"}) CHECK(scalar(text).as_real() == 1e5);
  CHECK(scalar("1e5").written() == "1e5");
  CHECK(scalar(".5").as_real() == 0.5);
  CHECK(scalar("3.").as_real() == 3.0);
  CHECK(scalar("!!int \"7\"").as_int() == 7);
  CHECK(scalar("!!float 7").as_int() == 7);
}

TEST_CASE("yaml numbers that its versions read differently are text") {
  for (const char* text :
       {"010", "0x1F", "0o7", "1_000", "1:30", "0b1", "00", "-07", "1e", "e5", ".", "1.2.3", "080"}) {
    CHECK(scalar(text).is_string());
    CHECK(scalar(text).as_string() == text);
  }
}

TEST_CASE("yaml nulls") {
  for (const char* text : {"", "~", "null", "Null", "NULL", "# comment"}) CHECK(scalar(text).is_null());
  CHECK(scalar("\"\"").is_string());
}

TEST_CASE("yaml aliases and merges are expanded") {
  const Value value = read("base: &b {x: 1, y: 2}\nother: &o {y: 3, z: 4}\na: *b\nm:\n  <<: [*b, *o]\n  x: 9\n");
  CHECK(value.find("a")->find("y")->as_int() == 2);
  CHECK(value.find("m")->find("x")->as_int() == 9);
  CHECK(value.find("m")->find("y")->as_int() == 2);
  CHECK(value.find("m")->find("z")->as_int() == 4);
  CHECK(value.find("m")->find("<<") == nullptr);
}

TEST_CASE("yaml independent problems come all at once") {
  const Lines expected{"a.yaml: a: line 2: duplicate key (first on line 1)",
                       "a.yaml: b: line 3: '.nan' is not a finite number",
                       "a.yaml: c.d: line 4: '9223372036854775808' does not fit 64 bits"};
  CHECK(errors_of([] { return read("a: 1\na: 2\nb: .nan\nc: {d: 9223372036854775808}\n"); }) == expected);
}

TEST_CASE("yaml mistakes") {
  const auto [text, message] = GENERATE(table<std::string, std::string>({
      {"", "is empty"},
      {"# only a comment\n", "is empty"},
      {"a: 1\n---\nb: 2\n", "line 2: a second document begins (one file holds one job)"},
      {"a:\n\tb: 1\n", "line 2: a tab is used as indentation (YAML takes blanks only)"},
      {"a:\n  b: 1\n\tc: 2\n", "line 3: a tab is used as indentation (YAML takes blanks only)"},
      {"a: *x\n", "line 1: is not YAML: the referenced anchor is not defined"},
      {"a: &x [*x]\n", "line 1: an alias stands inside of the value that it names"},
      {"*x : 1\n", "line 1: is not YAML: the referenced anchor is not defined"},
      {"a: &x b\n*x : 1\n", "line 2: a key is an alias"},
      {"? [a]\n: 1\n", "line 1: a key is a list or a map"},
      {": 1\n", "line 1: a key is empty"},
      {"a: !!python/object:os.system x\n",
       "line 1: the tag 'tag:yaml.org,2002:python/object:os.system' is not supported"},
      {"a: !mine x\n", "line 1: the tag '!mine' is not supported"},
      {"a: !!binary aGk=\n", "line 1: the tag 'tag:yaml.org,2002:binary' is not supported"},
      {"a: !!int x\n", "line 1: 'x' does not match its tag !!int"},
      {"a: {<<: 1}\n", "line 1: '<<' merges maps only"},
      {"a: [1, 2\n", "line 2: is not YAML: end of sequence flow not found"},
      {"a: b: c\n", "line 1: is not YAML: illegal map value"},
      {"a: \"x\n", "line 1: a quoted text is not closed"},
      {"a: 'it''s\n\n", "line 1: a quoted text is not closed"},
      {"a: \"x\" y\n", "line 1: is not YAML: end of map not found"},
      {"a: .inf\n", "a: line 1: '.inf' is not a finite number"},
      {"a: -.Inf\n", "a: line 1: '-.Inf' is not a finite number"},
      {"a: 1e999\n", "a: line 1: '1e999' is too large for a number"},
      {"a: \xFF\n", "line 1: is not UTF-8 text"},
      {"a: \x01\n", "line 1: is binary data, not text"},
  }));
  INFO(text);
  CHECK(yaml_error(text) == "a.yaml: " + message);
}

TEST_CASE("yaml quoted texts that are closed are read") {
  CHECK(scalar("\"x\\\"y\"").as_string() == "x\"y");
  CHECK(scalar("'it''s'").as_string() == "it's");
  CHECK(scalar("&n \"x\"").as_string() == "x");
  CHECK(read("\"\xC3\xA9\": \"x\"\n").find("\xC3\xA9")->as_string() == "x");
  CHECK(scalar("|\n  \tkept\n  \"open\n").as_string() == "\tkept\n\"open\n");
}

TEST_CASE("yaml alias bombs are refused") {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string one = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) text += one + ", ";
    text += one + "]\n";
  }
  CHECK(yaml_error(text) == "a.yaml: line 6: holds more than 2000000 values once aliases are expanded");
}

TEST_CASE("yaml aliases cannot multiply a long text") {
  std::string text = "a: &a " + std::string(1'000'000, 'x') + "\nb:\n";
  for (int i = 0; i < 1000; ++i) text += "  - *a\n";
  CHECK(yaml_error(text) == "a.yaml: line 129: holds more than 2000000 values once aliases are expanded");
}

TEST_CASE("yaml aliases cannot nest without bound") {
  std::string text = "a0: &a0 [x]\n";
  for (int i = 1; i < 100; ++i)
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  CHECK(yaml_error(text) == "a.yaml: line 64: lists and maps are nested deeper than 64");
}

TEST_CASE("yaml nesting, brackets and size are bounded") {
  std::string deep = "a:";
  for (int i = 0; i < 100; ++i) deep += "\n" + std::string(static_cast<std::size_t>(i + 1), ' ') + "a:";
  CHECK(yaml_error(deep + " 1\n") == "a.yaml: line 65: lists and maps are nested deeper than 64");
  CHECK(yaml_error(std::string(100, '[') + std::string(100, ']')) ==
        "a.yaml: line 1: lists and maps are nested deeper than 64");
  CHECK(yaml_error(std::string(300'000, '[')) == "a.yaml: holds more than 200000 brackets");
  CHECK(yaml_error("a: " + std::string(5'000'000, 'x')) == "a.yaml: is larger than 4 MiB, too much for YAML");
}

}  // namespace membill::io_test

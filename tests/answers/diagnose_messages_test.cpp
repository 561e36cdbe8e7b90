// Messages of public reports (tests/data/logs/messages.jsonl, each with its address): every figure is read, the cause is that of the
// figures, and what logs do to lines changes nothing.
#include <fstream>

#include "io/json_reader.h"
#include "membill/diagnose.h"
#include "membill/units.h"
#include "support/catch.h"
#include "support/places.h"

namespace membill {
namespace {

struct Message {
  std::string source, text, cause;
  Value row;
};

std::vector<Message> reports() {
  std::vector<Message> all;
  const std::string path = test::in_source("tests/data/logs/messages.jsonl");
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    Message report;
    report.row = io::parse_json(line, path);
    report.source = report.row.find("source")->as_string();
    report.text = report.row.find("text")->as_string();
    if (!report.row.find("cause")->is_null()) report.cause = report.row.find("cause")->as_string();
    all.push_back(std::move(report));
  }
  return all;
}

std::optional<std::int64_t> figure(const Message& report, const char* key) {
  const Value* written = report.row.find(key);
  if (written == nullptr) return std::nullopt;
  std::string text = written->as_string(), why;
  if (const std::size_t at = text.find(" bytes"); at != std::string::npos) text = text.substr(0, at) + " B";
  Bytes bytes;
  REQUIRE(parse_bytes(text, bytes, why));
  return bytes.count();
}

std::optional<std::int64_t> unused(const OutOfMemoryEvent& event) {
  return event.reserved && event.allocated ? std::optional(*event.reserved - *event.allocated) : std::nullopt;
}

void check_figures(const Message& report, const OutOfMemoryEvent& event) {
  CHECK(event.asked == figure(report, "asked"));
  CHECK(event.total == figure(report, "total"));
  CHECK(event.free == figure(report, "free"));
  CHECK(event.allocated == figure(report, "allocated"));
  CHECK(event.in_use == figure(report, "in_use"));
  CHECK(event.allowed == figure(report, "allowed"));
  if (report.row.find("reserved") != nullptr) CHECK(event.reserved == figure(report, "reserved"));
  if (report.row.find("unused") != nullptr) CHECK(unused(event) == figure(report, "unused"));
}

void check_alone(const Message& report, const std::string& log) {
  INFO(report.source);
  INFO(log);
  const std::vector<OutOfMemoryEvent> events = find_out_of_memory(log);
  REQUIRE(events.size() == 1);
  check_figures(report, events.front());
  if (!report.cause.empty()) CHECK(cause_word(diagnose(events, 0).cause) == report.cause);
}

// Broken after each `width` characters, `lead` before each line.
std::string broken(const std::string& text, std::size_t width, const std::string& lead, const char* end) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += width) out += lead + text.substr(at, width) + end;
  return out;
}

}  // namespace

TEST_CASE("messages of public reports give their figures and their cause") {
  const std::vector<Message> all = reports();
  CHECK(all.size() >= 50);
  for (const Message& report : all) check_alone(report, report.text + "\n");
}

TEST_CASE("what a log does to a message's lines changes nothing") {
  for (const Message& report : reports()) {
    if (report.text.find('\n') != std::string::npos) continue;
    check_alone(report, "a line before\r\n" + report.text + "\r\n");
    check_alone(report, "\x1b[31m" + report.text + "\x1b[0m\n");
    check_alone(report, " 19%|\xE2\x96\x88\xE2\x96\x89 | 3237/16700 [3:34:12<38:35:22, 10.32s/it]\r" + report.text);
    const bool complete = report.row.find("free") != nullptr;
    check_alone(report, "2025-03-01 10:00:00,123 ERROR [rank7]: " + report.text + "\n" +
                            (complete ? "GPU 5: 3.00 MiB free\n" : ""));
  }
}

TEST_CASE("a message that a terminal or a launcher broke into lines is read whole") {
  for (const Message& report : reports()) {
    // The opening words themselves stay together.
    const std::size_t begin = report.text.find("out of memory");
    if (begin == std::string::npos || report.row.find("asked") == nullptr) continue;
    const std::size_t width = std::max<std::size_t>(80, begin + 15);
    for (const char* lead : {"", "[rank3]: ", "(train pid=2657296) ", "\x1b[36mworker-5: \x1b[0m"})
      for (const char* end : {"\n", "\r\n"}) check_alone(report, broken(report.text, width, lead, end));
  }
}

TEST_CASE("messages of many ranks in one log are kept apart") {
  std::string log;
  std::size_t count = 0;
  for (const Message& report : reports()) {
    if (report.text.find("out of memory") == std::string::npos || report.row.find("allocated") == nullptr) continue;
    log += "[rank" + std::to_string(count) + "]: " + report.text + (count % 2 == 0 ? "\n" : "");
    ++count;
  }
  const std::vector<OutOfMemoryEvent> events = find_out_of_memory(log + log);
  CHECK(events.size() == count);
  for (const OutOfMemoryEvent& event : events) CHECK(event.allocated);
}

}  // namespace membill

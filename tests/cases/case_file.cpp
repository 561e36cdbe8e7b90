#include "cases/case_file.h"

#include <sstream>
#include <stdexcept>

namespace membill::test {
namespace {

constexpr const char* kNoNewline = "\\";

// Appends one marked line to a text of the result; a lone backslash takes the last newline away.
void append_line(std::string& text, const std::string& line) {
  if (line == kNoNewline && !text.empty()) {
    text.pop_back();
  } else {
    text += line + "\n";
  }
}

std::string marked(const std::string& text, char mark) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    result += std::string(1, mark) + (line.empty() ? "" : " ") + line + "\n";
  if (!text.empty() && text.back() != '\n') result += std::string(1, mark) + " " + kNoNewline + "\n";
  return result;
}

}  // namespace

CaseFile parse_cases(const std::string& text) {
  CaseFile file;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const char mark = line.empty() ? '#' : line.front();
    const std::string rest = line.size() > 2 ? line.substr(2) : std::string();
    if (mark == '#') {
      file.tail.push_back(line);
    } else if (mark == '$') {
      file.cases.push_back({std::move(file.tail), rest, {}});
      file.tail.clear();
    } else if (file.cases.empty() || !file.tail.empty()) {
      throw std::runtime_error("a result without a command: " + line);
    } else if (mark == '|') {
      append_line(file.cases.back().expected.out, rest);
    } else if (mark == '!') {
      append_line(file.cases.back().expected.err, rest);
    } else if (mark == '?') {
      file.cases.back().expected.status = std::stoi(rest);
    } else {
      throw std::runtime_error("a line of a case begins with #, $, |, ! or ?: " + line);
    }
  }
  return file;
}

std::string format_result(const CommandResult& result) {
  std::string text = marked(result.out, '|') + marked(result.err, '!');
  if (result.status != 0) text += "? " + std::to_string(result.status) + "\n";
  return text;
}

std::string format_cases(const CaseFile& file) {
  std::string text;
  for (const Case& one : file.cases) {
    for (const std::string& line : one.lead) text += line + "\n";
    text += "$ " + one.command + "\n" + format_result(one.expected);
  }
  for (const std::string& line : file.tail) text += line + "\n";
  return text;
}

}  // namespace membill::test

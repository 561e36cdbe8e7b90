#include <set>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/run.h"
#include "report/text.h"
#include "support/catch.h"

namespace {

using namespace membill;
using namespace membill::cli;

Outcome run_words(const std::vector<std::string>& words) { return run(words); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("every command has a summary, an example, and options with help and names of their own") {
  std::set<std::string_view> names;
  for (const Command& command : commands()) {
    INFO(command.name);
    CHECK(names.insert(command.name).second);
    CHECK_FALSE(command.summary.empty());
    CHECK_FALSE(command.examples.empty());
    std::set<std::string> options{"--help"};
    for (const OptionSpec& option : command.options()) {
      INFO(option.name);
      CHECK(options.insert(option.name).second);
      if (option.takes == Takes::boolean) CHECK(options.insert("--no-" + option.name.substr(2)).second);
      CHECK(option.name.rfind("--", 0) == 0);
      CHECK_FALSE(option.help.empty());
      CHECK_FALSE(option.group.empty());
      const bool takes_value = option.takes == Takes::value || option.takes == Takes::values;
      CHECK(option.value_name.empty() != takes_value);
    }
    for (const ArgumentSpec& argument : command.arguments()) CHECK_FALSE(argument.help.empty());
  }
}

TEST_CASE("help fits 80 columns and names every option") {
  for (const Command& command : commands()) {
    const Outcome outcome = run_words({std::string(command.name), "--help"});
    CHECK(outcome.code == ExitCode::computed);
    for (const OptionSpec& option : command.options()) CHECK(has(outcome.out, option.name));
    std::size_t start = 0;
    for (std::size_t end = outcome.out.find('\n'); end != std::string::npos; end = outcome.out.find('\n', start)) {
      const std::string line = outcome.out.substr(start, end - start);
      INFO(line);
      const bool is_example = line.rfind("  membill ", 0) == 0;
      CHECK((is_example || report::text_width(line) <= 80));
      start = end + 1;
    }
  }
}

TEST_CASE("completions and the man page know every command and option") {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"completion", "bash"}, {"completion", "zsh"}, {"completion", "fish"}, {"man"}}) {
    const Outcome outcome = run_words(words);
    REQUIRE(outcome.code == ExitCode::computed);
    for (const Command& command : commands()) {
      CHECK(has(outcome.out, std::string(command.name)));
      for (const OptionSpec& option : command.options()) {
        std::string name = option.name.substr(2);
        if (words.front() == "man") {
          for (std::size_t at = name.find('-'); at != std::string::npos; at = name.find('-', at + 2))
            name.insert(at, "\\");
        }
        INFO(name);
        CHECK(has(outcome.out, name));
      }
    }
  }
}

TEST_CASE("statuses of verdicts") {
  CHECK(exit_code(Answer::fits, false) == ExitCode::computed);
  CHECK(exit_code(Answer::fits, true) == ExitCode::computed);
  CHECK(exit_code(Answer::none, true) == ExitCode::computed);
  CHECK(exit_code(Answer::tight, false) == ExitCode::computed);
  CHECK(exit_code(Answer::tight, true) == ExitCode::does_not_fit);
  CHECK(exit_code(Answer::unknown, false) == ExitCode::computed);
  CHECK(exit_code(Answer::unknown, true) == ExitCode::does_not_fit);
  CHECK(exit_code(Answer::does_not_fit, false) == ExitCode::does_not_fit);
}

TEST_CASE("bad input prints nothing on standard output, and no message twice") {
  const Outcome outcome = run_words({"estimate", "--seq", "0", "--seq", "0", "--seq", "0"});
  CHECK(outcome.code == ExitCode::bad_input);
  CHECK(outcome.out.empty());
  const std::set<std::string> once(outcome.messages.begin(), outcome.messages.end());
  CHECK(once.size() == outcome.messages.size());
}

TEST_CASE("messages hold nothing that a terminal obeys") {
  for (const std::string& message : run_words({"\x1b[31mx"}).messages) CHECK_FALSE(has(message, "\x1b"));
  for (const std::string& message : run_words({"estimate", "--\x1b[31mx"}).messages) CHECK_FALSE(has(message, "\x1b"));
}

}  // namespace

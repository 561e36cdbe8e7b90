// A command of membill as data: parsing, help, completion and the man page all read these tables.
#ifndef MEMBILL_CLI_COMMAND_H_
#define MEMBILL_CLI_COMMAND_H_

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/exit_code.h"
#include "membill/problem.h"

namespace membill::cli {

// How an option takes its value.
enum class Takes : std::uint8_t {
  nothing,  // a switch: --strict
  boolean,  // a switch that may be turned off: --compile, --compile=false, --no-compile
  value,    // --seq 4096 or --seq=4096, once
  values,   // as value, any number of times
};

struct OptionSpec {
  std::string name;  // with its dashes: "--gpu"
  Takes takes = Takes::value;
  std::string value_name;          // what help calls the value: "NAME|SIZE|auto"; empty for switches
  std::string help;                // one line
  std::string group;               // heading in help
  std::vector<std::string> words;  // the values there are, for completion; empty: free
};

struct ArgumentSpec {
  std::string name;  // "MODEL"
  std::string help;
  bool required = false;
  std::vector<std::string> words;  // the values there are, for completion; empty: free
  bool or_command = false;         // "-- WORDS" may stand in its place: the words of another program's command line
};

// The words of one command line, told apart; values are as typed.
class Arguments {
 public:
  std::vector<std::string> positionals;
  std::vector<std::string> command;  // the words after "--", of a command whose argument allows them

  // Keeps `value` for `option`; a switch has the value "true" or "false".
  void add(const std::string& option, std::string value) { values_[option].push_back(std::move(value)); }

  [[nodiscard]] bool has(std::string_view option) const { return values_.find(option) != values_.end(); }
  // Puts `values` in the place of what was given.
  void replace(const std::string& option, std::vector<std::string> values) { values_[option] = std::move(values); }
  void remove(const std::string& option) { values_.erase(option); }

  // Whether a switch was given.
  [[nodiscard]] bool is_on(std::string_view option) const;
  // The value of an option, nullptr when it was not given.
  [[nodiscard]] const std::string* value(std::string_view option) const;
  // Every value of an option, in order.
  [[nodiscard]] std::span<const std::string> values(std::string_view option) const;
  // The positional at `index`, nullptr when there are fewer.
  [[nodiscard]] const std::string* positional(std::size_t index) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

// What a command has to say. stdout is written once, at the end, and only when the run succeeds.
struct Output {
  std::string out;                 // for stdout
  std::vector<std::string> notes;  // for stderr, without the program's name: warnings of the input
  // Writes rows to stdout while the command runs, before `out`; false: nobody reads them any more. For commands whose input is
  // known to be good by then.
  std::function<bool(std::string_view)> stream;
  bool only_problems = false;  // the command line is refused already: what takes long may be left out
};

struct Command {
  std::string_view name;
  std::string_view summary;  // one line
  std::vector<ArgumentSpec> (*arguments)();
  std::vector<OptionSpec> (*options)();
  std::vector<std::string_view> examples;  // command lines without "membill"
  // Does the work. Throws InputError for bad input.
  ExitCode (*run)(const Arguments& arguments, Output& output);
};

// Every command, in the order of help. A new one is a file and a row in commands.cpp.
[[nodiscard]] std::span<const Command> commands();
// By exact name; nullptr: none.
[[nodiscard]] const Command* find_command(std::string_view name);

// The file name of problems that come from the command line.
inline constexpr const char* kCommandLine = "command line";

}  // namespace membill::cli

#endif  // MEMBILL_CLI_COMMAND_H_

#include "cli/run.h"

#include <algorithm>
#include <exception>
#include <new>

#include "cli/app.h"
#include "cli/command.h"
#include "cli/help.h"
#include "membill/problem.h"
#include "membill/units.h"
#include "membill/version.h"

namespace membill::cli {
namespace {

bool is_help(const std::string& word) { return word == "--help" || word == "-h"; }

[[noreturn]] void refuse_command(const std::string& typed) {
  std::vector<std::string_view> names;
  for (const Command& command : commands()) names.push_back(command.name);
  const std::string_view near = nearest_word(typed, names);
  throw InputError(
      Problem{kCommandLine, quoted(typed), "is not a command",
              near.empty() ? "membill --help lists them; a bill is membill estimate MODEL" : std::string(near)});
}

const Command& command_of(const std::string& typed) {
  const Command* command = find_command(typed);
  if (command == nullptr) refuse_command(typed);
  return *command;
}

// Whether help is asked for among the words of a command, before a "--".
bool asks_for_help(std::span<const std::string> words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::any_of(words.begin(), end, is_help);
}

bool takes_command(const Command& command) {
  const std::vector<ArgumentSpec> specs = command.arguments();
  return std::any_of(specs.begin(), specs.end(), [](const ArgumentSpec& spec) { return spec.or_command; });
}

// How many words stand before a "--".
std::size_t own_words(std::span<const std::string> words) {
  return static_cast<std::size_t>(std::find(words.begin(), words.end(), "--") - words.begin());
}

// Ends a run whose words have problems: what could be read of them is tried too, so that all problems are told at once.
[[noreturn]] void refuse_all(const Command& command, const Arguments& arguments, Problems problems) {
  const std::vector<ArgumentSpec> specs = command.arguments();
  const std::size_t given = arguments.positionals.size();
  if (given >= specs.size() || !specs[given].required) {
    try {
      Output ignored;
      ignored.only_problems = true;
      command.run(arguments, ignored);
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems()) {
        // The word after an unknown option may have been the argument that seems to be missing.
        if (given >= specs.size() || problem.key != specs[given].name) problems.add(problem);
      }
    }
  }
  throw InputError(problems.list());
}

ExitCode run_command(std::span<const std::string> words, Output& output) {
  const Command& command = command_of(words.front());
  const std::span<const std::string> rest = words.subspan(1);
  if (asks_for_help(rest)) {
    output.out = command_help(command);
    return ExitCode::computed;
  }
  Problems problems;
  const std::size_t own = takes_command(command) ? own_words(rest) : rest.size();
  Arguments arguments = parse_arguments(command, rest.first(own), problems);
  if (own < rest.size()) arguments.command.assign(rest.begin() + static_cast<std::ptrdiff_t>(own) + 1, rest.end());
  if (!problems.empty()) refuse_all(command, arguments, problems);
  return command.run(arguments, output);
}

ExitCode run_words(std::span<const std::string> words, Output& output) {
  if (words.empty()) {
    throw InputError(
        Problem{kCommandLine, "", "no command", "membill --help lists them; a bill is membill estimate MODEL"});
  }
  const std::string& first = words.front();
  if (first == "--version" || first == "-V") {
    output.out = "membill " + std::string(kVersion) + "\n";
  } else if (is_help(first) || (first == "help" && words.size() == 1)) {
    output.out = program_help();
  } else if (first == "help") {
    output.out = command_help(command_of(words[1]));
  } else {
    return run_command(words, output);
  }
  return ExitCode::computed;
}

void add_message(Outcome& outcome, std::string message) {
  if (std::find(outcome.messages.begin(), outcome.messages.end(), message) == outcome.messages.end()) {
    outcome.messages.push_back(std::move(message));
  }
}

Outcome refused(const std::vector<Problem>& problems) {
  Outcome outcome{ExitCode::bad_input, {}, {}};
  for (Problem problem : problems) {
    if (problem.file.empty()) problem.file = kCommandLine;
    add_message(outcome, to_text(problem));
  }
  return outcome;
}

Outcome broken(const std::string& what) {
  return {
      ExitCode::internal, {}, {"internal error: " + to_text({"", "", what, ""}) + "; please report this command line"}};
}

}  // namespace

Outcome run(std::span<const std::string> words, std::function<bool(std::string_view)> stream) {
  try {
    Output output;
    output.stream = std::move(stream);
    if (!output.stream) {
      output.stream = [&output](std::string_view text) {
        output.out += text;
        return true;
      };
    }
    Outcome outcome;
    outcome.code = run_words(words, output);
    outcome.out = std::move(output.out);
    for (std::string& note : output.notes) add_message(outcome, std::move(note));
    return outcome;
  } catch (const InputError& error) {
    return refused(error.problems());
  } catch (const OverflowError& error) {
    return refused({{kCommandLine, "", "the sizes are too large: " + std::string(error.what()) + " bytes", ""}});
  } catch (const std::bad_alloc&) {
    return broken("out of memory");
  } catch (const std::exception& error) {
    return broken(error.what());
  }
}

}  // namespace membill::cli

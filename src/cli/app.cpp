#include "cli/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <unordered_map>

namespace membill::cli {
namespace {

// What the table says about an option as typed; `negated` for "--no-compile".
struct Known {
  const OptionSpec* spec = nullptr;
  bool negated = false;
};

class Parser {
 public:
  Parser(const Command& command, Problems& problems)
      : command_(command), options_(command.options()), arguments_(command.arguments()), problems_(problems) {
    for (const OptionSpec& option : options_) {
      known_[option.name] = {&option, false};
      if (option.takes == Takes::boolean) known_["--no-" + option.name.substr(2)] = {&option, true};
    }
  }

  Arguments parse(std::span<const std::string> words) {
    std::vector<std::string> rest = with_values_attached(words);
    CLI::App app;
    app.set_help_flag();
    app.allow_extras();
    const std::vector<std::pair<CLI::Option*, Known>> declared = declare(app, rest);
    std::reverse(rest.begin(), rest.end());  // CLI11 takes them from the back
    try {
      app.parse(rest);
    } catch (const CLI::ParseError& error) {
      complain({}, error.what());
    }
    for (const auto& [option, known] : declared) collect(*option, known);
    sort_out(app.remaining());
    check_count();
    return std::move(result_);
  }

 private:
  static std::string name_of(const std::string& word) { return word.substr(0, word.find('=')); }

  Known find(const std::string& name) const {
    const auto found = known_.find(name);
    return found == known_.end() ? Known{} : found->second;
  }

  void complain(std::string key, std::string message, std::string hint = {}) {
    problems_.add({kCommandLine, std::move(key), std::move(message), std::move(hint)});
  }

  // Every option and its value as one word, so that a value may look like anything and a missing one is seen here.
  std::vector<std::string> with_values_attached(std::span<const std::string> words) {
    std::vector<std::string> rest;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == "--") {
        rest.insert(rest.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
        break;
      }
      const std::string* next = i + 1 < words.size() ? &words[i + 1] : nullptr;
      if (attach(words[i], next, rest)) ++i;
    }
    return rest;
  }

  // Appends one word, with its value when that is `next`; says whether it took `next`.
  bool attach(const std::string& word, const std::string* next, std::vector<std::string>& rest) {
    const std::string name = name_of(word);
    const bool attached = name.size() < word.size();
    const Known known = find(name);
    const Takes takes = known.spec == nullptr ? Takes::nothing : known.spec->takes;
    if (takes == Takes::nothing) {
      rest.push_back(word);
      return false;
    }
    if (takes == Takes::boolean) {
      const bool takes_next = !attached && !known.negated && next != nullptr && (*next == "true" || *next == "false");
      rest.push_back(takes_next ? word + "=" + *next : word);
      return takes_next;
    }
    const bool takes_next = !attached && next != nullptr && next->rfind("--", 0) != 0;
    const std::string whole = takes_next ? word + "=" + *next : word;
    if (whole.size() > name.size() + 1) {
      rest.push_back(whole);
    } else {
      complain(name, "needs a value", known.spec->value_name);
    }
    return takes_next;
  }

  // Only what occurs is declared: a command has a hundred options and a command line uses five.
  std::vector<std::pair<CLI::Option*, Known>> declare(CLI::App& app, const std::vector<std::string>& words) const {
    std::vector<std::pair<CLI::Option*, Known>> declared;
    std::vector<std::string> names;
    for (const std::string& word : words) {
      if (word == "--") break;
      const std::string name = name_of(word);
      const Known known = find(name);
      if (known.spec == nullptr || std::find(names.begin(), names.end(), name) != names.end()) continue;
      names.push_back(name);
      const bool is_switch = known.spec->takes == Takes::nothing || known.spec->takes == Takes::boolean;
      CLI::Option* option = is_switch ? app.add_flag(name) : app.add_option(name);
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      if (!is_switch) option->expected(1)->allow_extra_args(false);
      declared.emplace_back(option, known);
    }
    return declared;
  }

  void collect(const CLI::Option& option, const Known& known) {
    const OptionSpec& spec = *known.spec;
    const std::string typed = known.negated ? "--no-" + spec.name.substr(2) : spec.name;
    for (const std::string& value : option.results()) {
      if (spec.takes == Takes::nothing || spec.takes == Takes::boolean) {
        collect_switch(spec, typed, known.negated, value);
      } else if (spec.takes == Takes::value && result_.has(spec.name)) {
        complain(typed, "is given more than once");
      } else {
        result_.add(spec.name, value);
      }
    }
  }

  void collect_switch(const OptionSpec& spec, const std::string& typed, bool negated, const std::string& value) {
    const bool off = value == "false";
    if (value != "true" && !off) {
      complain(typed, "takes no value but true or false");
    } else if ((off || negated) && spec.takes == Takes::nothing) {
      complain(typed, "takes no value");
    } else if (spec.takes == Takes::boolean && result_.has(spec.name)) {
      complain(typed, "is given more than once");
    } else {
      result_.add(spec.name, off != negated ? "false" : "true");
    }
  }

  // What no option took: positional arguments and unknown options.
  void sort_out(const std::vector<std::string>& remaining) {
    bool only_positionals = false;
    bool after_unknown = false;
    for (const std::string& word : remaining) {
      if (word == "--" && !only_positionals) {
        only_positionals = true;
      } else if (only_positionals || word == "-" || word.empty() || word.front() != '-') {
        // The word after an unknown option is most likely its value.
        if (!after_unknown) result_.positionals.push_back(word);
        after_unknown = false;
      } else {
        refuse(name_of(word));
        after_unknown = word.find('=') == std::string::npos;
      }
    }
  }

  void refuse(const std::string& typed) {
    std::vector<std::string_view> names;
    for (const auto& [name, known] : known_) names.push_back(name);
    std::sort(names.begin(), names.end());
    const std::string_view near = nearest_word(typed, names);
    complain(typed, "is not an option of membill " + std::string(command_.name),
             near.empty() ? "membill " + std::string(command_.name) + " --help lists them" : std::string(near));
  }

  void check_count() {
    for (std::size_t i = arguments_.size(); i < result_.positionals.size(); ++i) {
      complain(membill::quoted(result_.positionals[i]), "is one argument too many");
    }
    if (!problems_.empty()) return;
    for (std::size_t i = result_.positionals.size(); i < arguments_.size(); ++i) {
      if (arguments_[i].required) complain(arguments_[i].name, "is missing", arguments_[i].help);
    }
  }

  const Command& command_;
  std::vector<OptionSpec> options_;
  std::vector<ArgumentSpec> arguments_;
  Problems& problems_;
  std::unordered_map<std::string, Known> known_;
  Arguments result_;
};

}  // namespace

Arguments parse_arguments(const Command& command, std::span<const std::string> words, Problems& problems) {
  return Parser(command, problems).parse(words);
}

}  // namespace membill::cli

// What a Python program says without being run: the calls it makes, and the values of their arguments as far as they are written down.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/importers/python_tokens.h"
#include "membill/value.h"

namespace membill::io {

// Words [begin, end) of the program.
struct PythonRange {
  std::size_t begin = 0, end = 0;
};

struct PythonArgument {
  std::string keyword;  // empty: by position; "**": a map of further ones
  PythonRange value;
};

struct PythonCall {
  std::string name;  // dotted: "AutoModelForCausalLM.from_pretrained"
  std::vector<PythonArgument> arguments;
  std::size_t at = 0;  // index of its first word

  [[nodiscard]] const PythonArgument* find(std::string_view keyword) const;
  // The last part of the name, and the one before it ("" for none).
  [[nodiscard]] std::string function() const;
  [[nodiscard]] std::string object() const;
};

class PythonProgram {
 public:
  // `flags`: the words of its command line by name, which go before the defaults that its argument parser has.
  explicit PythonProgram(std::string_view text, std::map<std::string, Value> flags = {});

  // In the order in which they are written, without those of branches that the program's own settings never take.
  [[nodiscard]] const std::vector<PythonCall>& calls() const { return calls_; }
  // Whether word `at` stands in a branch of which the text does not say whether it runs.
  [[nodiscard]] bool is_doubtful(std::size_t at) const;
  // The call that an expression is, or that the name which it is stands for; nullptr: none.
  [[nodiscard]] const PythonCall* call_of(PythonRange range) const;

  // The same of a name, and its value, at the end of the program.
  [[nodiscard]] const PythonCall* call_named(const std::string& name) const;
  [[nodiscard]] std::optional<Value> value_of(const std::string& name) const;

  // The value of an expression: literals, names that are assigned them, sums and products, comparisons, choices whose condition is known,
  // defaults of argparse and of dataclasses, what a function's one call gives to its parameters, os.environ.get with a default,
  // torch.cuda.is_available; a card that runs bf16. Nothing: the program computes it. dtypes are text: torch.bfloat16 is "bfloat16".
  [[nodiscard]] std::optional<Value> evaluate(PythonRange range) const;
  // How the program spells it.
  [[nodiscard]] std::string text_of(PythonRange range) const;

 private:
  class Evaluation;
  enum class Bound { assigned, field, parameter };
  struct Binding {
    std::size_t at;
    PythonRange value;
    Bound bound;
    std::size_t scope_end = static_cast<std::size_t>(-1);  // of a parameter
  };
  using CallsByName = std::map<std::string, std::vector<const PythonCall*>, std::less<>>;

  void collect_assignments();
  void collect_opened(std::size_t at);
  void collect_parameters();
  void collect_parameters_of(std::size_t def, const std::vector<const PythonCall*>& calls);
  [[nodiscard]] static const PythonRange* passed(const std::vector<const PythonCall*>& calls, std::size_t position,
                                                 const std::string& name);
  [[nodiscard]] std::size_t block_end(std::size_t at) const;
  [[nodiscard]] std::size_t colon_of(std::size_t at) const;
  [[nodiscard]] std::optional<bool> condition_of(std::size_t at, std::size_t colon) const;
  void drop_branches();
  int drop_branches_of(std::size_t at, std::vector<PythonRange>& dead);
  void collect_calls();
  [[nodiscard]] std::vector<PythonArgument> arguments_of(std::size_t open) const;
  void collect_option(const PythonCall& call);
  [[nodiscard]] std::size_t statement_end(std::size_t from) const;
  [[nodiscard]] bool is_op(std::size_t at, std::string_view text) const;
  [[nodiscard]] bool is_name(std::size_t at) const;
  [[nodiscard]] std::size_t argument_end(std::size_t from, std::size_t close) const;
  // The expression that `name` stands for at word `at`; nullptr: not known.
  [[nodiscard]] const Binding* binding(const std::string& name, std::size_t at) const;

  std::vector<PythonToken> tokens_;
  std::map<std::string, std::vector<Binding>> bindings_;  // by dotted name
  std::map<std::string, PythonRange> options_;            // argparse's: name, default
  std::vector<PythonCall> calls_;
  std::map<std::string, Value> flags_;
  std::vector<PythonRange> doubtful_;
};

}  // namespace membill::io

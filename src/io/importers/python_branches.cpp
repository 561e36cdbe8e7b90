// Where a function's parameters hold, and the branches that the program's own settings never take.
#include <algorithm>

#include "io/importers/python_arithmetic.h"
#include "io/importers/python_program.h"

namespace membill::io {
namespace {

bool lies_in(const std::vector<PythonRange>& ranges, std::size_t at) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [at](const PythonRange& range) { return range.begin <= at && at < range.end; });
}

}  // namespace

// The first word of the line behind the block that the statement of word `at` opens.
std::size_t PythonProgram::block_end(std::size_t at) const {
  const int indent = tokens_[at].indent;
  std::size_t next = statement_end(at) + 1;
  while (next < tokens_.size() && (tokens_[next].indent > indent || tokens_[next].kind == PythonKind::line_end))
    next = statement_end(next) + 1;
  return std::min(next, tokens_.size());
}

// What the one of `calls` that says it gives to parameter number `position`, `name`; nullptr: none, or several do.
const PythonRange* PythonProgram::passed(const std::vector<const PythonCall*>& calls, std::size_t position,
                                         const std::string& name) {
  const PythonRange* found = nullptr;
  for (const PythonCall* call : calls) {
    const PythonArgument* by_name = call->find(name);
    const bool by_place =
        by_name == nullptr && position < call->arguments.size() &&
        std::all_of(call->arguments.begin(), call->arguments.begin() + static_cast<long>(position) + 1,
                    [](const PythonArgument& one) { return one.keyword.empty(); });
    if (by_name == nullptr && !by_place) continue;
    if (found != nullptr) return nullptr;
    found = by_name != nullptr ? &by_name->value : &call->arguments[position].value;
  }
  return found;
}

// def f(NAME, NAME=..., NAME: TYPE = ...): what its one call gives them, else their defaults; within the function's own lines.
void PythonProgram::collect_parameters() {
  constexpr std::size_t kMostCalls = 8;
  CallsByName calls;
  for (const PythonCall& call : calls_)
    if (std::vector<const PythonCall*>& named = calls[call.function()]; named.size() <= kMostCalls)
      named.push_back(&call);
  for (std::size_t i = 0; i + 2 < tokens_.size(); ++i) {
    if (tokens_[i].text != "def" || tokens_[i].kind != PythonKind::name || !is_op(i + 2, "(")) continue;
    const auto found = calls.find(tokens_[i + 1].text);
    const bool known = found != calls.end() && found->second.size() <= kMostCalls;
    collect_parameters_of(i, known ? found->second : std::vector<const PythonCall*>());
  }
}

// Those of the function that word `def` begins, of which `calls` are all.
void PythonProgram::collect_parameters_of(std::size_t def, const std::vector<const PythonCall*>& calls) {
  const std::size_t close = std::min(tokens_[def + 2].match, tokens_.size()), end = block_end(def);
  std::size_t position = 0;
  for (std::size_t at = def + 3; at < close; ++at) {
    const std::size_t first = at, middle = argument_end(at, close);
    at = is_op(middle, "=") ? argument_end(middle + 1, close) : middle;
    if (!is_name(first) || tokens_[first].text == "self") continue;
    const PythonRange* given = passed(calls, position++, tokens_[first].text);
    const PythonRange value = given != nullptr ? *given : PythonRange{std::min(middle + 1, at), at};
    if (value.begin < value.end) bindings_[tokens_[first].text].push_back({first, value, Bound::parameter, end});
  }
}

// The word behind `if CONDITION:`, and whether it holds; nothing: not known.
std::optional<bool> PythonProgram::condition_of(std::size_t at, std::size_t colon) const {
  const std::optional<Value> value = evaluate({at + 1, colon});
  return value ? std::optional(is_true(*value)) : std::nullopt;
}

std::size_t PythonProgram::colon_of(std::size_t at) const {
  const std::size_t end = statement_end(at);
  std::size_t colon = at + 1;
  while (colon < end && !is_op(colon, ":"))
    colon = tokens_[colon].match > colon && tokens_[colon].match < end ? tokens_[colon].match + 1 : colon + 1;
  return colon;
}

bool PythonProgram::is_doubtful(std::size_t at) const { return lies_in(doubtful_, at); }

// Of if, elif and else only what runs; all of them where a condition is not known.
void PythonProgram::drop_branches() {
  constexpr int kMostBranches = 400;
  std::vector<PythonRange> dead;
  int seen = 0;
  for (std::size_t at = 0; at < tokens_.size() && seen < kMostBranches; at = statement_end(at) + 1)
    if (tokens_[at].kind == PythonKind::name && tokens_[at].text == "if" && !lies_in(dead, at))
      seen += drop_branches_of(at, dead);
  std::erase_if(calls_, [&](const PythonCall& call) { return lies_in(dead, call.at); });
}

// Of the branches that the `if` at word `at` begins, those that never run join `dead`. Gives how many branches there are.
int PythonProgram::drop_branches_of(std::size_t at, std::vector<PythonRange>& dead) {
  bool decided = false, open = false;  // whether an earlier branch runs, or may run
  int seen = 0;
  for (std::size_t branch = at; branch < tokens_.size(); ++seen) {
    const bool last = tokens_[branch].text == "else";
    const PythonRange body{colon_of(branch), block_end(branch)};
    const std::optional<bool> holds = last ? std::optional(true) : condition_of(branch, body.begin);
    if (decided || holds == false) {
      dead.push_back(body);
      for (auto& [name, all] : bindings_) std::erase_if(all, [&](const Binding& one) { return lies_in(dead, one.at); });
    } else {
      if (!holds || open) doubtful_.push_back(body);
      decided = holds == true && !open;
      open = open || !holds;
    }
    const bool goes_on = !last && body.end < tokens_.size() && tokens_[body.end].indent == tokens_[at].indent &&
                         (tokens_[body.end].text == "elif" || tokens_[body.end].text == "else");
    branch = goes_on ? body.end : tokens_.size();
  }
  return seen;
}

}  // namespace membill::io

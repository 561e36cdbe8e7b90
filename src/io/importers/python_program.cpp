#include <algorithm>
#include <array>

#include "io/importers/python_program.h"

namespace membill::io {
namespace {

constexpr std::array<std::string_view, 24> kKeywords{
    "if",      "elif",  "else",   "for", "while",  "return", "import", "from", "as",  "with", "try",  "except",
    "finally", "raise", "assert", "del", "lambda", "in",     "is",     "not",  "and", "or",   "pass", "yield"};

bool is_keyword(std::string_view word) {
  return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end() || word == "def" || word == "class";
}

std::string without_dashes(std::string name) {
  name.erase(0, name.find_first_not_of('-') == std::string::npos ? name.size() : name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace

const PythonArgument* PythonCall::find(std::string_view keyword) const {
  const auto found =
      std::find_if(arguments.begin(), arguments.end(), [&](const auto& one) { return one.keyword == keyword; });
  return found == arguments.end() ? nullptr : &*found;
}

std::string PythonCall::function() const { return name.substr(name.rfind('.') + 1); }

std::string PythonCall::object() const {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {};
  const std::string before = name.substr(0, dot);
  return before.substr(before.rfind('.') + 1);
}

PythonProgram::PythonProgram(std::string_view text, std::map<std::string, Value> flags)
    : tokens_(python_tokens(text)), flags_(std::move(flags)) {
  collect_assignments();
  collect_calls();
  collect_parameters();
  drop_branches();
}

bool PythonProgram::is_op(std::size_t at, std::string_view text) const {
  return at < tokens_.size() && tokens_[at].kind == PythonKind::op && tokens_[at].text == text;
}

bool PythonProgram::is_name(std::size_t at) const {
  return at < tokens_.size() && tokens_[at].kind == PythonKind::name && !is_keyword(tokens_[at].text);
}

// The line end, or ';', that closes the statement.
std::size_t PythonProgram::statement_end(std::size_t from) const {
  std::size_t at = from;
  while (at < tokens_.size() && tokens_[at].kind != PythonKind::line_end && !is_op(at, ";"))
    at = tokens_[at].match < tokens_.size() && tokens_[at].match > at ? tokens_[at].match + 1 : at + 1;
  return std::min(at, tokens_.size());
}

// NAME = ..., OBJECT.NAME = ..., NAME: TYPE = ... at the start of a statement.
void PythonProgram::collect_assignments() {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    collect_opened(i);
    const bool starts = i == 0 || tokens_[i - 1].kind == PythonKind::line_end || is_op(i - 1, ";") ||
                        (is_op(i - 1, ":") && tokens_[i - 1].line != tokens_[i].line);
    if (!starts || !is_name(i)) continue;
    std::string name = tokens_[i].text;
    std::size_t at = i + 1;
    for (; is_op(at, ".") && is_name(at + 1); at += 2) name += "." + tokens_[at + 1].text;
    const std::size_t end = statement_end(at);
    const bool annotated = is_op(at, ":");
    if (annotated) at = argument_end(at + 1, end);
    if (!is_op(at, "=")) continue;
    bindings_[name].push_back({i, {at + 1, end}, annotated ? Bound::field : Bound::assigned});
  }
}

// with OBJECT as NAME
void PythonProgram::collect_opened(std::size_t at) {
  if (tokens_[at].kind != PythonKind::name || tokens_[at].text != "with") return;
  const std::size_t end = statement_end(at);
  std::size_t as = at + 1;
  while (as < end && !(tokens_[as].kind == PythonKind::name && tokens_[as].text == "as"))
    as = tokens_[as].match > as && tokens_[as].match < end ? tokens_[as].match + 1 : as + 1;
  if (as < end && is_name(as + 1)) bindings_[tokens_[as + 1].text].push_back({at, {at + 1, as}, Bound::assigned});
}

// Where "=" or "," ends what begins at `from`, at the latest `close`.
std::size_t PythonProgram::argument_end(std::size_t from, std::size_t close) const {
  std::size_t at = from;
  while (at < close && !is_op(at, ",") && !is_op(at, "="))
    at = tokens_[at].match < close && tokens_[at].match > at ? tokens_[at].match + 1 : at + 1;
  return std::min(at, close);
}

void PythonProgram::collect_calls() {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (!is_name(i) || (i > 0 && (is_op(i - 1, ".") || tokens_[i - 1].text == "def" || tokens_[i - 1].text == "class")))
      continue;
    PythonCall call;
    call.name = tokens_[i].text;
    call.at = i;
    std::size_t at = i + 1;
    for (; is_op(at, ".") && is_name(at + 1); at += 2) call.name += "." + tokens_[at + 1].text;
    if (!is_op(at, "(")) continue;
    call.arguments = arguments_of(at);
    collect_option(call);
    calls_.push_back(std::move(call));
  }
}

// What stands between the bracket `open` and its closing one.
std::vector<PythonArgument> PythonProgram::arguments_of(std::size_t open) const {
  std::vector<PythonArgument> arguments;
  const std::size_t close = std::min(tokens_[open].match, tokens_.size());
  for (std::size_t first = open + 1; first < close;) {
    PythonArgument argument;
    std::size_t begin = first, end = argument_end(first, close);
    if (is_op(end, "=") && end == first + 1 && is_name(first)) {
      argument.keyword = tokens_[first].text;
      begin = end + 1;
      end = argument_end(begin, close);
    } else if (is_op(first, "**")) {
      argument.keyword = "**";
      begin = first + 1;
    }
    argument.value = {begin, end};
    if (begin < end) arguments.push_back(argument);
    first = end + 1;
  }
  return arguments;
}

// parser.add_argument("--name", default=..., action="store_true").
void PythonProgram::collect_option(const PythonCall& call) {
  if (call.function() != "add_argument") return;
  const PythonArgument *fallback = call.find("default"), *action = call.find("action");
  const bool is_switch = action != nullptr && tokens_[action->value.begin].text == "store_true";
  for (const PythonArgument& word : call.arguments) {
    if (!word.keyword.empty() || tokens_[word.value.begin].kind != PythonKind::text) continue;
    const std::string name = without_dashes(tokens_[word.value.begin].text);
    if (fallback != nullptr) options_[name] = fallback->value;
    if (fallback == nullptr && is_switch) flags_.try_emplace(name, Value::of(false));
  }
}

// The last assignment before the use, else the function's parameter, else, inside a function, the first assignment behind it of what is
// around.
const PythonProgram::Binding* PythonProgram::binding(const std::string& name, std::size_t at) const {
  const auto found = bindings_.find(name);
  if (found == bindings_.end()) return nullptr;
  const Binding *before = nullptr, *parameter = nullptr, *behind = nullptr;
  for (const Binding& one : found->second) {
    if (one.value.begin <= at && at < one.value.end) continue;
    if (one.bound == Bound::parameter) {
      if (one.at < at && at < one.scope_end) parameter = &one;
    } else if (one.at < at) {
      before = &one;
    } else if (behind == nullptr && tokens_[one.at].indent < tokens_[std::min(at, tokens_.size() - 1)].indent) {
      behind = &one;
    }
  }
  return before != nullptr ? before : parameter != nullptr ? parameter : behind;
}

const PythonCall* PythonProgram::call_of(PythonRange range) const {
  constexpr int kMostNames = 8;
  for (int names = 0; names < kMostNames && range.begin < range.end; ++names) {
    const auto call = std::lower_bound(calls_.begin(), calls_.end(), range.begin,
                                       [](const PythonCall& one, std::size_t at) { return one.at < at; });
    if (call != calls_.end() && call->at == range.begin) return &*call;
    if (!is_name(range.begin)) return nullptr;
    std::string name = tokens_[range.begin].text;
    for (std::size_t at = range.begin + 1; is_op(at, ".") && is_name(at + 1); at += 2)
      name += "." + tokens_[at + 1].text;
    const Binding* stands_for = binding(name, range.begin);
    if (stands_for == nullptr) return nullptr;
    range = stands_for->value;
  }
  return nullptr;
}

const PythonCall* PythonProgram::call_named(const std::string& name) const {
  const Binding* found = binding(name, tokens_.size());
  return found != nullptr ? call_of(found->value) : nullptr;
}

std::optional<Value> PythonProgram::value_of(const std::string& name) const {
  const Binding* found = binding(name, tokens_.size());
  return found != nullptr ? evaluate(found->value) : std::nullopt;
}

std::string PythonProgram::text_of(PythonRange range) const {
  constexpr std::size_t kMost = 60;
  std::string text;
  bool after_word = false;
  for (std::size_t i = range.begin; i < std::min(range.end, tokens_.size()); ++i) {
    const PythonToken& token = tokens_[i];
    const bool quotes = token.kind == PythonKind::text || token.kind == PythonKind::computed_text;
    const bool word = quotes || token.kind == PythonKind::name || token.kind == PythonKind::number;
    if (word && after_word) text += ' ';
    after_word = word || token.text == ")" || token.text == "]";
    text += quotes ? "\"" + token.text + "\"" : token.text;
    if (text.size() > kMost) return text.substr(0, kMost) + "...";
  }
  return text;
}

}  // namespace membill::io

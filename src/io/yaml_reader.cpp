#include "io/yaml_reader.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <map>
#include <optional>
#include <streambuf>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/document.h"
#include "io/json_reader.h"
#include "io/text_file.h"
#include "io/yaml_scalar.h"
#include "membill/problem.h"

namespace membill::io {
namespace {

constexpr std::string_view kStandardTag = "tag:yaml.org,2002:";
constexpr std::int64_t kMostBrackets = 200'000;  // the scanner queues every bracket of a line

// What a text counts toward kMostValues, so that aliases cannot multiply long texts.
std::int64_t weight(std::string_view text) { return 1 + static_cast<std::int64_t>(text.size() / 64); }

// A value that is finished, with what bounds need: how many values it holds and how deep it is.
struct Finished {
  Value value;
  std::int64_t values = 1;
  int height = 0;
};

// A list or map that is being read.
struct Open {
  bool is_map = false;
  int line = 0;
  YAML::anchor_t anchor = 0;
  std::int64_t values = 1;
  int height = 1;
  std::vector<Value> items;
  std::vector<Value::Entry> entries;
  KeyIndex keys;
  std::optional<std::string> key;  // read, its value not yet
  bool repeats = false;            // some key stood there before
  bool merging = false;            // that key is a plain `<<`
  std::vector<Value> merged;       // maps to merge, the first wins
};

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// Lets a std::istream read memory that stays where it is.
class MemoryBuffer : public std::streambuf {
 public:
  explicit MemoryBuffer(std::string_view text) {
    char* begin =
        const_cast<char*>(text.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast): the get area is never written
    setg(begin, begin, begin + text.size());
  }
};

class ValueBuilder : public YAML::EventHandler {
 public:
  // `repeated`: where keys that stand twice are noted; null: they are problems.
  ValueBuilder(const std::string& file, Problems* repeated) : file_(file), repeated_(repeated) {}

  Value take_root() {
    problems_.throw_if_any();
    return std::move(root_);
  }
  // Where the last scalar began; the start of the text when there was none.
  [[nodiscard]] const YAML::Mark& last_scalar() const { return last_scalar_; }
  [[noreturn]] void fail(int line, const std::string& message, std::string hint = {}) {
    problems_.add(Problem{file_, "", place(line) + message, std::move(hint)});
    throw InputError(problems_.list());
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) fail(mark.line + 1, "a second document begins", "one file holds one job");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const int line = mark.line + 1;
    if (expects_key()) fail(line, "a key is empty");
    finish(at_line(Finished{}, line), line, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const int line = mark.line + 1;
    if (expects_key()) fail(line, "a key is an alias");
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(line, "an alias stands inside of the value that it names");
    finish(found->second, line, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const int line = mark.line + 1;
    last_scalar_ = mark;
    if (expects_key()) return set_key(line, tag, text);
    finish(at_line(Finished{to_value(line, tag, text), weight(text), 0}, line), line, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark.line + 1, tag, "seq", false, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark.line + 1, tag, "map", true, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  static std::string place(int line) { return line > 0 ? "line " + std::to_string(line) + ": " : std::string(); }

  [[nodiscard]] std::string path() const {
    std::string result;
    for (const Open& open : open_) {
      if (open.key) result += (result.empty() ? "" : ".") + *open.key;
    }
    return result;
  }
  void report(int line, const std::string& message) {
    problems_.add(Problem{file_, path(), place(line) + message, ""});
  }

  [[nodiscard]] bool expects_key() const { return !open_.empty() && open_.back().is_map && !open_.back().key; }

  static Finished at_line(Finished finished, int line) {
    finished.value.line = line;
    return finished;
  }

  void set_key(int line, const std::string& tag, const std::string& text) {
    Open& map = open_.back();
    map.merging = tag == "?" && text == "<<";
    map.key = text;
    map.values += weight(text) - 1;
    const int first = map.keys.add(text, line);
    if (first == 0) return;
    map.repeats = true;
    const std::string message = "duplicate key (first on line " + std::to_string(first) + ")";
    if (repeated_ == nullptr) return report(line, message);
    repeated_->add(Problem{file_, path(), place(line) + message, ""});
  }

  void open(int line, const std::string& tag, const std::string& kind, bool is_map, YAML::anchor_t anchor) {
    if (expects_key()) fail(line, "a key is a list or a map");
    if (!is_one_of(tag, {"", "?", "!"}) && tag != std::string(kStandardTag) + kind)
      fail(line, "the tag " + quoted(tag) + " is not supported");
    if (open_.size() >= static_cast<std::size_t>(kDeepest)) fail(line, "lists and maps are nested deeper than 64");
    Open opened;
    opened.is_map = is_map;
    opened.line = line;
    opened.anchor = anchor;
    open_.push_back(std::move(opened));
  }

  void close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    Finished finished{closed.is_map ? to_map(closed) : Value::make_list(std::move(closed.items)), closed.values,
                      closed.height};
    finish(at_line(std::move(finished), closed.line), closed.line, closed.anchor);
  }

  static Value to_map(Open& closed) {
    if (closed.repeats) closed.entries = with_last_values(std::move(closed.entries));
    Value map = Value::make_map(std::move(closed.entries));
    for (Value& source : closed.merged) {
      for (Value::Entry& entry : source.entries()) {
        if (closed.keys.add(entry.first, entry.second.line) == 0) map.entries().push_back(std::move(entry));
      }
    }
    return map;
  }

  void finish(Finished finished, int line, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = finished;
    if (open_.empty()) {
      root_ = std::move(finished.value);
      return;
    }
    Open& parent = open_.back();
    parent.values += finished.values;
    parent.height = std::max(parent.height, finished.height + 1);
    total_ += finished.values;
    if (total_ > kMostValues) fail(line, "holds more than 2000000 values once aliases are expanded");
    if (parent.height + static_cast<int>(open_.size()) - 1 > kDeepest)
      fail(line, "lists and maps are nested deeper than 64");
    if (!parent.is_map) {
      parent.items.push_back(std::move(finished.value));
      return;
    }
    if (parent.merging) {
      merge(parent, std::move(finished.value), line);
    } else {
      parent.entries.emplace_back(std::move(*parent.key), std::move(finished.value));
    }
    parent.key.reset();
  }

  // Each key once, at its first place with its last value.
  static std::vector<Value::Entry> with_last_values(std::vector<Value::Entry> entries) {
    std::unordered_map<std::string, std::size_t> places;
    std::vector<Value::Entry> result;
    for (Value::Entry& entry : entries) {
      const auto [place, is_new] = places.emplace(entry.first, result.size());
      if (is_new) {
        result.push_back(std::move(entry));
      } else {
        result[place->second].second = std::move(entry.second);
      }
    }
    return result;
  }

  void merge(Open& map, Value source, int line) {
    if (source.is_map()) {
      map.merged.push_back(std::move(source));
      return;
    }
    if (!source.is_list()) fail(line, "'<<' merges maps only");
    for (Value& item : source.items()) {
      if (!item.is_map()) fail(line, "'<<' merges maps only");
      map.merged.push_back(std::move(item));
    }
  }

  Value to_value(int line, const std::string& tag, const std::string& text) {
    if (tag == "?" || tag.empty()) return plain(line, text);
    if (tag == "!" || tag == std::string(kStandardTag) + "str") return Value::of(text);
    for (const std::string_view known : {"int", "float", "bool", "null"}) {
      if (tag == std::string(kStandardTag) + std::string(known)) return tagged(line, known, text);
    }
    fail(line, "the tag " + quoted(tag) + " is not supported");
  }

  Value tagged(int line, std::string_view tag, const std::string& text) {
    Value value = is_one_of(text, {"", "~", "null", "Null", "NULL"}) ? Value() : plain(line, text);
    const bool matches = (tag == "int" && value.is_int()) || (tag == "float" && value.is_number()) ||
                         (tag == "bool" && value.is_bool()) || (tag == "null" && value.is_null());
    if (!matches) fail(line, quoted(text) + " does not match its tag !!" + std::string(tag));
    return value;
  }

  Value plain(int line, const std::string& text) {
    std::string why;
    Value value = plain_scalar(text, why);
    if (!why.empty()) report(line, quoted(text) + " " + why);
    return value;
  }

  const std::string& file_;
  Problems* repeated_;
  Problems problems_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Finished> anchors_;
  std::int64_t total_ = 0;
  int documents_ = 0;
  YAML::Mark last_scalar_;
  Value root_;
};

void check_size(std::string_view text, const std::string& file) {
  if (static_cast<std::int64_t>(text.size()) > kLargestYaml)
    throw InputError(Problem{file, "", "is larger than 4 MiB, too much for YAML", ""});
  const auto brackets = std::count_if(text.begin(), text.end(), [](char c) { return c == '[' || c == '{'; });
  if (brackets > kMostBrackets) throw InputError(Problem{file, "", "holds more than 200000 brackets", ""});
}

std::string_view line_of(std::string_view text, int line) {
  std::size_t start = 0;
  for (int i = 1; i < line; ++i) {
    const std::size_t end = text.find('\n', start);
    if (end == std::string_view::npos) return {};
    start = end + 1;
  }
  return text.substr(start, text.find('\n', start) - start);
}

bool is_indented_by_tab(std::string_view line) {
  const std::size_t first = line.find_first_not_of(' ');
  return first != std::string_view::npos && line[first] == '\t';
}

// What follows the column `column` (in characters) of the line `line`, to the end of the text.
std::string_view text_from(std::string_view text, int line, int column) {
  const std::string_view whole = line_of(text, line);
  std::size_t at = whole.empty() ? text.size() : static_cast<std::size_t>(whole.data() - text.data());
  while (column > 0 && at < text.size()) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) ++at;
    --column;
  }
  return text.substr(at);
}

// Is the quoted scalar closed with which `text` begins, after its tag and anchor? A scalar in another style always is.
bool is_quote_closed(std::string_view text) {
  while (!text.empty() && (text.front() == '&' || text.front() == '!')) {
    text.remove_prefix(std::min(text.find_first_of(" \t\r\n"), text.size()));
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  }
  if (text.empty() || (text.front() != '"' && text.front() != '\'')) return true;
  const char quote = text.front();
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || i + 1 >= text.size() || text[i + 1] != quote) return true;
      ++i;
    }
  }
  return false;
}

}  // namespace

namespace {

Value parse(std::string_view text, const std::string& file, Problems* repeated) {
  const std::string_view checked = check_text(text, file);
  check_size(checked, file);
  ValueBuilder builder(file, repeated);
  MemoryBuffer buffer(checked);
  std::istream stream(&buffer);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) throw InputError(Problem{file, "", "is empty", ""});
    parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 0 : error.mark.line + 1;
    if (is_indented_by_tab(line_of(checked, line)))
      builder.fail(line, "a tab is used as indentation", "YAML takes blanks only");
    builder.fail(line, "is not YAML: " + error.msg);
  }
  // yaml-cpp lets the end of the file close a quoted text.
  const YAML::Mark& last = builder.last_scalar();
  if (!is_quote_closed(text_from(checked, last.line + 1, last.column)))
    builder.fail(last.line + 1, "a quoted text is not closed");
  return builder.take_root();
}

}  // namespace

Value parse_yaml(std::string_view text, const std::string& file) { return parse(text, file, nullptr); }

Value parse_yaml(std::string_view text, const std::string& file, Problems& repeated) {
  return parse(text, file, &repeated);
}

}  // namespace membill::io

#include "io/importers/shell_words.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "io/importers/shell_branches.h"
#include "io/importers/shell_reader.h"
#include "io/importers/shell_text.h"
#include "membill/catalog.h"
#include "membill/value.h"

namespace membill::io {
namespace {

constexpr int kMostCalls = 200;  // of functions
constexpr std::size_t kMostPositions = 100;

class Splitter : private ShellReader {
 public:
  using ShellReader::ShellReader;

  void split() {
    while (at_ < text_.size() && commands_.size() < kMostCommands && words_in_all_ < kMostWords) {
      const char c = text_[at_];
      if (const std::size_t length = continuation_length(text_, at_); length > 0) {
        at_ += length;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        end_word();
        ++at_;
      } else if (c == '#' && !in_word_) {
        at_ = end_of_line(text_, at_);
      } else if (c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
        separate(c);
      } else if (c == '<' || c == '>') {
        redirect(c);
      } else {
        in_word_ = true;
        take(word_);
      }
    }
    end_word();
    end_command();
  }

  std::vector<ShellCommand> take_commands() {
    std::vector<ShellCommand> uncalled = commands_of_uncalled_functions();
    commands_.insert(commands_.begin(), std::make_move_iterator(uncalled.begin()),
                     std::make_move_iterator(uncalled.end()));
    const auto files = std::make_shared<const WrittenFiles>(std::move(scope_.files));
    for (ShellCommand& command : commands_) command.files = files;
    return std::move(commands_);
  }

 private:
  // Splits `text` with what is known here, and takes over what it learns.
  std::vector<ShellCommand> split_inner(std::string_view text) {
    Splitter inner(text, std::move(scope_), depth_ + 1);
    inner.calls_ = calls_;
    inner.split();
    scope_ = std::move(inner.scope_);
    calls_ = inner.calls_;
    return std::move(inner.commands_);
  }

  std::vector<ShellCommand> commands_of_uncalled_functions() {
    std::vector<ShellCommand> all;
    const auto functions = scope_.functions;
    for (const auto& [name, body] : functions) {
      if (called_.contains(name) || ++calls_ > kMostCalls || depth_ > 0) continue;
      const Variables kept = scope_.variables;
      for (ShellCommand& command : split_inner(body)) {
        if (all.size() + commands_.size() < kMostCommands) all.push_back(std::move(command));
      }
      scope_.variables = kept;
    }
    return all;
  }

  // "> file", "2>&1": neither the sign nor the file is a word. "<<EOF": a document follows the line.
  void redirect(char sign) {
    if (word_ == "1" || word_ == "2") drop_word();
    end_word();
    std::size_t signs = 0;
    while (at_ < text_.size() && text_[at_] == sign) ++at_, ++signs;
    const bool document = sign == '<' && signs == 2;
    if (document && at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size() && (text_[at_] == '&' || text_[at_] == ' ')) ++at_;
    const std::size_t start = at_;
    std::string target;
    while (at_ < text_.size() && std::string_view(" \t\r\n;|&<>()").find(text_[at_]) == std::string_view::npos)
      take(target);
    const std::string_view written = text_.substr(start, at_ - start);
    if (document) documents_.push_back({target, written.find_first_of("'\"\\") == std::string_view::npos});
    if (sign == '>') target_ = target;
    drop_word();
  }

  struct Document {
    std::string ending;
    bool expands = false;
  };

  // The documents that begin behind the line that ends at `at_`.
  void read_documents() {
    for (const Document& document : std::exchange(documents_, {})) {
      const std::size_t start = std::min(at_ + 1, text_.size());
      std::size_t line = start;
      while (line < text_.size() && trim(text_.substr(line, end_of_line(text_, line) - line)) != document.ending)
        line = std::min(end_of_line(text_, line) + 1, text_.size());
      const std::string_view body = text_.substr(start, line - start);
      std::string content = document.expands ? document_text(body) : std::string(body);
      if (words_.size() > 1 && words_.front() == "read") {
        assign_text(words_.back(), std::move(content));
      } else {
        write_file(std::move(content));
      }
      at_ = end_of_line(text_, line);
    }
  }

  // read -r -d '' NAME <<EOF: the document's lines, joined where they say so.
  void assign_text(const std::string& name, std::string text) {
    for (std::size_t mark = text.find("\\\n"); mark != std::string::npos; mark = text.find("\\\n", mark))
      text.replace(mark, 2, " ");
    if (!branches_.skips()) scope_.assign(name, std::move(text));
  }

  void write_file(std::string text) {
    const bool tee = words_.size() > 1 && words_.front() == "tee";
    const std::string name = tee ? words_.back() : target_;
    if (!name.empty() && !branches_.skips()) scope_.files[name] = std::move(text);
    target_.clear();
  }

  // NAME=( ... ) is an array, NAME() a function; any other sign ends a command.
  void separate(char c) {
    if (c == '(' && in_word_ && word_.ends_with('=') && is_assignment(word_)) return read_array();
    if (c == '(' && in_word_ && opens_function()) return read_function(std::exchange(word_, {}));
    end_word();
    if (branches_.expects_pattern()) return read_pattern(c);
    if (c == '\n') read_documents();
    end_command();
    if (c == ';' && at(1) == ';') {
      branches_.end_pattern();
      ++at_;
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  void read_pattern(char c) {
    ++at_;
    if (c != ')' || words_.empty()) return;  // '|' parts alternatives
    branches_.pattern(std::exchange(words_, {}));
  }

  [[nodiscard]] bool opens_function() const {
    if (!words_.empty() && words_ != std::vector<std::string>{"function"}) return false;
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] == ' ') ++end;
    return end < text_.size() && text_[end] == ')' && !branches_.expects_pattern() &&
           word_.find_first_of("$=\"'") == std::string::npos;
  }

  void read_function(const std::string& name) {
    drop_word();
    words_.clear();
    const std::size_t open = std::min(text_.find('{', at_), text_.size());
    const std::size_t close = matching_brace(text_, open);
    if (open < text_.size()) scope_.functions[name] = std::string(text_.substr(open + 1, close - open - 1));
    at_ = std::min(close + 1, text_.size());
  }

  void read_array() {
    std::string name = word_.substr(0, word_.size() - 1);
    const bool appends = name.ends_with('+');
    if (appends) name.pop_back();
    drop_word();
    ++at_;
    std::vector<std::string> items;
    if (appends) items = scope_.arrays[name];
    while (at_ < text_.size() && text_[at_] != ')' && items.size() < kMostWords) {
      const char c = text_[at_];
      if (const std::size_t length = continuation_length(text_, at_); length > 0) {
        at_ += length;
      } else if (c == '#') {
        at_ = end_of_line(text_, at_);
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at_;
      } else {
        read_item(items);
      }
    }
    if (at_ < text_.size()) ++at_;
    drop_word();
    if (!branches_.skips()) scope_.arrays[name] = std::move(items);
  }

  void read_item(std::vector<std::string>& items) {
    std::string item;
    breaks_ = quoted_ = false;
    while (at_ < text_.size() && std::string_view(" \t\r\n)").find(text_[at_]) == std::string_view::npos) take(item);
    if (array_ && item.empty()) {
      for (std::string& part : array_words()) items.push_back(std::move(part));
    } else if (breaks_ && !quoted_) {
      for (std::string& part : words_of(item)) items.push_back(std::move(part));
    } else {
      items.push_back(std::move(item));
    }
    array_ = false;
    pending_.clear();
  }

  // The items of an array; without quotes around it each is split at blanks.
  std::vector<std::string> array_words() {
    std::vector<std::string> items = std::exchange(pending_, {});
    if (quoted_) return items;
    std::vector<std::string> words;
    for (const std::string& item : items) {
      for (std::string& word : words_of(item)) words.push_back(std::move(word));
    }
    return words;
  }

  void drop_word() {
    word_.clear();
    in_word_ = quoted_ = breaks_ = false;
  }

  void end_word() {
    if (array_ && word_.empty()) {
      for (std::string& item : array_words()) add_word(std::move(item));
    } else if (in_word_) {
      end_plain_word();
    }
    pending_.clear();
    array_ = false;
    drop_word();
  }

  void end_plain_word() {
    if ((words_.empty() || exports_) && is_assignment(word_)) {
      if (!branches_.skips()) scope_.assign_word(word_);
    } else if (breaks_ && !quoted_) {
      for (std::string& part : words_of(word_)) add_word(std::move(part));
    } else if (words_.empty() && (word_ == "export" || word_ == "local" || word_ == "declare" || word_ == "readonly")) {
      exports_ = true;
    } else if (quoted_ || !read_reserved()) {
      if (!word_.empty() || quoted_) add_word(word_);
    }
  }

  // Words of the shell's own language, which are no words of a command.
  bool read_reserved() {
    if (words_.size() == 2 && words_.front() == "case" && word_ == "in") {
      branches_.open_case(std::exchange(words_, {}).back());
      return true;
    }
    if (words_.size() == 2 && words_.front() == "function" && word_ == "{") {
      at_ -= 1;
      read_function(std::string(words_.back()));
      return true;
    }
    if (!words_.empty()) return false;
    if (word_ == "if" || word_ == "elif") {
      if (word_ == "if") branches_.open_if();
      if (word_ == "elif") branches_.otherwise(true);
      conditions_ = 0;
      in_condition_ = true;
    } else if (word_ == "then") {
      branches_.then(conditions_ == 1 ? condition_ : std::nullopt);
      in_condition_ = false;
    } else if (word_ == "else") {
      branches_.otherwise(false);
    } else if (word_ == "fi") {
      branches_.close_if();
    } else if (word_ == "esac") {
      branches_.close_case();
    } else if (word_ == "!") {
      conditions_ = 2;
    } else if (word_ == "while" || word_ == "until" || word_ == "do" || word_ == "done") {
      read_loop();
    } else {
      return word_ == "{" || word_ == "}";
    }
    return true;
  }

  void read_loop() {
    if (word_ == "do") {
      branches_.open_loop(in_condition_ && conditions_ == 1 ? condition_ : std::nullopt);
      in_condition_ = false;
    } else if (word_ == "done") {
      branches_.close_loop();
    } else {
      conditions_ = word_ == "while" ? 0 : 2;
      in_condition_ = true;
    }
  }

  void add_word(std::string word) {
    ++words_in_all_;
    words_.push_back(std::move(word));
  }

  void end_command() {
    exports_ = false;
    std::vector<std::string> words = std::exchange(words_, {});
    const std::string target = std::exchange(target_, {});
    if (words.empty()) return;
    if (in_condition_) {
      ++conditions_;
      condition_ = shell_condition(words);
      return;
    }
    if (branches_.skips()) return;
    if (words.front() == "for" && words.size() > 3 && words[2] == "in") return scope_.assign(words[1], words.back());
    if (words.front() == "shift" || (words.front() == "set" && words.size() > 1 && words[1] == "--"))
      return move_positions(words);
    if (words.front() == "echo" && !target.empty()) scope_.files[target] += joined(words, 1) + "\n";
    if (const auto function = scope_.functions.find(words.front()); function != scope_.functions.end())
      return call(std::string(function->second), words);
    commands_.push_back({std::move(words), scope_.variables, nullptr});
  }

  // shift, shift 2; set -- a b c.
  void move_positions(const std::vector<std::string>& words) {
    std::vector<std::string> items(words.begin() + 1, words.end());
    if (words.front() == "set") {
      items.erase(items.begin());
    } else {
      const Value count = items.empty() ? Value::of(1) : flag_value(items.front());
      items = scope_.arrays["@"];
      const auto gone = static_cast<std::size_t>(std::max<std::int64_t>(count.is_int() ? count.as_int() : 0, 0));
      items.erase(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(std::min(gone, items.size())));
    }
    const std::size_t before = std::min(scope_.arrays["@"].size(), kMostPositions);
    for (std::size_t i = items.size() + 1; i <= before; ++i) scope_.variables.unset(std::to_string(i));
    for (std::size_t i = 0; i < std::min(items.size(), kMostPositions); ++i)
      scope_.assign(std::to_string(i + 1), items[i]);
    scope_.arrays["@"] = std::move(items);
  }

  // A function: its text, with the words behind its name as $1, $2 ...
  void call(const std::string& body, const std::vector<std::string>& words) {
    called_.insert(words.front());
    if (depth_ >= kDeepest || ++calls_ > kMostCalls) return;
    const Variables kept = scope_.variables;
    const std::vector<std::string> outer = std::exchange(scope_.arrays["@"], {words.begin() + 1, words.end()});
    for (std::size_t i = 1; i < std::min(words.size(), kMostPositions); ++i) scope_.assign(std::to_string(i), words[i]);
    for (ShellCommand& command : split_inner(body)) {
      if (commands_.size() < kMostCommands) commands_.push_back(std::move(command));
    }
    scope_.arrays["@"] = outer;
    for (std::size_t i = 1; i < std::min(words.size(), kMostPositions); ++i) {
      const std::string name = std::to_string(i);
      const std::string* before = kept.find(name);
      before == nullptr ? scope_.variables.unset(name) : scope_.variables.set(name, *before);
    }
  }

  std::string word_;
  bool in_word_ = false, exports_ = false;
  std::vector<std::string> words_;
  std::size_t words_in_all_ = 0;
  int calls_ = 0;
  std::set<std::string, std::less<>> called_;
  ShellBranches branches_;
  bool in_condition_ = false;
  int conditions_ = 0;  // commands of the condition that is being read
  std::optional<bool> condition_;
  std::vector<Document> documents_;
  std::string target_;  // the file that the command writes
  std::vector<ShellCommand> commands_;
};

}  // namespace

std::vector<ShellCommand> split_one(std::string_view script, Variables variables) {
  Splitter splitter(script, ShellScope(std::move(variables)), 0);
  splitter.split();
  return splitter.take_commands();
}

}  // namespace membill::io

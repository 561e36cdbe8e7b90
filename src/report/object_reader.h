// Reads the members of one JSON object strictly; every failure is a problem that names the path ("items[3].bytes").
#ifndef MEMBILL_REPORT_OBJECT_READER_H_
#define MEMBILL_REPORT_OBJECT_READER_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "membill/problem.h"
#include "membill/value.h"

namespace membill::report {

class ObjectReader {
 public:
  // Keeps references: `value`, `file` and `problems` outlive the reader. A value that is no object is a problem of its own.
  ObjectReader(const Value& value, const std::string& file, std::string path, Problems& problems)
      : value_(value), file_(file), path_(std::move(path)), problems_(problems) {}

  // Each reads one required member. The result keeps its value when there is a problem. Optional ones take null for none.
  void read(std::string_view key, std::string& result);
  void read(std::string_view key, bool& result);
  void read(std::string_view key, std::int64_t& result);
  void read(std::string_view key, std::optional<std::string>& result);
  void read(std::string_view key, std::optional<std::int64_t>& result);
  void texts(std::string_view key, std::vector<std::string>& result);
  void integers(std::string_view key, std::vector<std::int64_t>& result);
  // An object of whole numbers, in the order of the file.
  void counts(std::string_view key, std::vector<std::pair<std::string, std::int64_t>>& result);
  // Whether there is such a member: for those that a report may lack.
  [[nodiscard]] bool has(std::string_view key) const { return value_.find(key) != nullptr; }
  // The member, when it is an object; nullptr and a problem otherwise.
  [[nodiscard]] const Value* map(std::string_view key);

  // The member whose word `word_of` gives.
  template <typename Choice>
  void choose(std::string_view key, Choice& result, std::initializer_list<Choice> choices,
              std::string_view (*word_of)(Choice)) {
    std::string word;
    const std::size_t before = problems_.list().size();
    read(key, word);
    if (problems_.list().size() != before) return;
    for (const Choice choice : choices) {
      if (word_of(choice) == word) {
        result = choice;
        return;
      }
    }
    std::vector<std::string_view> words;
    for (const Choice choice : choices) words.push_back(word_of(choice));
    complain(key, "has the unknown word \"" + word + "\"", words);
  }

  // Reads the member object with `read_members`, then refuses what that did not read.
  template <typename ReadMembers>
  void object(std::string_view key, const ReadMembers& read_members) {
    if (const Value* member = map(key)) {
      ObjectReader fields(*member, file_, path_of(key), problems_);
      read_members(fields);
      fields.refuse_others();
    }
  }

  // A list of objects.
  template <typename Element>
  void list(std::string_view key, std::vector<Element>& result, void (*read_members)(ObjectReader&, Element&)) {
    const Value* member = find(key, Value::Kind::list);
    if (member == nullptr) return;
    for (const Value& item : member->items()) {
      const std::string path = path_of(key) + "[" + std::to_string(result.size()) + "]";
      result.emplace_back();
      if (!item.is_map()) {
        problems_.add({file_, path, "needs an object", ""});
        continue;
      }
      ObjectReader fields(item, file_, path, problems_);
      read_members(fields, result.back());
      fields.refuse_others();
    }
  }

  // A problem for each member that was not read.
  void refuse_others();

 private:
  [[nodiscard]] std::string path_of(std::string_view key) const;
  // The member when it is of `kind`; nullptr and a problem otherwise.
  const Value* find(std::string_view key, Value::Kind kind);
  const Value* find_any(std::string_view key);
  void complain(std::string_view key, std::string message, const std::vector<std::string_view>& words = {});

  const Value& value_;
  const std::string& file_;
  std::string path_;
  Problems& problems_;
  std::vector<std::string_view> known_;
};

}  // namespace membill::report

#endif  // MEMBILL_REPORT_OBJECT_READER_H_

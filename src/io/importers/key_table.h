// The keys of a job file format as data, and a reader that follows such a table: it gives each key's value or the framework's default,
// and keeps a record of what became of every key.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "membill/problem.h"
#include "membill/value.h"

namespace membill::io {

// One key that can matter to memory.
struct KeyRow {
  std::string_view key;           // dotted inside maps: "gradient_checkpointing_kwargs.use_reentrant"
  std::string_view fallback;      // the framework's default as text ("8", "false"); empty: none
  std::string_view meaning;       // what it says to the plan
  std::string_view same_as = {};  // the key of which this is another spelling; its row says the rest
  std::string_view source = {};   // its file, beside the one that the table's source names; empty: that one
};

// The keys of one part of a framework's arguments.
struct KeyTable {
  std::span<const KeyRow> rows;
  std::string_view
      harmless;  // keys that cannot matter to memory, with blanks between; "prefix*" stands for all that begin so
  std::string_view source;  // where names and defaults are defined
};

// What became of a key.
enum class KeyState : std::uint8_t {
  read,       // its value is used
  defaulted,  // absent: the framework's default is used
  idle,       // known, but without effect beside the other keys
  harmless,   // cannot matter to memory
  unknown,    // not in the tables
};

struct KeyRecord {
  std::string file;  // name of the file, or "command line"
  std::string key;
  KeyState state = KeyState::read;
  std::string value;  // as text
  std::string
      note;  // meaning; of a default its source; of an unknown key the nearest known one, empty when none is near
};

// One line: "train.yaml: cutoff_len: 4096 is read: tokens of a sequence".
[[nodiscard]] std::string to_text(const KeyRecord& record);

// `value` as text for people: 4096, true, adamw, [a, b], {...}.
[[nodiscard]] std::string value_text(const Value& value);

// true and false as YAML, Python and shells write them; nothing: neither.
[[nodiscard]] std::optional<bool> as_flag(const Value& value);

// Reads a map by tables. The map may come from a file or from words of a command line: numbers and switches given as text are
// understood. A value of the wrong type is a problem, and reads as absent. Null counts as absent.
class KeyReader {
 public:
  // `tables` are searched in order. `prefix` is put before keys in problems and records ("deepspeed.").
  KeyReader(const Value& map, std::string file, std::vector<KeyTable> tables, Problems& problems,
            std::string prefix = {});

  // The value, the framework's default, or nothing. REQUIRES: a row of `key`.
  [[nodiscard]] std::optional<std::string> text(std::string_view key);
  [[nodiscard]] std::optional<std::int64_t> count(std::string_view key, std::int64_t least = 0);
  [[nodiscard]] std::optional<double> real(std::string_view key);
  [[nodiscard]] bool flag(std::string_view key);  // absent without a default: false
  [[nodiscard]] std::optional<bool> maybe_flag(std::string_view key);
  [[nodiscard]] std::vector<std::string> texts(std::string_view key);  // a list, or text parted by commas or blanks
  // The value as it stands, nullptr when absent or null; the default is not used.
  [[nodiscard]] const Value* given(std::string_view key);
  [[nodiscard]] bool is_given(std::string_view key) { return given(key) != nullptr; }
  // Whether the file says null.
  [[nodiscard]] bool is_null(std::string_view key);

  // Marks a key as used without asking for it.
  void use(std::string_view key) { asked_.insert(std::string(key)); }
  void problem(std::string_view key, std::string message, std::string hint = {});

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const Value& map() const { return map_; }

  // The records of all keys, in the order of the file, then of the defaults that were used.
  [[nodiscard]] std::vector<KeyRecord> records() const;

 private:
  struct Found {
    const Value* value = nullptr;  // nullptr: absent
    std::string key;               // as the file spells it
  };
  [[nodiscard]] Found find(std::string_view key) const;
  [[nodiscard]] Value value_or_default(std::string_view key, std::string& spelled);
  [[nodiscard]] const KeyRow* row(std::string_view key, const KeyTable** table = nullptr) const;
  [[nodiscard]] const KeyRow* known_row(const std::string& key) const;  // of "no_key" too, argparse's negation
  [[nodiscard]] bool is_harmless(std::string_view key) const;
  [[nodiscard]] bool leads_further(const std::string& key) const;
  [[nodiscard]] std::string nearest(const std::string& key) const;
  void record_map(const Value& map, const std::string& path, std::vector<KeyRecord>& records) const;
  void record_key(const Value& value, const std::string& key, std::vector<KeyRecord>& records) const;
  void wrong(const std::string& key, const Value& value, const std::string& needed);

  const Value& map_;
  std::string file_;
  std::vector<KeyTable> tables_;
  Problems& problems_;
  std::string prefix_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace membill::io

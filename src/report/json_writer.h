// Writes JSON text in the order of the calls: the same calls give the same bytes.
#ifndef MEMBILL_REPORT_JSON_WRITER_H_
#define MEMBILL_REPORT_JSON_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace membill::report {

// Layout of the text. `lines`: two blanks of indent for each level, but what is begun `flat` stays on its line; `compact`: no blank
// and no newline at all.
enum class JsonLayout : std::uint8_t { lines, compact };

class JsonWriter {
 public:
  explicit JsonWriter(JsonLayout layout) : layout_(layout) {}

  void begin_object(bool flat = false) { begin('{', flat); }
  void end_object() { end('}'); }
  void begin_array(bool flat = false) { begin('[', flat); }
  void end_array() { end(']'); }

  // The name of the next value. REQUIRES: inside an object.
  void key(std::string_view name);

  void null() { raw("null"); }
  void boolean(bool value) { raw(value ? "true" : "false"); }
  void integer(std::int64_t value);
  // null for none.
  void integer(std::optional<std::int64_t> value);
  // What is no UTF-8 is replaced by U+FFFD.
  void text(std::string_view value);
  // A finished scalar as JSON text.
  void raw(std::string_view json);

  // The text so far; the writer is spent.
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  struct Level {
    bool flat;
    bool empty;
  };
  void begin(char bracket, bool flat);
  void end(char bracket);
  void before_value();
  void new_line();

  JsonLayout layout_;
  std::string out_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

}  // namespace membill::report

#endif  // MEMBILL_REPORT_JSON_WRITER_H_

#include "report/json_writer.h"

#include <fmt/format.h>

#include "report/text.h"

namespace membill::report {
namespace {

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 0x20 || byte == 0x7F) {
    out += fmt::format("\\u{:04x}", byte);
  } else {
    out += c;
  }
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : valid_utf8(text)) append_escaped(result, c);
  return result += '"';
}

}  // namespace

void JsonWriter::key(std::string_view name) {
  before_value();
  out_ += quoted(name);
  out_ += layout_ == JsonLayout::compact ? ":" : ": ";
  after_key_ = true;
}

void JsonWriter::integer(std::int64_t value) { raw(fmt::format("{}", value)); }

void JsonWriter::integer(std::optional<std::int64_t> value) {
  if (value) {
    integer(*value);
  } else {
    null();
  }
}

void JsonWriter::text(std::string_view value) { raw(quoted(value)); }

void JsonWriter::raw(std::string_view json) {
  before_value();
  out_ += json;
}

void JsonWriter::begin(char bracket, bool flat) {
  before_value();
  out_ += bracket;
  levels_.push_back({flat || (!levels_.empty() && levels_.back().flat), true});
}

void JsonWriter::end(char bracket) {
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.empty && !level.flat) new_line();
  out_ += bracket;
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (!level.empty) out_ += ',';
  if (!level.flat) {
    new_line();
  } else if (!level.empty && layout_ == JsonLayout::lines) {
    out_ += ' ';
  }
  level.empty = false;
}

void JsonWriter::new_line() {
  if (layout_ == JsonLayout::compact) return;
  out_ += '\n';
  out_.append(2 * levels_.size(), ' ');
}

}  // namespace membill::report

// A catalogue as rows of named cells, printed for people or for programs.
#ifndef MEMBILL_CLI_LISTING_H_
#define MEMBILL_CLI_LISTING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"

namespace membill::cli {

// Nothing (null, a blank), a whole number, true or false, text, or texts.
class Cell {
 public:
  enum class Kind : std::uint8_t { none, count, flag, text, texts };

  Cell() = default;
  Cell(std::int64_t count) : kind_(Kind::count), number_(count) {}
  Cell(bool flag) : kind_(Kind::flag), number_(flag ? 1 : 0) {}
  Cell(std::string text) : kind_(Kind::text), texts_{std::move(text)} {}
  Cell(const char* text) : Cell(std::string(text)) {}
  Cell(std::vector<std::string> texts) : kind_(Kind::texts), texts_(std::move(texts)) {}

  [[nodiscard]] Kind kind() const { return kind_; }
  // REQUIRES: the kind matches.
  [[nodiscard]] std::int64_t count() const { return number_; }
  [[nodiscard]] bool flag() const { return number_ != 0; }
  [[nodiscard]] const std::string& text() const { return texts_.front(); }
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

 private:
  Kind kind_ = Kind::none;
  std::int64_t number_ = 0;
  std::vector<std::string> texts_;
};

struct ListingRow {
  std::string name;                                 // what the catalogue finds it by
  std::vector<std::pair<std::string, Cell>> cells;  // the same keys, in the same order, in every row
};

struct Listing {
  std::vector<std::string> short_columns;  // the columns of the table of all rows; the last may be wrapped
  std::vector<ListingRow> rows;
};

// The options of every catalogue command.
[[nodiscard]] std::vector<OptionSpec> listing_options();
// The `--format` of the arguments: table, json, jsonl, csv or tsv. Throws InputError for another word.
[[nodiscard]] std::string listing_format(const Arguments& arguments);

// All rows: a table of the short columns, or every cell in a format for programs (json: one list; jsonl, csv, tsv: a line each).
[[nodiscard]] std::string render_listing(const Listing& listing, std::string_view format);
// One row with all its cells; json: one object.
[[nodiscard]] std::string render_row(const ListingRow& row, std::string_view format);

// A cell of a CSV line: in quotes where a comma or a quote asks for them.
[[nodiscard]] std::string csv_quoted(const std::string& text);

// The problem of a name that the catalogue does not have, with the nearest of `names`.
[[nodiscard]] Problem unknown_name(std::string_view noun, const std::string& typed,
                                   const std::vector<std::string_view>& names);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_LISTING_H_

// A catalogue as rows of named cells, printed for people or for programs.
#ifndef MEMBILL_CLI_LISTING_H_
#define MEMBILL_CLI_LISTING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/command.h"

namespace membill::cli {

// Nothing (null, a blank), a whole number, true or false, text, or texts.
using Cell = std::variant<std::monostate, std::int64_t, bool, std::string, std::vector<std::string>>;

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

// The problem of a name that the catalogue does not have, with the nearest of `names`.
[[nodiscard]] Problem unknown_name(std::string_view noun, const std::string& typed,
                                   const std::vector<std::string_view>& names);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_LISTING_H_

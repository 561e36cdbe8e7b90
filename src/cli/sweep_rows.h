// The rows of a sweep as text: csv, tsv or jsonl.
#ifndef MEMBILL_CLI_SWEEP_ROWS_H_
#define MEMBILL_CLI_SWEEP_ROWS_H_

#include <string>
#include <string_view>
#include <vector>

#include "cli/sweep_grid.h"

namespace membill::cli {

enum class RowFormat : std::uint8_t { csv, tsv, jsonl };

class SweepRows {
 public:
  // Every column, or those that `fields` names in that order; unknown ones are problems.
  SweepRows(const SweepGrid& grid, bool replay, RowFormat format, const std::vector<std::string>& fields,
            Problems& problems);

  // The line of names; empty for jsonl.
  [[nodiscard]] std::string header() const;
  void append(const SweepCase& one, std::string& out) const;
  // Whether a row begins with the case's number.
  [[nodiscard]] bool begins_with_case() const { return columns_.front().kind == Kind::number; }

 private:
  enum class Kind : std::uint8_t {
    number,
    axis,
    batch,
    seq,
    tokens,
    requested,
    at_least,
    peak_moment,
    allocated,
    reserved,
    device,
    headroom,
    verdict,
    problem
  };
  struct Column {
    std::string name;
    Kind kind = Kind::number;
    std::size_t axis = 0;
  };
  [[nodiscard]] static std::vector<Column> all_columns(const SweepGrid& grid, bool replay);
  void append_cell(const Column& column, const SweepCase& one, std::string& out) const;
  void append_text(std::string_view text, std::string& out) const;
  void append_none(std::string& out) const;

  const SweepGrid& grid_;
  RowFormat format_;
  std::vector<Column> columns_;
};

}  // namespace membill::cli

#endif  // MEMBILL_CLI_SWEEP_ROWS_H_

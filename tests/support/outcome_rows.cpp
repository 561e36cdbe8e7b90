#include "support/outcome_rows.h"

#include <fstream>
#include <stdexcept>

#include "io/json_reader.h"

namespace membill::accuracy {

std::vector<OutcomeRow> read_outcome_rows(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<OutcomeRow> rows;
  for (std::string line; std::getline(file, line);) {
    const Value value = io::parse_json(line, path);
    OutcomeRow row;
    row.id = value.find("id")->as_string();
    row.repository = repository_of(value);
    row.not_a_job = text_or(value, "not_a_job", "");
    row.cause = text_or(value, "cause", "");
    row.ran = text_or(value, "outcome", "") == "ran";
    row.complete = value.find("complete")->as_bool();
    if (const Value* job = value.find("job")) row.job = read_row_job(*job, row.id);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace membill::accuracy

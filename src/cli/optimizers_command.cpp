// membill optimizers: the optimizers that the catalogue knows.
#include "cli/command_list.h"
#include "cli/listing.h"
#include "membill/catalog.h"

namespace membill::cli {
namespace {

std::string_view width_word(StateWidth width) {
  switch (width) {
    case StateWidth::like_parameter: return "as the parameter";
    case StateWidth::fp32: return "fp32";
    case StateWidth::bf16: return "bf16";
    case StateWidth::blockwise_8bit: return "8-bit blocks";
    case StateWidth::blockwise_4bit: return "4-bit blocks";
    case StateWidth::fp8: return "fp8";
  }
  return "";
}

std::string_view shape_word(StateShape shape) {
  switch (shape) {
    case StateShape::full: return "";
    case StateShape::twice: return ", two an element in one tensor";
    case StateShape::factored_rows_and_columns: return ", a row and a column of a matrix";
    case StateShape::factored_of_matrices: return ", a row and a column of a matrix, none of a vector";
    case StateShape::one_per_tensor: return ", one a tensor";
    case StateShape::low_rank: return ", low rank";
    case StateShape::low_rank_factored: return ", low rank, a row and a column";
    case StateShape::projector: return ", the projector";
    case StateShape::square_per_axis: return ", a square for each axis";
    case StateShape::adam_mini: return ", one a row of a matrix";
  }
  return "";
}

std::vector<std::string> state_texts(const OptimizerRow& row) {
  std::vector<std::string> texts;
  for (const OptimizerState& state : row.states) {
    texts.push_back(std::string(state.id) + " (" + std::string(width_word(state.width)) +
                    std::string(shape_word(state.shape)) + ")");
  }
  return texts;
}

std::vector<std::string> all_aliases(const OptimizerRow& row) {
  std::vector<std::string> names(row.aliases.begin(), row.aliases.end());
  names.insert(names.end(), row.fused_aliases.begin(), row.fused_aliases.end());
  return names;
}

ListingRow listing_row(const OptimizerRow& row) {
  return {std::string(row.name),
          {{"name", std::string(row.name)},
           {"summary", std::string(row.summary)},
           {"aliases", all_aliases(row)},
           {"states", state_texts(row)},
           {"foreach", row.has_foreach},
           {"fused", row.has_fused},
           {"paged", row.paged},
           {"on_host", row.on_host},
           {"source", row.source}}};
}

std::vector<ArgumentSpec> arguments() {
  ArgumentSpec name{"NAME", "one optimizer, by its name or an alias, in full", false, {}};
  for (const OptimizerRow& row : optimizers()) name.words.emplace_back(row.name);
  return {name};
}

ExitCode run_optimizers(const Arguments& arguments, Output& output) {
  const std::string format = listing_format(arguments);
  if (const std::string* name = arguments.positional(0)) {
    const OptimizerRow* row = find_optimizer(*name);
    if (row == nullptr) {
      std::vector<std::string_view> names;
      for (const OptimizerRow& other : optimizers()) {
        names.push_back(other.name);
        names.insert(names.end(), other.aliases.begin(), other.aliases.end());
      }
      throw InputError(unknown_name("optimizer", *name, names));
    }
    output.out = render_row(listing_row(*row), format);
    return ExitCode::computed;
  }
  Listing listing{{"name", "summary"}, {}};
  for (const OptimizerRow& row : optimizers()) listing.rows.push_back(listing_row(row));
  output.out = render_listing(listing, format);
  return ExitCode::computed;
}

}  // namespace

Command optimizers_command() {
  return {"optimizers",
          "The optimizers: states, widths, aliases, sources",
          arguments,
          listing_options,
          {"optimizers", "optimizers adamw_8bit", "optimizers --format json"},
          run_optimizers};
}

}  // namespace membill::cli

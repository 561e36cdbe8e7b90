// membill formats: how base weights are stored, and the precision regimes.
#include "base/text.h"
#include "cli/command_list.h"
#include "cli/listing.h"
#include "membill/catalog.h"

namespace membill::cli {
namespace {

std::vector<std::string> texts(const std::vector<std::string_view>& views) { return {views.begin(), views.end()}; }

ListingRow listing_row(const WeightFormatRow& row) {
  return {std::string(row.name),
          {{"name", std::string(row.name)},
           {"kind", "weights"},
           {"summary", std::string(row.summary)},
           {"aliases", texts(row.aliases)},
           {"bits", std::int64_t{row.bits}},
           {"trainable", row.trainable},
           {"scales", std::string(row.scales)},
           {"source", row.source}}};
}

ListingRow listing_row(const RegimeRow& row) {
  return {std::string(row.name),
          {{"name", std::string(row.name)},
           {"kind", "precision"},
           {"summary", std::string(row.summary)},
           {"aliases", texts(row.aliases)},
           {"bits", Cell()},
           {"trainable", Cell()},
           {"scales", Cell()},
           {"source", row.source}}};
}

Listing all_formats() {
  Listing listing{{"name", "kind", "summary"}, {}};
  for (const WeightFormatRow& row : weight_formats()) listing.rows.push_back(listing_row(row));
  for (const RegimeRow& row : regimes()) listing.rows.push_back(listing_row(row));
  return listing;
}

bool is_called(const ListingRow& row, const std::string& name) {
  const std::string kebab = to_kebab(name);
  if (row.name == kebab) return true;
  for (const auto& [key, cell] : row.cells) {
    if (cell.kind() != Cell::Kind::texts) continue;
    for (const std::string& alias : cell.texts()) {
      if (to_kebab(alias) == kebab) return true;
    }
  }
  return false;
}

std::vector<ArgumentSpec> arguments() {
  ArgumentSpec name{"NAME", "one format or regime in full; a name that is both gives both", false, {}};
  for (const ListingRow& row : all_formats().rows) name.words.push_back(row.name);
  return {name};
}

ExitCode run_formats(const Arguments& arguments, Output& output) {
  const std::string format = listing_format(arguments);
  Listing listing = all_formats();
  const std::string* name = arguments.positional(0);
  if (name == nullptr) {
    output.out = render_listing(listing, format);
    return ExitCode::computed;
  }
  std::vector<std::string_view> names;
  Listing found{listing.short_columns, {}};
  for (const ListingRow& row : listing.rows) {
    names.push_back(row.name);
    if (is_called(row, *name)) found.rows.push_back(row);
  }
  if (found.rows.empty()) throw InputError(unknown_name("format", *name, names));
  output.out = found.rows.size() == 1 ? render_row(found.rows.front(), format) : render_listing(found, format);
  return ExitCode::computed;
}

}  // namespace

Command formats_command() {
  return {"formats",
          "The storage formats of base weights and the precision regimes",
          arguments,
          listing_options,
          {"formats", "formats nf4", "formats master-bf16"},
          run_formats};
}

}  // namespace membill::cli

// membill diff: two bills side by side.
#include "cli/any_report.h"
#include "cli/command_list.h"
#include "cli/data_option.h"
#include "cli/inputs.h"
#include "cli/listing.h"
#include "membill/diff.h"
#include "report/text.h"

namespace membill::cli {
namespace {

constexpr const char* kJob = "a saved report, a job file, a config.json, a model folder or a preset";

std::vector<ArgumentSpec> arguments() { return {{"A", kJob, true, {}}, {"B", kJob, true, {}}}; }

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all;
  for (OptionSpec& option : input_options())
    if (option.name != "--job") all.push_back(std::move(option));
  for (OptionSpec& option : listing_options()) all.push_back(std::move(option));
  all.push_back(data_option());
  return all;
}

Cell count(std::optional<std::int64_t> value) { return value ? Cell(*value) : Cell(); }

std::string signed_size(std::int64_t bytes) { return (bytes > 0 ? "+" : "") + report::size_text(bytes); }
std::string size_or_dash(std::optional<std::int64_t> bytes) { return bytes ? report::size_text(*bytes) : "-"; }

// A row for programs; `what`, `A`, `B` and `change` are for people.
ListingRow byte_row(const char* kind, const std::string& id, const std::string& label, std::optional<std::int64_t> a,
                    std::optional<std::int64_t> b, const char* how) {
  const std::int64_t change = b.value_or(0) - a.value_or(0);
  return {id,
          {{"kind", kind},
           {"id", id},
           {"what", label},
           {"a", count(a)},
           {"b", count(b)},
           {"change", change},
           {"how", how},
           {"A", size_or_dash(a)},
           {"B", size_or_dash(b)},
           {"B less A", signed_size(change)}}};
}

const char* how(std::int64_t a, std::int64_t b) { return a == b ? "same" : a < b ? "grew" : "shrank"; }

void add_totals(Listing& listing, const Report& a, const Report& b) {
  const auto add = [&](const char* name, const Range& x, const Range& y) {
    if (x.likely && y.likely && (*x.likely != 0 || *y.likely != 0))
      listing.rows.push_back(byte_row("total", name, name, x.likely, y.likely, how(*x.likely, *y.likely)));
  };
  add("requested", a.totals.requested, b.totals.requested);
  add("allocated", a.totals.allocated, b.totals.allocated);
  add("reserved", a.totals.reserved, b.totals.reserved);
  add("device", a.totals.device, b.totals.device);
  add("host", a.totals.host, b.totals.host);
}

Listing byte_rows(const BillDiff& diff, const Report& a, const Report& b, bool with_same) {
  Listing listing{{"what", "A", "B", "B less A", "how"}, {}};
  for (const ItemDiff& item : diff.items)
    if (with_same || item.how != Change::same)
      listing.rows.push_back(byte_row("item", item.id, item.label, item.a, item.b, change_word(item.how)));
  add_totals(listing, a, b);
  return listing;
}

Listing field_rows(const BillDiff& diff, const Report& a, const Report& b) {
  Listing listing{{"key", "A", "B"}, {}};
  const auto add = [&](const std::string& key, const std::string& x, const std::string& y) {
    listing.rows.push_back({key, {{"key", key}, {"A", x.empty() ? "-" : x}, {"B", y.empty() ? "-" : y}}});
  };
  for (const FieldDiff& field : diff.fields) add(field.key, field.a, field.b);
  if (a.peak_moment != b.peak_moment) add("peak in", a.peak_moment, b.peak_moment);
  if (a.verdict.answer != b.verdict.answer)
    add("verdict", std::string(report::answer_word(a.verdict.answer)),
        std::string(report::answer_word(b.verdict.answer)));
  return listing;
}

// Fields join the rows of bytes: programs get one list.
void append_fields(Listing& listing, const BillDiff& diff) {
  for (const FieldDiff& field : diff.fields)
    listing.rows.push_back({field.key,
                            {{"kind", "field"},
                             {"id", field.key},
                             {"what", field.key},
                             {"a", field.a},
                             {"b", field.b},
                             {"change", Cell()},
                             {"how", "differs"}}});
}

// Columns for people are no business of programs.
void drop_texts(Listing& listing) {
  for (ListingRow& row : listing.rows) row.cells.resize(std::min<std::size_t>(row.cells.size(), 7));
}

ExitCode run_diff(const Arguments& arguments, Output& output) {
  const std::string format = listing_format(arguments);
  Problems problems;
  Report a, b;
  for (const auto& [index, report] : {std::pair<std::size_t, Report*>{0, &a}, std::pair<std::size_t, Report*>{1, &b}}) {
    try {
      *report = any_report(arguments, *arguments.positional(index));
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems()) problems.add(problem);
    }
  }
  problems.throw_if_any();
  const BillDiff result = diff(a, b);
  Listing bytes = byte_rows(result, a, b, format != "table");
  if (format != "table") {
    append_fields(bytes, result);
    drop_texts(bytes);
    output.out = render_listing(bytes, format);
    return ExitCode::computed;
  }
  output.out = "A  " + report::model_line(a) + "\nB  " + report::model_line(b) + "\n\n" + render_listing(bytes, format);
  const Listing fields = field_rows(result, a, b);
  output.out += "\n" + (fields.rows.empty() ? "no field differs\n" : render_listing(fields, format));
  return ExitCode::computed;
}

}  // namespace

Command diff_command() {
  return {"diff",
          "Two bills side by side: what grew, shrank, appeared, and which keys differ",
          arguments,
          options,
          {"diff before.json after.json", "diff a.yaml b.yaml --gpu rtx-4090",
           "diff llama-2-7b llama-3.1-8b --method lora"},
          run_diff};
}

}  // namespace membill::cli

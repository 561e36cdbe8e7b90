// The output formats: pure functions of a finished Report.
#ifndef MEMBILL_REPORT_FORMATS_H_
#define MEMBILL_REPORT_FORMATS_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "membill/report.h"

namespace membill::report {

// How a person looks at the output. Formats for programs ignore it.
struct RenderOptions {
  std::size_t width = 80;  // columns of the terminal; at least 80 are used; share bars appear from 100 on
  bool color = false;      // ANSI colours
};

struct Format {
  std::string_view name;     // as `--format` takes it
  std::string_view summary;  // one line for people
  // The whole output, newline at its end included.
  std::string (*render)(const Report& report, const RenderOptions& options);
  bool draws = false;  // shows the report's timeline
};

// Every format, the default first. A new one is a file and a row here.
[[nodiscard]] std::span<const Format> formats();
// By exact name; nullptr: none.
[[nodiscard]] const Format* find_format(std::string_view name);

[[nodiscard]] std::string render_table(const Report& report, const RenderOptions& options);
[[nodiscard]] std::string render_json(const Report& report, const RenderOptions& options);
[[nodiscard]] std::string render_jsonl(const Report& report, const RenderOptions& options);
[[nodiscard]] std::string render_csv(const Report& report, const RenderOptions& options);
[[nodiscard]] std::string render_tsv(const Report& report, const RenderOptions& options);
[[nodiscard]] std::string render_markdown(const Report& report, const RenderOptions& options);
[[nodiscard]] std::string render_svg(const Report& report, const RenderOptions& options);
[[nodiscard]] std::string render_html(const Report& report, const RenderOptions& options);
[[nodiscard]] std::string render_chart(const Report& report, const RenderOptions& options);
[[nodiscard]] std::string render_brief(const Report& report, const RenderOptions& options);

}  // namespace membill::report

#endif  // MEMBILL_REPORT_FORMATS_H_

// A saved report: any JSON gives a report that every format renders and that its own JSON gives again, or an InputError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "io/json_reader.h"
#include "membill/problem.h"
#include "membill/units.h"
#include "report/formats.h"
#include "report/read_report.h"

namespace {

membill::Report read(std::string_view text) {
  membill::Problems problems;
  membill::Report saved =
      membill::report::read_report(membill::io::parse_json(text, "saved.json"), "saved.json", problems);
  problems.throw_if_any();
  return saved;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const membill::Report saved = read(text);
    for (const membill::report::Format& format : membill::report::formats()) {
      const std::string rendered = format.render(saved, {120, true});
      const bool is_json = format.name == "json" || format.name == "jsonl";
      if (is_json && format.render(read(rendered), {}) != rendered) std::abort();
    }
  } catch (const membill::InputError&) {
  } catch (const membill::OverflowError&) {
  }
  return 0;
}

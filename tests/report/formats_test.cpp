#include "report/formats.h"

#include <set>
#include <string>

#include "support/catch.h"

namespace {

using namespace membill::report;

TEST_CASE("every format has a name of its own, a summary and a renderer") {
  std::set<std::string_view> names;
  for (const Format& format : formats()) {
    INFO(format.name);
    CHECK(names.insert(format.name).second);
    CHECK_FALSE(format.summary.empty());
    CHECK(format.render != nullptr);
    CHECK(find_format(format.name) == &format);
  }
  CHECK(formats().front().name == "table");
  CHECK(find_format("tabel") == nullptr);
}

}  // namespace

// Who may include whom. Debian's third-party headers lie in the default include path, so a missing link
// line does not stop a wrong include: this test reads the #include lines instead.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.h"
#include "support/places.h"

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxLines = 400;

struct Layer {
  std::string_view folder;
  std::vector<std::string_view> below;        // folders it may include, besides itself, base and include/membill
  std::vector<std::string_view> third_party;  // libraries it may include
};

// Arrows point one way: a folder includes only what stands above it here, and everyone may include base, which
// implements the public headers. formulas and trace are peers; io and report see no arithmetic.
const std::vector<Layer>& layers() {
  static const std::vector<Layer> table{
      {"membill", {}, {}},
      {"base", {}, {}},
      {"formulas", {}, {}},
      {"trace", {}, {}},
      {"program", {"formulas", "trace"}, {}},
      {"blocks", {"formulas", "trace", "program"}, {}},
      {"catalog", {"formulas", "trace", "program", "blocks"}, {}},
      {"estimate", {"formulas", "trace", "program", "blocks", "catalog"}, {}},
      {"answers", {"formulas", "trace", "program", "blocks", "catalog", "estimate"}, {}},
      {"io", {}, {"nlohmann/", "toml++/", "yaml-cpp/"}},
      {"report", {}, {"nlohmann/", "fmt/"}},
      {"cli",
       {"formulas", "trace", "program", "blocks", "catalog", "estimate", "answers", "io", "report"},
       {"nlohmann/", "fmt/"}},
  };
  return table;
}

// The public headers that hold no spec: they include one another only.
constexpr std::string_view kBaseHeaders[] = {"membill/units.h", "membill/source.h", "membill/problem.h",
                                             "membill/value.h"};
constexpr std::string_view kThirdParty[] = {"nlohmann/", "toml++/", "yaml-cpp/", "fmt/", "CLI/", "catch2/"};

bool contains(const auto& range, std::string_view value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

const Layer* find_layer(std::string_view folder) {
  const auto found = std::ranges::find(layers(), folder, &Layer::folder);
  return found == layers().end() ? nullptr : &*found;
}

struct Include {
  bool quoted = false;
  std::string target;
};

std::optional<Include> parse_include(std::string_view line) {
  const auto skip_blanks = [&line] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  skip_blanks();
  if (!line.starts_with('#')) return std::nullopt;
  line.remove_prefix(1);
  skip_blanks();
  if (!line.starts_with("include")) return std::nullopt;
  line.remove_prefix(std::string_view("include").size());
  skip_blanks();
  const char close = line.starts_with('"') ? '"' : '>';
  if (!line.starts_with('"') && !line.starts_with('<')) return std::nullopt;
  return Include{close == '"', std::string(line.substr(1, line.find(close, 1) - 1))};
}

// What is wrong with one include, or nothing. `file` is relative to src/ or include/, e.g. "io/presets.cpp".
std::string objection(std::string_view file, const Layer& layer, const Include& include) {
  const std::string_view target = include.target;
  const bool is_base_header = contains(kBaseHeaders, file);
  if (include.quoted) {
    const std::size_t slash = target.find('/');
    if (slash == std::string_view::npos || target.starts_with('.')) return "is not written from src/ or include/";
    const std::string_view folder = target.substr(0, slash);
    if (!find_layer(folder)) return "is in no known layer";
    if (is_base_header && !contains(kBaseHeaders, target)) return "stands above " + std::string(file);
    if (folder == "membill" || folder == layer.folder || contains(layer.below, folder)) return {};
    if (folder == "base" && layer.folder != "membill") return {};
    return "may not be included by " + std::string(layer.folder);
  }
  const bool is_app = file == "cli/app.cpp" || file == "cli/app.h";
  if (target.starts_with("CLI/")) return is_app ? "" : "may be included by cli/app.cpp only";
  if (std::ranges::any_of(kThirdParty, [&](std::string_view prefix) { return target.starts_with(prefix); })) {
    const bool allowed =
        std::ranges::any_of(layer.third_party, [&](auto prefix) { return target.starts_with(prefix); });
    return allowed ? "" : "may not be included by " + std::string(layer.folder);
  }
  if (target.starts_with("membill/")) return "is ours: include it with quotes";
  const bool standard = target.find_first_of("./") == std::string_view::npos;
  const bool is_core = layer.third_party.empty();
  return is_core && !standard ? "is not in the standard library" : "";
}

std::vector<std::string> violations(std::string_view file, std::string_view text) {
  const std::string name(file);
  const Layer* layer = find_layer(file.substr(0, file.find('/')));
  if (!layer) return {name + ": its folder is in no known layer"};
  std::vector<std::string> found;
  std::istringstream lines{std::string(text)};
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::optional<Include> include = parse_include(line);
    const std::string reason = include ? objection(file, *layer, *include) : std::string();
    if (!reason.empty()) found.push_back(name + ":" + std::to_string(number) + ": " + include->target + " " + reason);
  }
  if (number > kMaxLines) {
    found.push_back(name + ": " + std::to_string(number) + " lines, more than " + std::to_string(kMaxLines));
  }
  return found;
}

void collect(const fs::path& root, std::vector<std::string>& found) {
  if (!fs::exists(root)) return;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp") continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    std::ranges::copy(violations(entry.path().lexically_relative(root).generic_string(), text),
                      std::back_inserter(found));
  }
}

std::string one_per_line(std::vector<std::string> found) {
  std::ranges::sort(found);
  std::string text;
  for (const std::string& line : found) text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("every source respects the layers") {
  const fs::path root = membill::test::in_source();
  std::vector<std::string> found;
  collect(root / "include", found);
  collect(root / "src", found);
  CHECK(one_per_line(found) == "");
}

TEST_CASE("planted violations are found") {
  const auto [file, text, expected] = GENERATE(table<std::string, std::string, std::string>({
      {"formulas/mlp.cpp", "#include \"trace/trace.h\"\n",
       "formulas/mlp.cpp:1: trace/trace.h may not be included by formulas\n"},
      {"trace/peak.h", "\n#include <fmt/format.h>\n", "trace/peak.h:2: fmt/format.h may not be included by trace\n"},
      {"blocks/mlp.cpp", "#include \"estimate/x.h\"\n",
       "blocks/mlp.cpp:1: estimate/x.h may not be included by blocks\n"},
      {"catalog/a.cpp", "# include <sys/stat.h>\n", "catalog/a.cpp:1: sys/stat.h is not in the standard library\n"},
      {"membill/units.h", "#include \"membill/report.h\"\n",
       "membill/units.h:1: membill/report.h stands above membill/units.h\n"},
      {"membill/report.h", "#include \"base/x.h\"\n", "membill/report.h:1: base/x.h may not be included by membill\n"},
      {"membill/report.h", "#include \"io/x.h\"\n", "membill/report.h:1: io/x.h may not be included by membill\n"},
      {"report/table.cpp", "#include \"formulas/x.h\"\n",
       "report/table.cpp:1: formulas/x.h may not be included by report\n"},
      {"report/table.cpp", "#include <yaml-cpp/yaml.h>\n",
       "report/table.cpp:1: yaml-cpp/yaml.h may not be included by report\n"},
      {"io/job.cpp", "#include \"catalog/x.h\"\n", "io/job.cpp:1: catalog/x.h may not be included by io\n"},
      {"cli/main.cpp", "#include <CLI/CLI.hpp>\n", "cli/main.cpp:1: CLI/CLI.hpp may be included by cli/app.cpp only\n"},
      {"cli/main.cpp", "#include \"app.h\"\n", "cli/main.cpp:1: app.h is not written from src/ or include/\n"},
      {"cli/main.cpp", "#include \"util/x.h\"\n", "cli/main.cpp:1: util/x.h is in no known layer\n"},
      {"io/job.cpp", "#include <membill/units.h>\n", "io/job.cpp:1: membill/units.h is ours: include it with quotes\n"},
      {"util/x.cpp", "", "util/x.cpp: its folder is in no known layer\n"},
      {"trace/long.cpp", std::string(401, '\n'), "trace/long.cpp: 401 lines, more than 400\n"},
  }));
  CHECK(one_per_line(violations(file, text)) == expected);
}

TEST_CASE("allowed includes pass") {
  const auto [file, text] = GENERATE(table<std::string, std::string>({
      {"estimate/peak.cpp", "#include \"catalog/x.h\"\n#include \"membill/bill.h\"\n#include <vector>\n"},
      {"base/text.cpp", "#include \"base/text.h\"\n#include \"membill/units.h\"\n"},
      {"report/csv.cpp", "#include \"base/text.h\"\n"},
      {"report/json.cpp", "#include <nlohmann/json.hpp>\n#include <fmt/format.h>\n#include \"report/table.h\"\n"},
      {"cli/app.cpp", "#include <CLI/CLI.hpp>\n#include <unistd.h>\n#include \"io/embedded.h\"\n"},
      {"trace/long.cpp", std::string(400, '\n')},
  }));
  CHECK(one_per_line(violations(file, text)) == "");
}

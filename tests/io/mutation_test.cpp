// The readers on damaged input: every kept fuzz input with random bytes changed, removed, doubled or spliced, from a fixed seed. A
// reader may answer or throw InputError; anything else, and anything that the sanitizers see, is a failure.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "errors.h"
#include "io/gpu_query.h"
#include "io/importers/importer.h"
#include "io/job_file.h"
#include "io/json_reader.h"
#include "io/model_source.h"
#include "io/safetensors.h"
#include "io/yaml_reader.h"
#include "membill/units.h"
#include "support/catch.h"
#include "support/places.h"

namespace membill::io_test {
namespace {

using Reader = void (*)(const std::string&);

void read_json(const std::string& text) { (void)io::parse_json(text, "x"); }
void read_yaml(const std::string& text) { (void)io::parse_yaml(text, "x"); }
void read_job(const std::string& text) {
  Problems problems;
  TrainingPlan plan;
  const io::JobFile job = io::split_job(io::parse_tree(text, "x"), "x", "", problems);
  read_plan(job.plan, "x", plan, problems);
}
void read_config(const std::string& text) {
  try {
    (void)io::describe_model(io::load_config(io::parse_json(text, "x"), "x", "x")).parameters();
  } catch (const OverflowError&) {
  }
}
void read_safetensors(const std::string& text) {
  (void)io::parse_safetensors(text, static_cast<std::int64_t>(text.size()), "x");
}
void read_smi(const std::string& text) {
  (void)io::choose_cards(text.starts_with('|') ? io::parse_npu_smi(text) : io::parse_nvidia_smi(text), std::nullopt,
                         {});
}

void import(const std::string& text, const std::string& format) {
  io::ImportContext context;
  context.format = format;
  Problems problems;
  TrainingPlan plan;
  const io::JobFile job = io::import_text(text, "x", "", context, problems);
  read_plan(job.plan, "x", plan, problems);
}

std::vector<std::string> kept_inputs(const std::string& folder) {
  std::vector<std::string> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(test::in_source("tests/") + folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

// One random change of `text`, or a splice with `other`.
void damage(std::string& text, const std::string& other, std::mt19937& random) {
  static const std::string kTelling = "{}[]:,\"'\\\n\t -+.0123456789eE&*!|>#%@~\xFF\xC3\x80";
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random()) % n; };
  const std::size_t at = below(text.size() + 1);
  const std::size_t length = std::min(below(8) + 1, text.size() - at);
  switch (below(5)) {
    case 0: text.insert(at, 1, kTelling[below(kTelling.size())]); break;
    case 1: text.erase(at, length); break;
    case 2: text.insert(at, std::string(text, at, length)); break;
    case 3: text.resize(at); break;
    default: text = text.substr(0, at) + other.substr(below(other.size())); break;
  }
}

}  // namespace

TEST_CASE("damaged input gives an answer or a problem") {
  const auto [name, reader, rounds] = GENERATE(table<std::string, Reader, int>({{"json", read_json, 4000},
                                                                                {"yaml", read_yaml, 3000},
                                                                                {"job", read_job, 100},
                                                                                {"config", read_config, 400},
                                                                                {"safetensors", read_safetensors, 4000},
                                                                                {"nvidia_smi", read_smi, 60}}));
  const std::vector<std::string> inputs = kept_inputs("fuzz/corpus/" + name);
  REQUIRE_FALSE(inputs.empty());
  std::mt19937 random(20240607);
  for (int round = 0; round < rounds; ++round) {
    std::string text = inputs[random() % inputs.size()];
    for (std::size_t change = 0; change <= random() % 6; ++change)
      damage(text, inputs[random() % inputs.size()], random);
    INFO(text);
    CHECK_NOTHROW(error_of([&, read = reader] { return read(text), 0; }));
  }
}

TEST_CASE("damaged jobs of frameworks give a plan or a problem") {
  std::vector<std::string> formats{"script"};
  for (const io::Importer& importer : io::importers()) formats.emplace_back(importer.name);
  std::mt19937 random(20240608);
  const std::vector<std::string> inputs = kept_inputs("data/importers");
  REQUIRE_FALSE(inputs.empty());
  for (const std::string& format : formats) {
    for (int round = 0; round < 150; ++round) {
      std::string text = inputs[random() % inputs.size()];
      for (std::size_t change = 0; change <= random() % 6; ++change)
        damage(text, inputs[random() % inputs.size()], random);
      INFO(format << ": " << text);
      CHECK_NOTHROW(error_of([&] { return import(text, format), 0; }));
    }
  }
}

}  // namespace membill::io_test

// Releases that a requirements or lock file beside the job pins.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "io/importers/importer.h"
#include "support/catch.h"

namespace membill::importers_test {
namespace {

namespace fs = std::filesystem;

// The plan of a TRL job in a folder that holds `text` as the file `name`.
std::map<std::string, std::string> releases(const std::string& name, const std::string& text) {
  const fs::path folder = fs::temp_directory_path() / ("membill-pins-" + std::to_string(std::rand()));
  fs::create_directories(folder / "configs");
  std::ofstream(folder / name) << text;
  std::ofstream(folder / "configs" / "sft.yaml") << "model_name_or_path: gpt2\nper_device_train_batch_size: "
                                                    "1\noutput_dir: out\nlearning_rate: 1e-5\nuse_peft: true\n"
                                                    "dataset_text_field: text\n";
  Problems problems;
  const io::JobFile job = io::import_job((folder / "configs" / "sft.yaml").string(), {}, problems);
  fs::remove_all(folder);
  CHECK(problems.empty());
  std::map<std::string, std::string> found;
  for (const auto& [key, value] : job.plan.entries())
    if (key.starts_with("software.")) found[key.substr(9)] = value.as_string();
  return found;
}

using Releases = std::map<std::string, std::string>;

}  // namespace

TEST_CASE("a requirements file says the releases that it pins") {
  CHECK(releases("requirements.txt",
                 "# training\ntrl==0.24.0  # classic\ntransformers[torch]==4.57.1; python_version > '3.9'\npeft>=0.17\n"
                 "torch ~= 2.8.0\ntorchvision==0.23\naccelerate\n") ==
        Releases{{"trl", "0.24.0"}, {"transformers", "4.57.1"}, {"torch", "2.8.0"}});
  CHECK(releases("requirements.txt", "trl>=0.9,<1\n") == Releases{{"trl", "1.16"}});
}

TEST_CASE("lock files say every release") {
  CHECK(releases("uv.lock",
                 "[[package]]\nname = \"trl\"\nversion = \"0.19.1\"\n\n[[package]]\nname = \"trlx\"\n"
                 "version = \"9\"\n[[package]]\nname = \"torch\"\nversion = \"2.7.1+cu126\"\n") ==
        Releases{{"trl", "0.19.1"}, {"torch", "2.7.1+cu126"}});
  CHECK(releases("Pipfile.lock",
                 "{\"default\": {\n  \"trl\": {\n    \"hashes\": [],\n    \"version\": \"==0.15.2\"\n  }}}\n") ==
        Releases{{"trl", "0.15.2"}});
  CHECK(releases("environment.yml", "dependencies:\n  - python=3.11\n  - pytorch=2.4\n  - pip:\n    - trl==0.12.0\n") ==
        Releases{{"trl", "0.12.0"}});
  CHECK(releases("pyproject.toml", "dependencies = [\n  \"trl==0.21.0\",\n  \"peft~=0.17.1\"\n]\n") ==
        Releases{{"trl", "0.21.0"}, {"peft", "0.17.1"}});
}

TEST_CASE("without a pin the newest release is taken") {
  CHECK(releases("README.md", "trl==0.24.0\n") == Releases{{"trl", "1.16"}});
}

}  // namespace membill::importers_test

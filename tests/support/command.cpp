#include "support/command.h"
#include "support/places.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace membill::test {
namespace {

namespace fs = std::filesystem;

// `text` in single quotes for the shell.
std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// A scratch folder that is removed at the end.
class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / ("membill-test-" + std::to_string(::getpid()))) {
    fs::create_directories(path_ / "files");
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] fs::path at(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

}  // namespace

std::string read_whole_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool rewriting_goldens() {
  const char* value = std::getenv("MEMBILL_REWRITE");
  return value != nullptr && std::string(value) == "1";
}

CommandResult run_command(const std::string& line, const fs::path& folder) {
  const Scratch scratch;
  const std::string path = fs::path(test::built_program()).parent_path().string() + ":/usr/bin:/bin";
  const std::string command = "cd " + shell_quoted(folder.string()) + " && env -i PATH=" + shell_quoted(path) +
                              " TMP=" + shell_quoted(scratch.at("files").string()) + " /bin/sh -c " +
                              shell_quoted(line) + " > " + shell_quoted(scratch.at("out").string()) + " 2> " +
                              shell_quoted(scratch.at("err").string());
  const int status = std::system(command.c_str());
  return {read_whole_file(scratch.at("out")), read_whole_file(scratch.at("err")),
          WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
}

}  // namespace membill::test

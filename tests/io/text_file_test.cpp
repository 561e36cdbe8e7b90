#include "io/text_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "errors.h"
#include "support/catch.h"
#include "temporary_folder.h"

namespace membill::io_test {
namespace {

std::string file_error(const std::string& path) {
  return error_of([&] { return io::read_file(path); });
}

}  // namespace

TEST_CASE("files are read whole under their last name") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a/b.json", "{}\n");
  CHECK(io::read_file(path).name == "b.json");
  CHECK(io::read_file(path).text == "{}\n");
  CHECK(io::read_file("/dev/null").text.empty());
}

TEST_CASE("last names of paths") {
  CHECK(io::last_name("/a/b.json") == "b.json");
  CHECK(io::last_name("b.json") == "b.json");
  CHECK(io::last_name("/a/models/") == "models");
  CHECK(io::last_name("/") == "/");
}

TEST_CASE("files that cannot be read say why") {
  const TemporaryFolder folder;
  CHECK(file_error(folder.path("no.json")) == "no.json: there is no such file");
  CHECK(file_error(folder.write("x", "") + "/no.json") == "no.json: there is no such file");
  CHECK(file_error(folder.path()).ends_with(": is a folder, not a file"));
  CHECK(file_error("") == "a file name is empty");
  CHECK(file_error(std::string("a\0b", 3)) == "a?b: a file name holds a zero byte");
  CHECK(file_error(std::string(5000, 'a')).ends_with(": cannot be opened: File name too long"));
}

TEST_CASE("files over the bound are refused without being read") {
  const TemporaryFolder folder;
  const std::string path = folder.write("big.json", "");
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(io::kLargestFile) + 1);
  CHECK(file_error(path) == "big.json: is larger than 64 MiB");
  CHECK(file_error("/dev/zero") == "zero: is larger than 64 MiB");
}

TEST_CASE("the start of a file is read with its whole length") {
  const TemporaryFolder folder;
  std::int64_t total = 0;
  CHECK(io::read_file_start(folder.write("a", "0123456789"), 4, total).text == "0123");
  CHECK(total == 10);
  CHECK(io::read_file_start(folder.path("a"), 40, total).text == "0123456789");
  CHECK(error_of([&] { return io::read_file_start("/dev/null", 4, total); }) == "null: is no regular file");
}

TEST_CASE("lines of offsets") {
  CHECK(io::line_at("a\nb\nc", 0) == 1);
  CHECK(io::line_at("a\nb\nc", 2) == 2);
  CHECK(io::line_at("a\nb\nc", 5) == 3);
}

}  // namespace membill::io_test

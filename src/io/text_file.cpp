#include "io/text_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "membill/problem.h"

namespace membill::io {
namespace {

constexpr int kPipePatienceMs = 10'000;
constexpr std::size_t kChunk = 1U << 16;

[[noreturn]] void fail(const std::string& file, std::string message, std::string hint = {}) {
  throw InputError(Problem{file, "", std::move(message), std::move(hint)});
}

[[noreturn]] void fail_to_open(const std::string& file, int error) {
  if (error == ENOENT || error == ENOTDIR) fail(file, "there is no such file");
  if (error == EACCES || error == EPERM) fail(file, "may not be read: permission denied");
  fail(file, std::string("cannot be opened: ") + std::strerror(error));
}

[[noreturn]] void fail_too_large(const std::string& file, std::int64_t largest) {
  fail(file, "is larger than " + std::to_string(largest >> 20) + " MiB");
}

class Descriptor {
 public:
  explicit Descriptor(int number, bool owned = true) : number_(number), owned_(owned) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (owned_ && number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
  bool owned_;
};

// Waits for data on a pipe that was opened without blocking.
void wait_for_data(int descriptor, const std::string& file) {
  pollfd wanted{descriptor, POLLIN, 0};
  const int ready = ::poll(&wanted, 1, kPipePatienceMs);
  if (ready == 0) fail(file, "nothing arrived through this pipe within 10 seconds");
}

// Reads until the end, or until more than `limit` bytes have come.
std::string read_up_to(int descriptor, std::int64_t limit, const std::string& file, bool pipe) {
  std::string text;
  for (;;) {
    if (pipe) wait_for_data(descriptor, file);
    const std::size_t before = text.size();
    const std::size_t room = std::min(std::max(kChunk, before), static_cast<std::size_t>(limit) + 1 - before);
    text.resize(before + room);
    const ssize_t got = ::read(descriptor, text.data() + before, room);
    text.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got == 0) return text;
    if (got < 0 && errno == EISDIR) fail(file, "is a folder, not a file");
    if (got < 0 && errno != EINTR && errno != EAGAIN)
      fail(file, std::string("cannot be read: ") + std::strerror(errno));
    if (text.size() > static_cast<std::size_t>(limit)) return text;
  }
}

struct stat status_of(int descriptor, const std::string& file) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail(file, std::string("cannot be read: ") + std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail(file, "is a folder, not a file");
  return status;
}

int open_to_read(const std::string& path, const std::string& name) {
  if (path.empty()) fail("", "a file name is empty");
  if (path.find('\0') != std::string::npos) fail(name, "a file name holds a zero byte");
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) fail_to_open(name, errno);
  return descriptor;
}

TextFile read_descriptor(int descriptor, std::string name, bool opened_here, std::int64_t largest) {
  const struct stat status = status_of(descriptor, name);
  const bool regular = S_ISREG(status.st_mode);
  if (regular && status.st_size > largest) fail_too_large(name, largest);
  std::string text = read_up_to(descriptor, largest, name, opened_here && !regular);
  if (static_cast<std::int64_t>(text.size()) > largest) fail_too_large(name, largest);
  return TextFile{std::move(name), std::move(text)};
}

// Length of the UTF-8 character at `at`, or 0 when the bytes there are none (RFC 3629: no surrogates, no overlong forms).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U; };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  for (std::size_t i = 1; i < length; ++i)
    if (!tail(i)) return 0;
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool no_character = (first == 0xED && byte(1) > 0x9F) || (first == 0xF4 && byte(1) > 0x8F);
  return overlong || no_character ? 0 : length;
}

bool belongs_in_text(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 ? byte != 0x7F : c == '\n' || c == '\r' || c == '\t' || c == '\f';
}

}  // namespace

std::string last_name(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path;
  const std::size_t slash = path.find_last_of('/', end);
  return path.substr(slash == std::string::npos ? 0 : slash + 1,
                     end - (slash == std::string::npos ? 0 : slash + 1) + 1);
}

TextFile read_file(const std::string& path, std::int64_t largest) {
  if (path == "-") {
    const Descriptor input(STDIN_FILENO, false);
    return read_descriptor(input.number(), "standard input", false, largest);
  }
  const std::string name = last_name(path);
  const Descriptor file(open_to_read(path, name));
  return read_descriptor(file.number(), name, true, largest);
}

TextFile read_file_start(const std::string& path, std::int64_t size, std::int64_t& total) {
  const std::string name = last_name(path);
  const Descriptor file(open_to_read(path, name));
  const struct stat status = status_of(file.number(), name);
  if (!S_ISREG(status.st_mode)) fail(name, "is no regular file");
  total = status.st_size;
  std::string text = read_up_to(file.number(), std::min(size, total), name, false);
  if (static_cast<std::int64_t>(text.size()) > size) text.resize(static_cast<std::size_t>(size));
  return TextFile{name, std::move(text)};
}

int line_at(std::string_view text, std::size_t offset) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

std::string_view check_text(std::string_view text, const std::string& file) {
  if (text.size() >= 2 && (text.substr(0, 2) == "\xFF\xFE" || text.substr(0, 2) == "\xFE\xFF")) {
    fail(file, "is UTF-16 text", "save it as UTF-8");
  }
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  bool blank = true;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    const std::string line = length == 0 || !belongs_in_text(text[i]) ? "line " + std::to_string(line_at(text, i)) : "";
    if (length == 0) fail(file, line + ": is not UTF-8 text");
    if (!line.empty()) fail(file, line + ": is binary data, not text");
    blank = blank && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t' || text[i] == '\f');
    i += length;
  }
  if (blank) fail(file, "is empty");
  return text;
}

}  // namespace membill::io

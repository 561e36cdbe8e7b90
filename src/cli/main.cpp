#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run.h"

namespace {

// Writes all of `text`; 0, or the error number.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

void write_messages(const std::vector<std::string>& messages) {
  std::string text;
  for (const std::string& message : messages) text += "membill: " + message + "\n";
  write_all(STDERR_FILENO, text);
}

}  // namespace

int main(int argc, char** argv) {
  using membill::cli::ExitCode;
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  int error = 0;
  const auto write_out = [&error](std::string_view text) {
    if (error == 0) error = write_all(STDOUT_FILENO, text);
    return error == 0;
  };
  membill::cli::Outcome outcome = membill::cli::run(words, write_out);
  // A reader that went away (EPIPE, where SIGPIPE is ignored) is no failure of ours.
  write_out(outcome.out);
  if (error != 0 && error != EPIPE) {
    outcome.messages.push_back(std::string("standard output: cannot be written: ") + std::strerror(error));
    outcome.code = ExitCode::internal;
  }
  write_messages(outcome.messages);
  return static_cast<int>(outcome.code);
}

#include "io/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "membill/problem.h"

extern char** environ;

namespace membill::io {
namespace {

constexpr std::size_t kMostOutput = 1U << 20;
constexpr int kStatusNotFound = 127;  // of a shell or a spawn that could not run the program
using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& program, int error) {
  throw InputError(Problem{program, "", std::string("cannot be started: ") + std::strerror(error), ""});
}

// How posix_spawn sets up the program's standard streams.
class SpawnActions {
 public:
  explicit SpawnActions(const std::array<int, 2>& pipe) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, pipe[1], STDOUT_FILENO);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  [[nodiscard]] const posix_spawn_file_actions_t* actions() const { return &actions_; }
  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

// Reads until the program closes its output, a limit is reached, or the time is over.
ProgramResult collect(int descriptor, Clock::time_point deadline) {
  ProgramResult result;
  std::array<char, 4096> buffer{};
  for (;;) {
    pollfd wanted{descriptor, POLLIN, 0};
    const int ready = ::poll(&wanted, 1, milliseconds_until(deadline));
    if (ready == 0) return result.end = ProgramEnd::timed_out, result;
    if (ready < 0 && errno == EINTR) continue;
    const ssize_t got = ready < 0 ? -1 : ::read(descriptor, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return result;
    result.output.append(buffer.data(), static_cast<std::size_t>(got));
    if (result.output.size() > kMostOutput) return result.end = ProgramEnd::too_much, result;
  }
}

// Waits for the program; kills it and its children when `result` says so, or when it outlives its output past the deadline.
void finish(pid_t program, Clock::time_point deadline, ProgramResult& result) {
  int status = 0;
  while (result.end == ProgramEnd::done) {
    const pid_t ended = ::waitpid(program, &status, WNOHANG);
    if (ended == program) {
      const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      const bool missing = WIFEXITED(status) && WEXITSTATUS(status) == kStatusNotFound && result.output.empty();
      result.end = good ? ProgramEnd::done : missing ? ProgramEnd::not_found : ProgramEnd::failed;
      return;
    }
    if (milliseconds_until(deadline) == 0) result.end = ProgramEnd::timed_out;
    ::poll(nullptr, 0, 1);
  }
  ::kill(-program, SIGKILL);
  ::waitpid(program, &status, 0);
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& command, int seconds) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) fail(command.front(), errno);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command)
    arguments.push_back(const_cast<char*>(word.c_str()));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  arguments.push_back(nullptr);
  const SpawnActions spawn(pipe);
  pid_t program = 0;
  const int error =
      ::posix_spawnp(&program, arguments.front(), spawn.actions(), spawn.attributes(), arguments.data(), environ);
  ::close(pipe[1]);
  if (error != 0) {
    ::close(pipe[0]);
    if (error == ENOENT || error == EACCES || error == ENOTDIR) return ProgramResult{ProgramEnd::not_found, {}};
    fail(command.front(), error);
  }
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(seconds);
  ProgramResult result = collect(pipe[0], deadline);
  ::close(pipe[0]);
  finish(program, deadline, result);
  return result;
}

}  // namespace membill::io

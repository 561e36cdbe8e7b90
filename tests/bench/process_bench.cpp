// User and system time of whole processes: one estimate, membill --version, and /bin/true, in turns so that a busy machine slows
// all of them alike; and the instructions of one estimate where valgrind is installed. Asserts nothing.
//   membill_bench_process [runs]
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/places.h"

namespace {

double milliseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

struct Program {
  const char* name;
  std::vector<std::string> arguments;
  std::vector<double> times = {};  // user + system, ms
};

double run_once(const Program& program) {
  std::vector<char*> arguments;
  for (const std::string& argument : program.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(127);
    execv(arguments.front(), arguments.data());
    _exit(127);
  }
  rusage usage{};
  int status = 0;
  wait4(child, &status, 0, &usage);
  return milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
}

}  // namespace

int main(int count, char** arguments) {
  const int runs = count > 1 ? std::max(1, std::atoi(arguments[1])) : 51;
  const std::string membill = membill::test::built_program();
  std::vector<Program> programs{
      {"/bin/true", {"/bin/true"}},
      {"membill --version", {membill, "--version"}},
      {"membill estimate", {membill, "estimate", "llama-2-7b", "--gpu", "rtx-4090"}},
      {"  lora, checkpointing",
       {membill, "estimate", "llama-2-7b", "--method", "lora", "--checkpointing", "full", "--gpu", "rtx-4090"}},
  };
  for (int i = 0; i < runs; ++i)
    for (Program& program : programs) program.times.push_back(run_once(program));
  for (Program& program : programs) {
    std::sort(program.times.begin(), program.times.end());
    std::printf("%-24s user + system: median %6.2f ms, least %6.2f, most %6.2f\n", program.name,
                program.times[program.times.size() / 2], program.times.front(), program.times.back());
  }
  std::fflush(stdout);
  const std::string counted =
      "valgrind --tool=callgrind --callgrind-out-file=/dev/null " + membill +
      " estimate llama-2-7b --gpu rtx-4090 2>&1 >/dev/null | sed -n 's/.*I *refs: */instructions of one estimate: /p'";
  return std::system(counted.c_str()) == 0 ? 0 : 1;
}

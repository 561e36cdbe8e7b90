// Launch scripts as text: their words, and the job that they start.
#pragma once

#include <string>
#include <vector>

#include "io/importers/importer.h"
#include "io/importers/shell_words.h"
#include "membill/catalog.h"
#include "support/catch.h"

namespace membill::importers_test {

using Words = std::vector<std::string>;

// Words of the script's last command; empty: it has none.
inline Words last_words(const std::string& script) {
  const std::vector<io::ShellCommand> commands = io::split_script(script);
  return commands.empty() ? Words() : commands.back().words;
}

// The job that the script starts, and its plan; fails the test when the script has a problem.
inline io::JobFile run(const std::string& script, TrainingPlan& plan) {
  Problems problems;
  io::JobFile job = io::import_text(script, "run.sh", "", {}, problems);
  read_plan(job.plan, job.file, plan, problems);
  for (const Problem& problem : problems.list()) UNSCOPED_INFO(to_text(problem));
  CHECK(problems.empty());
  return job;
}

// The first problem that the script has, as the command line prints it; empty: none.
inline std::string problem_of(const std::string& script) {
  Problems problems;
  try {
    (void)io::import_text(script, "run.sh", "", {}, problems);
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
  return problems.empty() ? std::string() : to_text(problems.list().front());
}

}  // namespace membill::importers_test

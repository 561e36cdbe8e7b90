// Prints what membill thinks that the allocator is asked for in a measured row's job, in the words of trace.py, one JSON line an event.
//
// usage: membill_modelled_events ROWS        a file of rows; the first is taken
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <limits>

#include "estimate/simulation.h"
#include "support/oracle_rows.h"
#include "trace/walk.h"

namespace membill {
namespace {

class Printer {
 public:
  Printer(const Trace& trace, std::span<const std::int64_t> bytes) : trace_(trace), bytes_(bytes) {}

  void allocate(std::int32_t tensor, const Event& event) {
    const std::size_t slot = static_cast<std::size_t>(event.slot);
    print("alloc", tensor, event, trace_.slot_labels[slot]);
  }
  void release(std::int32_t tensor, const Event& event) { print("free", tensor, event, ""); }
  void touch(std::int32_t tensor, const Event& event) {
    allocate(tensor, event);
    release(tensor, event);
  }
  void moment(std::int32_t moment, bool) {
    fmt::print("{{\"do\": \"phase\", \"where\": \"{}\"}}\n", trace_.moments[static_cast<std::size_t>(moment)]);
  }
  void empty_cache() { fmt::print("{{\"do\": \"empty_cache\"}}\n"); }
  [[nodiscard]] static bool done() { return false; }

 private:
  // An empty tensor takes no block.
  void print(const char* what, std::int32_t tensor, const Event& event, const char* where) const {
    if (const std::int64_t size = bytes_[static_cast<std::size_t>(event.size)]; size != 0)
      fmt::print("{{\"do\": \"{}\", \"id\": {}, \"bytes\": {}, \"where\": \"{}\"}}\n", what, tensor, size, where);
  }

  const Trace& trace_;
  std::span<const std::int64_t> bytes_;
};

void print_events(const char* path) {
  const accuracy::OracleRow row = accuracy::read_oracle_rows(path).at(0);
  const Simulation job = simulate(row.model, row.plan, row.hardware);
  const std::vector<std::int64_t> bytes = job.trace.evaluate(job.symbols);
  Printer printer(job.trace, bytes);
  TraceWalk<Printer>(job.trace, bytes, std::numeric_limits<std::int64_t>::max()).run(printer);
}

}  // namespace
}  // namespace membill

int main(int count, char** arguments) try {
  if (count != 2) {
    fmt::print(stderr, "usage: membill_modelled_events ROWS\n");
    return 2;
  }
  membill::print_events(arguments[1]);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "membill_modelled_events: {}\n", error.what());
  return 1;
}

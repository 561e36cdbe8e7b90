// Rows a second of a folded sweep and of one with the replay, beside a fixed yardstick.
#include <fmt/format.h>

#include <chrono>

#include "io/model_source.h"
#include "membill/catalog.h"
#include "membill/sweep.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::vector<std::int64_t> numbers(std::int64_t count, std::int64_t step) {
  std::vector<std::int64_t> list(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = static_cast<std::int64_t>(i + 1) * step;
  return list;
}

void measure(membill::Sweep sweep, const char* name) {
  const auto start = Clock::now();
  std::size_t rows = 0;
  membill::run_sweep(sweep, [&](std::span<const membill::SweepCase> cases) {
    rows += cases.size();
    return true;
  });
  const double seconds = seconds_since(start);
  fmt::print("{}: {} rows in {:.2f} s, {:.0f} rows/s on {} threads\n", name, rows, seconds,
             static_cast<double>(rows) / seconds, sweep.threads);
}

}  // namespace

int main() {
  const auto start = Clock::now();
  std::uint64_t state = 1;
  for (int i = 0; i < 100'000'000; ++i) state = state * 6364136223846793005U + 1442695040888963407U;
  fmt::print("yardstick: 1e8 steps of a generator in {:.2f} s ({})\n", seconds_since(start), state % 10);

  const membill::ModelSpec model = membill::io::describe_model(membill::io::load_model("llama-2-7b", {}));
  membill::Sweep sweep;
  sweep.model = &model;
  sweep.base = [](std::size_t) {
    membill::SweepBase base;
    base.plan.method = membill::Method::lora;
    base.plan.checkpointing.mode = membill::Checkpointing::full;
    base.hardware.gpu = membill::GpuSpec();
    base.hardware.gpu->usable = membill::Bytes(std::int64_t{80} << 30);
    return base;
  };
  sweep.batches = numbers(1000, 1);
  sweep.seqs = numbers(1000, 8);
  measure(sweep, "folded");
  sweep.replay = true;
  sweep.threads = 2;
  sweep.batches = numbers(16, 1);
  sweep.seqs = numbers(64, 128);
  measure(sweep, "replayed");
}

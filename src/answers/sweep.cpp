#include "membill/sweep.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

namespace membill {
namespace {

constexpr std::size_t kFoldedBlock = 2048, kReplayedBlock = 16;  // cases that one thread takes at a time
constexpr std::size_t kBlocksAhead = 8;                          // of what was handed out, for each thread

std::int64_t tokens_of_step(const TrainingPlan& plan, const Hardware& hardware) {
  const ParallelPlan& p = plan.parallel;
  const std::int64_t shared = p.tp * p.pp * p.cp * p.ulysses;
  const std::int64_t replicas = std::max<std::int64_t>(1, hardware.count / shared);
  return checked_mul(checked_mul(plan.batch, plan.seq), checked_mul(plan.accumulate, replicas));
}

// Computes cases for one thread. Cases of one base come after each other.
class CaseRunner {
 public:
  explicit CaseRunner(const Sweep& sweep) : sweep_(sweep) {}

  SweepCase run(std::size_t number) {
    const std::size_t sizes = sweep_.batches.size() * sweep_.seqs.size();
    SweepCase one;
    one.number = number;
    one.base = number / sizes;
    one.batch = sweep_.batches[number % sizes / sweep_.seqs.size()];
    one.seq = sweep_.seqs[number % sweep_.seqs.size()];
    try {
      compute(one);
    } catch (const OverflowError& error) {
      one.problem = std::string("the sizes are too large: ") + error.what() + " bytes";
    } catch (const InputError& error) {
      one.problem = to_text(error.problems().front());
    }
    if (!one.problem.empty()) one.figures.reset();
    return one;
  }

 private:
  void compute(SweepCase& one) {
    if (!family_ || one.base != base_number_) enter_base(one);
    base_.plan.batch = one.batch;
    base_.plan.seq = one.seq;
    one.tokens = tokens_of_step(base_.plan, base_.hardware);
    std::vector<Problem> problems = base_.problems;
    if (problems.empty()) problems = validate_sizes(*sweep_.model, base_.plan, base_.hardware);
    if (!problems.empty()) {
      one.problem = to_text(problems.front());
      return;
    }
    one.figures = sweep_.replay ? family_->replay(one.batch, one.seq) : family_->fold(one.batch, one.seq);
  }

  // What does not depend on the sizes is validated once, with those of the base's first case here.
  void enter_base(const SweepCase& one) {
    base_number_ = one.base;
    base_ = sweep_.base(one.base);
    base_.plan.batch = one.batch;
    base_.plan.seq = one.seq;
    if (base_.problems.empty()) {
      const std::vector<Problem> sizes = validate_sizes(*sweep_.model, base_.plan, base_.hardware);
      for (Problem& problem : validate(*sweep_.model, base_.plan, base_.hardware))
        if (std::find(sizes.begin(), sizes.end(), problem) == sizes.end()) base_.problems.push_back(std::move(problem));
    }
    family_.emplace(*sweep_.model, base_.plan, base_.hardware);
  }

  const Sweep& sweep_;
  std::size_t base_number_ = 0;
  SweepBase base_;
  std::optional<JobFamily> family_;
};

// Blocks of cases, computed by several threads and handed out in order.
class BlockQueue {
 public:
  explicit BlockQueue(const Sweep& sweep) : sweep_(sweep), size_(sweep.replay ? kReplayedBlock : kFoldedBlock) {
    const std::size_t rest = sweep.first % sweep.parts;
    start_ = sweep.first + (sweep.part + sweep.parts - rest) % sweep.parts;
    if (start_ < sweep.cases()) count_ = (sweep.cases() - start_ + sweep.parts - 1) / sweep.parts;
    blocks_ = (count_ + size_ - 1) / size_;
  }

  void run(const std::function<bool(std::span<const SweepCase>)>& emit) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < sweep_.threads; ++i) threads.emplace_back([this] { work(); });
    hand_out(emit);
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void work() {
    try {
      CaseRunner runner(sweep_);
      std::size_t block = 0;
      while (next(block)) finish(block, compute(runner, block));
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stopped_ = true;
    }
    changed_.notify_all();
  }

  bool next(std::size_t& block) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopped_ || taken_ < handed_ + kBlocksAhead * sweep_.threads; });
    if (stopped_ || taken_ == blocks_) return false;
    block = taken_++;
    return true;
  }

  [[nodiscard]] std::vector<SweepCase> compute(CaseRunner& runner, std::size_t block) const {
    std::vector<SweepCase> cases;
    const std::size_t end = std::min(count_, (block + 1) * size_);
    cases.reserve(end - block * size_);
    for (std::size_t i = block * size_; i < end; ++i) cases.push_back(runner.run(start_ + i * sweep_.parts));
    return cases;
  }

  void finish(std::size_t block, std::vector<SweepCase> cases) {
    const std::lock_guard lock(mutex_);
    done_.emplace(block, std::move(cases));
    changed_.notify_all();
  }

  void hand_out(const std::function<bool(std::span<const SweepCase>)>& emit) {
    while (handed_ < blocks_) {
      std::vector<SweepCase> cases;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stopped_ || done_.count(handed_) > 0; });
        if (stopped_) return;
        cases = std::move(done_.extract(handed_).mapped());
      }
      const bool goes_on = emit(cases);
      const std::lock_guard lock(mutex_);
      ++handed_;
      stopped_ = stopped_ || !goes_on;
      changed_.notify_all();
    }
  }

  const Sweep& sweep_;
  std::size_t size_, start_ = 0, count_ = 0, blocks_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t taken_ = 0, handed_ = 0;
  bool stopped_ = false;
  std::map<std::size_t, std::vector<SweepCase>> done_;
  std::exception_ptr failure_;
};

}  // namespace

void run_sweep(const Sweep& sweep, const std::function<bool(std::span<const SweepCase>)>& emit) {
  BlockQueue(sweep).run(emit);
}

}  // namespace membill

// membill sweep: one row for each case of a cross product.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>

#include "base/text.h"
#include "cli/command_list.h"
#include "cli/data_option.h"
#include "cli/listing.h"
#include "cli/sweep_file.h"
#include "cli/sweep_grid.h"
#include "cli/sweep_rows.h"
#include "report/text.h"

namespace membill::cli {
namespace {

constexpr std::array<std::string_view, 3> kFormats{"csv", "tsv", "jsonl"};  // in the order of RowFormat
constexpr std::array<std::string_view, 6> kParetoKeys{"memory", "gpus", "tokens",
                                                      "batch",  "seq",  "rank"};  // of ParetoKey
constexpr std::size_t kMostThreads = 256;

std::vector<ArgumentSpec> arguments() { return {model_argument()}; }

std::vector<OptionSpec> options() {
  constexpr const char* kGroup = "Sweep";
  std::vector<OptionSpec> all = sweep_input_options();
  for (OptionSpec& option : std::vector<OptionSpec>{
           {"--axes", Takes::value, "FILE", "lists and ranges by the keys of a job file, as YAML or JSON", kGroup, {}},
           {"--replay", Takes::nothing, "", "replay the allocator too: reserved, and the verdict", kGroup, {}},
           {"--fit", Takes::nothing, "", "only cases that fit or are tight; replays", kGroup, {}},
           {"--top", Takes::value, "N", "only the N cases with most tokens a step", kGroup, {}},
           {"--pareto",
            Takes::value,
            "KEYS",
            "only cases that no other beats: memory, gpus, tokens, batch, seq, rank",
            kGroup,
            {}},
           {"--fields", Takes::value, "NAMES", "these columns, in this order", kGroup, {}},
           {"--part", Takes::value, "K/N", "every N-th case from the K-th on: 3/16", kGroup, {}},
           {"--out", Takes::value, "FILE", "write the rows there", kGroup, {}},
           {"--resume", Takes::nothing, "", "go on with a file of --out that was interrupted", kGroup, {}},
           {"--threads", Takes::value, "N", "cores to use; all by default", kGroup, {}},
           {"--format", Takes::value, "FORMAT", "csv, tsv or jsonl", "Output", {kFormats.begin(), kFormats.end()}},
           data_option()})
    all.push_back(std::move(option));
  return all;
}

// What the options of the sweep itself say.
struct Wishes {
  SweepFilter filter;
  bool replay = false, resume = false;
  std::vector<std::string> fields;
  std::size_t part = 0, parts = 1;
  unsigned threads = 1;
  RowFormat format = RowFormat::csv;
};

std::optional<std::int64_t> read_count(const Arguments& arguments, const char* option, Problems& problems) {
  const std::string* text = arguments.value(option);
  if (text == nullptr) return std::nullopt;
  std::int64_t count = 0;
  std::string why;
  if (parse_count(*text, count, why) && count >= 1) return count;
  problems.add({kCommandLine, option, why.empty() ? "must be at least 1" : why, ""});
  return std::nullopt;
}

void read_part(const Arguments& arguments, Wishes& wishes, Problems& problems) {
  const std::string* text = arguments.value("--part");
  if (text == nullptr) return;
  const std::size_t slash = text->find('/');
  std::int64_t part = 0, parts = 0;
  std::string why;
  const bool read = slash != std::string::npos && parse_count(text->substr(0, slash), part, why) &&
                    parse_count(text->substr(slash + 1), parts, why);
  if (!read || part < 1 || part > parts) {
    problems.add({kCommandLine, "--part", "needs K/N with K from 1 to N, not " + quoted(*text), "3/16"});
    return;
  }
  wishes.part = static_cast<std::size_t>(part - 1);
  wishes.parts = static_cast<std::size_t>(parts);
}

template <std::size_t N>
std::size_t read_word(const std::string& typed, const std::array<std::string_view, N>& words, const char* noun,
                      const char* option, Problems& problems) {
  const auto found = std::find(words.begin(), words.end(), typed);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  Problem problem = unknown_name(noun, typed, {words.begin(), words.end()});
  problem.key = option;
  problems.add(std::move(problem));
  return 0;
}

Wishes read_wishes(const Arguments& arguments, Problems& problems) {
  Wishes wishes;
  wishes.filter.fit = arguments.is_on("--fit");
  wishes.replay = arguments.is_on("--replay") || wishes.filter.fit;
  wishes.resume = arguments.is_on("--resume");
  wishes.filter.top = static_cast<std::size_t>(read_count(arguments, "--top", problems).value_or(0));
  if (const std::string* keys = arguments.value("--pareto"))
    for (const std::string& key : split(*keys, ','))
      wishes.filter.pareto.push_back(static_cast<ParetoKey>(read_word(key, kParetoKeys, "key", "--pareto", problems)));
  if (const std::string* fields = arguments.value("--fields")) wishes.fields = split(*fields, ',');
  if (const std::string* format = arguments.value("--format"))
    wishes.format = static_cast<RowFormat>(read_word(*format, kFormats, "format", "--format", problems));
  read_part(arguments, wishes, problems);
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  wishes.threads = static_cast<unsigned>(std::min<std::int64_t>(
      read_count(arguments, "--threads", problems).value_or(cores), static_cast<std::int64_t>(kMostThreads)));
  if (wishes.filter.top > 0 && !wishes.filter.pareto.empty())
    problems.add({kCommandLine, "--top", "contradicts --pareto", "leave out one of them"});
  if (!wishes.resume) return wishes;
  if (!arguments.has("--out")) problems.add({kCommandLine, "--resume", "needs the file to go on with", "--out FILE"});
  if (wishes.filter.needs_all())
    problems.add(
        {kCommandLine, "--resume", "is of no use where the rows are told at the end", "without --top, --pareto"});
  return wishes;
}

volatile std::sig_atomic_t interrupted = 0;  // by which signal
void note_interrupt(int signal) { interrupted = signal; }

// While it lives, what would end the process ends the sweep after a whole row. What was ignored before (by nohup, say) still is.
class Interruption {
 public:
  Interruption() {
    for (Caught& caught : caught_) {
      caught.before = std::signal(caught.signal, note_interrupt);
      if (caught.before == SIG_IGN) std::signal(caught.signal, SIG_IGN);
    }
  }
  ~Interruption() {
    for (const Caught& caught : caught_) std::signal(caught.signal, caught.before);
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  struct Caught {
    int signal;
    void (*before)(int) = SIG_DFL;
  };
  std::array<Caught, 3> caught_{{{SIGINT}, {SIGTERM}, {SIGHUP}}};
};

// Says on a terminal how far a long sweep is.
class Progress {
 public:
  Progress(std::size_t first, std::size_t cases) : done_(first), cases_(cases), shown_(::isatty(STDERR_FILENO) != 0) {}

  void at(std::size_t number) {
    done_ = number + 1;
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now - last_ < std::chrono::milliseconds(500)) return;
    last_ = now;
    drawn_ = true;
    print("\rmembill: " + report::count_text(static_cast<std::int64_t>(done_)) + " of " +
          report::count_text(static_cast<std::int64_t>(cases_)) + " cases");
  }
  void clear() const {
    if (drawn_) print("\r\033[K");
  }

 private:
  static void print(const std::string& text) {
    if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
  }
  std::size_t done_, cases_;
  bool shown_, drawn_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

class SweepRun {
 public:
  SweepRun(const SweepGrid& grid, const Wishes& wishes, const SweepRows& rows, SweepFile* file, Output& output)
      : rows_(rows),
        file_(file),
        output_(output),
        sieve_(wishes.filter, [this](ParetoKey key, const SweepCase& one) { return value(key, one); }) {
    sweep_.model = &grid.inputs().model;
    sweep_.bases = grid.bases();
    sweep_.base = [&grid](std::size_t number) { return grid.base(number); };
    sweep_.batches = grid.batches();
    sweep_.seqs = grid.seqs();
    sweep_.replay = wishes.replay;
    sweep_.part = wishes.part;
    sweep_.parts = wishes.parts;
    sweep_.threads = wishes.threads;
  }

  void run() {
    if (file_ != nullptr && file_->last_row()) go_on_behind(*file_->last_row());
    Progress progress(sweep_.first, sweep_.cases());
    {
      const Interruption interruption;
      run_sweep(sweep_, [&](std::span<const SweepCase> cases) {
        progress.at(cases.back().number);
        return print(cases) && interrupted == 0;
      });
    }
    progress.clear();
    std::string text;
    if (interrupted == 0)
      for (const SweepCase& one : sieve_.finish()) rows_.append(one, text);
    write(text);
    if (interrupted != 0) std::raise(interrupted);
  }

 private:
  bool print(std::span<const SweepCase> cases) {
    std::string text;
    for (const SweepCase& one : cases)
      if (sieve_.take(one)) rows_.append(one, text);
    return write(text);
  }

  bool write(const std::string& text) {
    if (file_ == nullptr) return text.empty() || output_.stream(text);
    file_->write(text);
    return true;
  }

  // Starts with the case after the file's last, which must come out as it stands there.
  void go_on_behind(const std::string& last) {
    const std::optional<std::size_t> number = case_of_row(last);
    std::string again;
    if (number && *number < sweep_.cases()) {
      Sweep one = sweep_;
      one.first = *number;
      one.threads = 1;
      run_sweep(one, [&](std::span<const SweepCase> cases) {
        rows_.append(cases.front(), again);
        return false;
      });
    }
    if (again != last)
      throw InputError(
          Problem{"", "--resume", "the last row there is none of this sweep's", "the same options, or another file"});
    sweep_.first = *number + 1;
  }

  std::int64_t value(ParetoKey key, const SweepCase& one) const {
    switch (key) {
      case ParetoKey::tokens: return one.tokens;
      case ParetoKey::batch: return one.batch;
      case ParetoKey::seq: return one.seq;
      case ParetoKey::gpus: return sweep_.base(one.base).hardware.count;
      case ParetoKey::rank: return sweep_.base(one.base).plan.adapter.rank;
      case ParetoKey::memory: break;
    }
    return 0;
  }

  const SweepRows& rows_;
  SweepFile* file_;
  Output& output_;
  SweepSieve sieve_;
  Sweep sweep_;
};

ExitCode run_sweep_command(const Arguments& arguments, Output& output) {
  Problems problems;
  const Wishes wishes = read_wishes(arguments, problems);
  std::optional<SweepGrid> grid;
  try {
    grid.emplace(arguments, arguments.positional(0), arguments.value("--job"));
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
  problems.throw_if_any();
  const bool has_card = grid->base(0).hardware.usable().has_value();
  if (wishes.filter.fit && !has_card)
    problems.add({kCommandLine, "--fit", "needs a card of known size", "--gpu NAME|SIZE"});
  const SweepRows rows(*grid, wishes.replay, wishes.format, wishes.fields, problems);
  if (wishes.resume && !rows.begins_with_case())
    problems.add({kCommandLine, "--fields", "must begin with case, which --resume goes by", "case,..."});
  problems.throw_if_any();
  if (output.only_problems) return ExitCode::computed;
  std::unique_ptr<SweepFile> file;
  if (const std::string* path = arguments.value("--out"))
    file = std::make_unique<SweepFile>(*path, rows.header(), wishes.resume);
  else
    output.stream(rows.header());
  SweepRun(*grid, wishes, rows, file.get(), output).run();
  return ExitCode::computed;
}

}  // namespace

Command sweep_command() {
  return {"sweep",
          "A row for each case of a cross product of lists and ranges",
          arguments,
          options,
          {"sweep llama-2-7b --batch 1,2,4 --seq 1024:8192:*2 --method lora,qlora",
           "sweep llama-2-7b --batch 1..64 --seq 512:8192:512 --gpu rtx-4090 --fit --top 5",
           "sweep --job job.yaml --gpu rtx-4090,a100-80gb --replay --out rows.csv --part 3/16"},
          run_sweep_command};
}

}  // namespace membill::cli

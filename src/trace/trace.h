// A training job as a trace: allocations and frees of tensors, moments, and loops of identical turns.
//
// The order of events is the order in which the framework's process makes them. Every answer of membill is a fold over a trace
// (fold.h) or its replay through the allocator (replay.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/size.h"

namespace membill {

using SizeId = std::int32_t;
using ItemId = std::int16_t;

enum class EventKind : std::uint8_t { allocate, release, moment, loop, end_loop, empty_cache };

// A tensor is named by a slot and an index: `index + stride * turn` of the innermost loop. An allocation and its release give the
// same slot and index, possibly from different loops (backward frees what forward kept).
struct Event {
  EventKind kind = EventKind::allocate;
  ItemId item = 0;        // allocate, release: the item of the bill
  std::int32_t slot = 0;  // allocate, release: the slot; moment: index into Trace::moments; loop: index of its end_loop
  std::int32_t index = 0;   // allocate, release; loop: 1 when moments lie inside (micro-batches), else 0
  std::int16_t stride = 0;  // allocate, release: -1, 0 or 1
  std::int16_t stream = 0;  // allocate: the CUDA stream that asks; 0 computes, an engine numbers its own
  SizeId size = 0;          // allocate, release: bytes; loop, end_loop: turns, at least 1
};

struct Trace {
  std::vector<Event> events;
  std::vector<Size> sizes;               // by SizeId, distinct
  std::vector<std::string> items;        // by ItemId: dotted ids of the bill
  std::vector<std::string> moments;      // names by moment index, one entry per distinct name
  std::vector<const char*> slot_labels;  // what the slot's tensor is, for people ("q_proj output"); static strings
  std::size_t billed_from = 0;           // first event of the step that totals cover (the second step)

  // Bytes of every size under the table's present values. Throws OverflowError.
  [[nodiscard]] std::vector<std::int64_t> evaluate(const SymbolTable& symbols) const;
};

// Thrown by TraceWriter::finish() when turns of a unit's loop would not be alike; the caller writes the units out instead.
struct NotPeriodic {
  std::string why;
};

// Writes a trace while a job is simulated. Identical layers are simulated as four units, the first, the second, one that stands for all in
// between, and the last; the writer turns the middle one into a loop and gives tensors that pass from layer to layer an index.
class TraceWriter {
 public:
  static constexpr int kNoUnit = -1;
  static constexpr int kSimulatedUnits = 4;  // of a run, at most
  static constexpr int kRepeatedUnit = 2;    // the one of them that stands for all others

  // A run of `count` identical units of which `simulated` (1 to 4) are simulated. Returns the number of its first unit; the
  // others follow. With 4, the third stands for count - 3 turns, `turns` as the formulas name them. The second is there so that the
  // third follows a unit like itself: what the first hands on may live and die differently.
  int add_run(std::int64_t count, int simulated, const Size& turns);

  ItemId item(std::string_view id);
  SizeId size(const Size& size);

  // A tensor of `bytes` appears; returns its storage number, to be given to release() once.
  int allocate(const Size& bytes, ItemId item, const char* label);
  // Allocations from now on are asked for on `stream`: the caching allocator keeps a pool for each. Returns the stream before.
  int use_stream(int stream) { return std::exchange(stream_, stream); }
  void release(int storage);
  // The tensor counts as `item` from its allocation on.
  void set_item(int storage, ItemId item) { storages_[static_cast<std::size_t>(storage)].item = item; }
  void moment(std::string_view name);
  void empty_cache();

  // Events until leave() belong to `unit`; `forward` says in which order a pass visits the units of a run.
  void enter(int unit, bool forward);
  void leave();
  // Goes to `unit`, out of the present one; kNoUnit: only out. Nothing when it is there already.
  void visit(int unit, bool forward);
  [[nodiscard]] int unit() const { return unit_; }
  // How many layers `unit` stands for; 1 for kNoUnit.
  [[nodiscard]] Size turns(int unit) const;

  // Events until end_repeat() happen `turns` times (micro-batches); every tensor made inside is freed inside.
  void begin_repeat(const Size& turns);
  void end_repeat();
  // The step that totals cover begins here.
  void begin_billed_step() { billed_from_ = log_.size(); }

  // The trace. Throws NotPeriodic when a run's units do not repeat.
  [[nodiscard]] Trace finish();

 private:
  enum class Kind : std::uint8_t { allocate, release, moment, empty_cache, enter, leave, repeat, end_repeat };
  struct Entry {
    Kind kind;
    bool forward = true;
    std::int32_t number = 0;  // storage, unit, moment index
    SizeId size = 0;
  };
  struct Unit {
    int run = 0;
    int index = 0;  // of the first turn within its run
    std::int64_t turns = 1;
    SizeId turns_size = 0;
    bool repeated = false;  // stands for `turns` layers
    int entered = 0;
  };
  struct Storage {
    SizeId size = 0;
    ItemId item = 0;
    const char* label = "";
    int born_unit = kNoUnit, born_pass = 0, freed_unit = kNoUnit;
    bool freed = false;
    std::int16_t stream = 0;
    std::int32_t slot = -1;
  };
  struct Crossing {
    std::vector<int> storages;
  };
  class Layout;

  std::vector<Entry> log_;
  std::vector<Unit> units_;
  std::vector<Storage> storages_;
  std::vector<Size> sizes_;
  std::unordered_map<Size, SizeId, SizeHash> size_ids_;
  std::vector<std::string> items_, moments_;
  int runs_ = 0;
  int unit_ = kNoUnit;
  int stream_ = 0;
  std::size_t billed_from_ = 0;
};

// Allocations of a scope are asked for on another stream.
class StreamScope {
 public:
  StreamScope(TraceWriter& writer, int stream) : writer_(writer), before_(writer.use_stream(stream)) {}
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;
  ~StreamScope() { writer_.use_stream(before_); }

 private:
  TraceWriter& writer_;
  int before_;
};

}  // namespace membill

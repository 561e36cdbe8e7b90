// Turns the writer's log into a trace: loops for repeated units, slots and indices for tensors.
#include <map>
#include <tuple>

#include "trace/trace.h"

namespace membill {

class TraceWriter::Layout {
 public:
  explicit Layout(TraceWriter& writer) : writer_(writer) {}

  Trace run() {
    assign_slots();
    check_handovers();
    write_events();
    trace_.sizes = writer_.sizes_;
    trace_.items = writer_.items_;
    trace_.moments = writer_.moments_;
    return std::move(trace_);
  }

 private:
  using HandoverKey = std::tuple<int, int>;  // unit, pass

  [[nodiscard]] const Unit& unit(int number) const { return writer_.units_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] bool repeated(int number) const { return number != kNoUnit && unit(number).repeated; }
  [[nodiscard]] bool neighbours(int a, int b) const {
    return a != kNoUnit && b != kNoUnit && unit(a).run == unit(b).run && (a - b == 1 || b - a == 1);
  }

  // Tensors that one unit makes and another frees share a slot with their like in the other units of the run.
  void assign_slots() {
    std::map<std::tuple<int, int, std::size_t>, std::int32_t> shared;  // run, pass, ordinal
    for (std::size_t i = 0; i < writer_.storages_.size(); ++i) {
      Storage& storage = writer_.storages_[i];
      const bool crosses = storage.freed && storage.born_unit != storage.freed_unit;
      if (crosses && storage.born_unit == kNoUnit && repeated(storage.freed_unit))
        throw NotPeriodic{std::string("a repeated layer frees ") + storage.label};
      if (!crosses || storage.born_unit == kNoUnit) {
        storage.slot = new_slot(storage);
        continue;
      }
      if ((repeated(storage.born_unit) || repeated(storage.freed_unit)) &&
          !neighbours(storage.born_unit, storage.freed_unit))
        throw NotPeriodic{std::string("a far layer frees ") + storage.label};
      std::vector<int>& list = handovers_[{storage.born_unit, storage.born_pass}].storages;
      const auto key = std::make_tuple(unit(storage.born_unit).run, storage.born_pass, list.size());
      list.push_back(static_cast<int>(i));
      const auto known = shared.find(key);
      storage.slot = known != shared.end() ? known->second : shared.emplace(key, new_slot(storage)).first->second;
    }
  }

  // What a repeated unit hands to its neighbour must be what its predecessor hands to it.
  void check_handovers() const {
    for (const auto& [key, crossing] : handovers_) {
      const auto [number, pass] = key;
      if (!repeated(number)) continue;
      for (const int storage_number : crossing.storages) {
        const int to = writer_.storages_[static_cast<std::size_t>(storage_number)].freed_unit;
        const int from = number - (to - number);
        const auto other = handovers_.find({from, pass});
        if (other == handovers_.end() || !alike(crossing.storages, other->second.storages))
          throw NotPeriodic{"a layer hands over other tensors than the one before it"};
      }
    }
    for (const auto& [key, crossing] : handovers_) {
      const auto [number, pass] = key;
      for (const int storage_number : crossing.storages) {
        const int to = writer_.storages_[static_cast<std::size_t>(storage_number)].freed_unit;
        if (repeated(to) && handovers_.find({to, pass}) == handovers_.end())
          throw NotPeriodic{"a repeated layer frees what it does not hand on"};
      }
    }
  }

  [[nodiscard]] bool alike(const std::vector<int>& a, const std::vector<int>& b) const {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const Storage& x = writer_.storages_[static_cast<std::size_t>(a[i])];
      const Storage& y = writer_.storages_[static_cast<std::size_t>(b[i])];
      if (x.size != y.size || x.stream != y.stream || x.freed_unit - x.born_unit != y.freed_unit - y.born_unit)
        return false;
    }
    return true;
  }

  std::int32_t new_slot(const Storage& storage) {
    trace_.slot_labels.push_back(storage.label);
    return static_cast<std::int32_t>(trace_.slot_labels.size()) - 1;
  }

  void write_events() {
    int current = kNoUnit;
    bool forward = true;
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < writer_.log_.size(); ++i) {
      if (i == writer_.billed_from_) trace_.billed_from = trace_.events.size();
      const Entry& entry = writer_.log_[i];
      switch (entry.kind) {
        case Kind::allocate:
        case Kind::release: write_tensor(entry, current, forward); break;
        case Kind::moment: trace_.events.push_back({EventKind::moment, 0, entry.number, 0, 0, 0}); break;
        case Kind::empty_cache: trace_.events.push_back({EventKind::empty_cache, 0, 0, 0, 0, 0}); break;
        case Kind::enter:
          current = entry.number;
          forward = entry.forward;
          if (repeated(current)) open_loop(open, unit(current).turns_size, false);
          break;
        case Kind::leave:
          if (repeated(current)) close_loop(open);
          current = kNoUnit;
          break;
        case Kind::repeat: open_loop(open, entry.size, true); break;
        case Kind::end_repeat: close_loop(open); break;
      }
    }
  }

  void open_loop(std::vector<std::size_t>& open, SizeId turns, bool moments_inside) {
    open.push_back(trace_.events.size());
    trace_.events.push_back({EventKind::loop, 0, 0, moments_inside ? 1 : 0, 0, 0, turns});
  }
  void close_loop(std::vector<std::size_t>& open) {
    const std::size_t start = open.back();
    open.pop_back();
    trace_.events[start].slot = static_cast<std::int32_t>(trace_.events.size());
    trace_.events.push_back(
        {EventKind::end_loop, 0, static_cast<std::int32_t>(start), 0, 0, 0, trace_.events[start].size});
  }

  void write_tensor(const Entry& entry, int current, bool forward) {
    const Storage& storage = writer_.storages_[static_cast<std::size_t>(entry.number)];
    Event event;
    event.kind = entry.kind == Kind::allocate ? EventKind::allocate : EventKind::release;
    event.item = storage.item;
    event.slot = storage.slot;
    event.size = storage.size;
    event.stream = storage.stream;
    const int born = storage.born_unit;
    if (born != kNoUnit) {
      if (repeated(current)) {
        const Unit& here = unit(current);
        const int shift = born - current;
        event.stride = forward ? 1 : -1;
        event.index = (forward ? here.index : here.index + static_cast<std::int32_t>(here.turns) - 1) + shift;
      } else if (repeated(born)) {
        // The neighbour before or after the repeated unit frees the last or the first turn's tensor.
        const Unit& made = unit(born);
        event.index = current > born ? made.index + static_cast<std::int32_t>(made.turns) - 1 : made.index;
      } else {
        event.index = unit(born).index;
      }
    }
    trace_.events.push_back(event);
  }

  TraceWriter& writer_;
  Trace trace_;
  std::map<HandoverKey, Crossing> handovers_;
};

Trace TraceWriter::finish() { return Layout(*this).run(); }

}  // namespace membill

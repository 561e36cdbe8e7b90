#include "trace/trace.h"

#include <algorithm>
#include <stdexcept>

namespace membill {

std::vector<std::int64_t> Trace::evaluate(const SymbolTable& symbols) const {
  std::vector<std::int64_t> bytes;
  bytes.reserve(sizes.size());
  for (const Size& size : sizes) bytes.push_back(symbols.evaluate(size));
  return bytes;
}

int TraceWriter::add_run(std::int64_t count, int simulated, const Size& turns) {
  const int first = static_cast<int>(units_.size());
  for (int i = 0; i < simulated; ++i) {
    Unit unit;
    unit.run = runs_;
    unit.index = i < kSimulatedUnits - 1 ? i : static_cast<int>(count - 1);
    if (simulated == kSimulatedUnits && i == kRepeatedUnit) {
      unit.repeated = true;
      unit.turns = count - (kSimulatedUnits - 1);
      unit.turns_size = size(turns);
    }
    units_.push_back(unit);
  }
  ++runs_;
  return first;
}

Size TraceWriter::turns(int unit) const {
  if (unit == kNoUnit || !units_.at(static_cast<std::size_t>(unit)).repeated) return Size(1);
  return sizes_[static_cast<std::size_t>(units_[static_cast<std::size_t>(unit)].turns_size)];
}

ItemId TraceWriter::item(std::string_view id) {
  const auto at = std::find(items_.begin(), items_.end(), id);
  if (at != items_.end()) return static_cast<ItemId>(at - items_.begin());
  items_.emplace_back(id);
  return static_cast<ItemId>(items_.size() - 1);
}

SizeId TraceWriter::size(const Size& size) {
  const auto [at, is_new] = size_ids_.try_emplace(size, static_cast<SizeId>(sizes_.size()));
  if (is_new) sizes_.push_back(size);
  return at->second;
}

int TraceWriter::allocate(const Size& bytes, ItemId item, const char* label) {
  Storage storage;
  storage.size = size(bytes);
  storage.item = item;
  storage.label = label;
  storage.stream = static_cast<std::int16_t>(stream_);
  storage.born_unit = unit_;
  if (unit_ != kNoUnit) storage.born_pass = units_[static_cast<std::size_t>(unit_)].entered;
  storages_.push_back(storage);
  const int number = static_cast<int>(storages_.size()) - 1;
  log_.push_back({Kind::allocate, true, number, storage.size});
  return number;
}

void TraceWriter::release(int storage) {
  Storage& gone = storages_[static_cast<std::size_t>(storage)];
  gone.freed = true;
  gone.freed_unit = unit_;
  log_.push_back({Kind::release, true, storage, gone.size});
}

void TraceWriter::moment(std::string_view name) {
  const auto at = std::find(moments_.begin(), moments_.end(), name);
  const auto index = static_cast<std::int32_t>(at - moments_.begin());
  if (at == moments_.end()) moments_.emplace_back(name);
  log_.push_back({Kind::moment, true, index, 0});
}

void TraceWriter::empty_cache() { log_.push_back({Kind::empty_cache, true, 0, 0}); }

void TraceWriter::enter(int unit, bool forward) {
  unit_ = unit;
  ++units_.at(static_cast<std::size_t>(unit)).entered;
  log_.push_back({Kind::enter, forward, unit, 0});
}

void TraceWriter::leave() {
  log_.push_back({Kind::leave, true, unit_, 0});
  unit_ = kNoUnit;
}

void TraceWriter::visit(int unit, bool forward) {
  if (unit == unit_) return;
  if (unit_ != kNoUnit) leave();
  if (unit != kNoUnit) enter(unit, forward);
}

void TraceWriter::begin_repeat(const Size& turns) { log_.push_back({Kind::repeat, true, 0, size(turns)}); }
void TraceWriter::end_repeat() { log_.push_back({Kind::end_repeat, true, 0, 0}); }

}  // namespace membill

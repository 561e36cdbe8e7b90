// The cached blocks of one pool and stream, ordered by size, then address: the order of PyTorch's best fit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace membill {

// A sorted set in short sorted runs. Insertion and removal move at most one run; nothing is allocated in steady state.
// Made for tens to a few thousands of blocks; every operation is then some tens of nanoseconds.
class FreeBlocks {
 public:
  struct Entry {
    std::int64_t size;     // bytes, not negative
    std::int64_t address;  // not negative, unique in a set
    std::int32_t block;    // index of the block, not part of the order
  };

  // A place in the order. Valid until the set changes.
  struct Position {
    std::size_t run;
    std::size_t offset;
    bool operator==(const Position&) const = default;
  };

  [[nodiscard]] bool empty() const { return order_.empty(); }
  [[nodiscard]] Position begin() const { return {0, 0}; }
  [[nodiscard]] Position end() const { return {order_.size(), 0}; }
  [[nodiscard]] const Entry& at(Position p) const { return runs_[order_[p.run]].entries[p.offset]; }

  // REQUIRES: p != end() for next, p != begin() for previous.
  [[nodiscard]] Position next(Position p) const;
  [[nodiscard]] Position previous(Position p) const;

  // The first entry that is not below (size, address), or end().
  [[nodiscard]] Position lower_bound(std::int64_t size, std::int64_t address) const;

  // REQUIRES: no entry has this size and address.
  void insert(const Entry& entry);
  // REQUIRES: an entry has this size and address.
  void erase(std::int64_t size, std::int64_t address) { erase(lower_bound(size, address)); }
  // REQUIRES: p != end().
  void erase(Position p);

 private:
  static constexpr std::size_t kRunLength = 32;
  struct Run {
    std::size_t count = 0;
    std::array<Entry, kRunLength> entries;
  };

  Position split(std::size_t run);
  std::size_t new_run();

  std::vector<Run> runs_;
  std::vector<std::size_t> order_;  // runs in use, none of them empty
  std::vector<std::size_t> spare_;  // runs out of use
};

}  // namespace membill

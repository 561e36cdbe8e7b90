// The cached blocks of one pool and stream, ordered by size, then address: the order of PyTorch's best fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace membill {

// A sorted set as a list of short sorted runs: a search reads a few cache lines, a change moves one run, and ten thousand blocks are no
// more than some hundred runs.
class FreeBlocks {
 public:
  struct Entry {
    std::int64_t size;     // bytes, not negative
    std::int64_t address;  // not negative, unique in a set
    std::int32_t block;    // index of the block, not part of the order
  };

  // A place in the order. Valid until the set changes.
  struct Position {
    std::size_t run;     // from the smallest entries
    std::size_t offset;  // in that run
    bool operator==(const Position&) const = default;
  };

  [[nodiscard]] bool empty() const { return runs_.empty(); }
  [[nodiscard]] Position begin() const { return {0, 0}; }
  [[nodiscard]] Position end() const { return {runs_.size(), 0}; }
  // REQUIRES: p != end().
  [[nodiscard]] const Entry& at(Position p) const { return runs_[p.run][p.offset]; }

  // REQUIRES: p != end() for next, p != begin() for previous.
  [[nodiscard]] Position next(Position p) const {
    return p.offset + 1 < runs_[p.run].size() ? Position{p.run, p.offset + 1} : Position{p.run + 1, 0};
  }
  [[nodiscard]] Position previous(Position p) const {
    return p.offset > 0 ? Position{p.run, p.offset - 1} : Position{p.run - 1, runs_[p.run - 1].size() - 1};
  }

  // The first entry of at least `size` bytes, or end().
  [[nodiscard]] Position first_of(std::int64_t size) const { return first_from(size, 0); }

  // REQUIRES: no entry has this size and address.
  void insert(const Entry& entry);
  // REQUIRES: an entry has this size and address.
  void erase(std::int64_t size, std::int64_t address) { erase(first_from(size, address)); }
  // REQUIRES: p != end().
  void erase(Position p);

 private:
  using Run = std::vector<Entry>;  // rising, never empty

  // The first entry that does not lie before this size and address, or end().
  [[nodiscard]] Position first_from(std::int64_t size, std::int64_t address) const;

  std::vector<Run> runs_;  // rising
};

}  // namespace membill

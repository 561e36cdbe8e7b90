// The cached blocks of one pool and stream, ordered by size, then address: the order of PyTorch's best fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace membill {

// A sorted set. Some ten sizes are cached at a time, most of them of one block, and half of all insertions bring a new size: so the
// distinct sizes are one short sorted list that holds each size's lowest block, which best fit takes, in place; the higher ones lie in
// runs. A size of ten thousand blocks moves no more than one run.
class FreeBlocks {
 public:
  struct Entry {
    std::int64_t size;     // bytes, not negative
    std::int64_t address;  // not negative, unique in a set
    std::int32_t block;    // index of the block, not part of the order
  };

  // A place in the order. Valid until the set changes.
  struct Position {
    std::size_t size;   // of the distinct sizes
    std::size_t place;  // of that size's blocks, from the lowest address
    bool operator==(const Position&) const = default;
  };

  [[nodiscard]] bool empty() const { return sizes_.empty(); }
  [[nodiscard]] Position begin() const { return {0, 0}; }
  [[nodiscard]] Position end() const { return {sizes_.size(), 0}; }
  // REQUIRES: p != end().
  [[nodiscard]] Entry at(Position p) const {
    const OfSize& here = sizes_[p.size];
    if (p.place == 0) return {here.size, here.address, here.block};
    const Place& place = higher_[static_cast<std::size_t>(here.higher)].at(p.place - 1);
    return {here.size, place.address, place.block};
  }

  // REQUIRES: p != end() for next, p != begin() for previous.
  [[nodiscard]] Position next(Position p) const {
    return p.place + 1 < count(sizes_[p.size]) ? Position{p.size, p.place + 1} : Position{p.size + 1, 0};
  }
  [[nodiscard]] Position previous(Position p) const {
    return p.place > 0 ? Position{p.size, p.place - 1} : Position{p.size - 1, count(sizes_[p.size - 1]) - 1};
  }

  // The first entry of at least `size` bytes, or end().
  [[nodiscard]] Position first_of(std::int64_t size) const { return {rank_of(size), 0}; }

  // REQUIRES: no entry has this size and address.
  void insert(const Entry& entry);
  // REQUIRES: an entry has this size and address.
  void erase(std::int64_t size, std::int64_t address);
  // REQUIRES: p != end().
  void erase(Position p);
  // As erasing and inserting. Mostly the new entry takes the old one's place in the order, and nothing else moves.
  void replace(Position p, const Entry& by);
  void replace(std::int64_t size, std::int64_t address, const Entry& by);

 private:
  struct Place {
    std::int64_t address;
    std::int32_t block;
  };

  // The blocks of one size above its lowest.
  class Higher {
   public:
    [[nodiscard]] std::size_t count() const { return count_; }
    // `number`: from the lowest address.
    [[nodiscard]] const Place& at(std::size_t number) const;
    void insert(const Place& place);
    void erase(std::int64_t address);
    // Removes the lowest and gives it.
    Place take_lowest();

   private:
    using Run = std::vector<Place>;  // from the highest address: the lowest is at the back

    // The index of the run that holds or would hold `address`.
    [[nodiscard]] std::size_t run_of(std::int64_t address) const;

    std::vector<Run> runs_{1};  // from the highest addresses; none is empty but a single one
    std::size_t count_ = 0;
  };

  struct OfSize {
    std::int64_t size;
    std::int64_t address;  // of the lowest block
    std::int32_t block;    // the lowest
    std::int32_t higher;   // which of higher_, kNone when the lowest is the only one
  };
  static constexpr std::int32_t kNone = -1;

  [[nodiscard]] std::size_t count(const OfSize& one) const {
    return one.higher == kNone ? 1 : 1 + higher_[static_cast<std::size_t>(one.higher)].count();
  }
  // Whether `by` may stand at `rank`, where the only block of its size stands now.
  [[nodiscard]] bool keeps_order(std::size_t rank, const Entry& by) const {
    return sizes_[rank].higher == kNone && (rank == 0 || sizes_[rank - 1].size < by.size) &&
           (rank + 1 == sizes_.size() || by.size < sizes_[rank + 1].size);
  }
  void add_higher(OfSize& one, const Place& place);
  void erase_lowest(std::size_t rank);
  void leave_if_empty(OfSize& one);

  // How many distinct sizes are smaller. Of a few, counting is quicker than halving.
  [[nodiscard]] std::size_t rank_of(std::int64_t size) const {
    const OfSize* first = sizes_.data();
    const OfSize* last = first + sizes_.size();
    while (last - first > 16) {
      const OfSize* middle = first + (last - first) / 2;
      (middle->size < size ? first : last) = middle;
    }
    while (first != last && first->size < size) ++first;
    return static_cast<std::size_t>(first - sizes_.data());
  }

  std::vector<OfSize> sizes_;  // by size, rising
  std::vector<Higher> higher_;
  std::vector<std::int32_t> spare_;  // those of higher_ that are empty
};

// Half of all insertions and removals need nothing but the list of sizes: they are inlined.

inline void FreeBlocks::insert(const Entry& entry) {
  const std::size_t rank = rank_of(entry.size);
  if (rank == sizes_.size() || sizes_[rank].size != entry.size) {
    sizes_.insert(sizes_.begin() + static_cast<std::ptrdiff_t>(rank), {entry.size, entry.address, entry.block, kNone});
    return;
  }
  OfSize& one = sizes_[rank];
  Place higher{entry.address, entry.block};
  if (higher.address < one.address) {
    std::swap(higher.address, one.address);
    std::swap(higher.block, one.block);
  }
  add_higher(one, higher);
}

inline void FreeBlocks::erase_lowest(std::size_t rank) {
  OfSize& one = sizes_[rank];
  if (one.higher == kNone) {
    sizes_.erase(sizes_.begin() + static_cast<std::ptrdiff_t>(rank));
    return;
  }
  const Place lowest = higher_[static_cast<std::size_t>(one.higher)].take_lowest();
  one.address = lowest.address;
  one.block = lowest.block;
  leave_if_empty(one);
}

inline void FreeBlocks::replace(Position p, const Entry& by) {
  if (keeps_order(p.size, by)) {
    sizes_[p.size] = {by.size, by.address, by.block, kNone};
    return;
  }
  erase(p);
  insert(by);
}

inline void FreeBlocks::replace(std::int64_t size, std::int64_t address, const Entry& by) {
  const std::size_t rank = rank_of(size);
  if (sizes_[rank].address == address) return replace(Position{rank, 0}, by);
  erase(size, address);
  insert(by);
}

}  // namespace membill

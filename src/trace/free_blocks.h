// The cached blocks of one pool and stream, ordered by size, then address: the order of PyTorch's best fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace membill {

// A sorted set: the distinct sizes in one sorted list, the addresses of each in runs. Tensors of a job come in few sizes, so both are short
// as a rule and a search reads one or two cache lines; a size of ten thousand blocks moves no more than one run. Nothing is allocated in
// steady state.
class FreeBlocks {
 public:
  struct Entry {
    std::int64_t size;     // bytes, not negative
    std::int64_t address;  // not negative, unique in a set
    std::int32_t block;    // index of the block, not part of the order
  };

  // A place in the order. Valid until the set changes.
  struct Position {
    std::size_t size;    // of the distinct sizes
    std::size_t run;     // of that size's runs, from the lowest addresses
    std::size_t offset;  // of that run's addresses, from the lowest
    bool operator==(const Position&) const = default;
  };

  [[nodiscard]] bool empty() const { return sizes_.empty(); }
  [[nodiscard]] Position begin() const { return {0, 0, 0}; }
  [[nodiscard]] Position end() const { return {sizes_.size(), 0, 0}; }
  // REQUIRES: p != end().
  [[nodiscard]] Entry at(Position p) const {
    const Run& run = places_[order_[p.size]].run(p.run);
    const Place& place = run[run.size() - 1 - p.offset];
    return {sizes_[p.size], place.address, place.block};
  }

  // REQUIRES: p != end() for next, p != begin() for previous.
  [[nodiscard]] Position next(Position p) const {
    const Places& places = places_[order_[p.size]];
    if (p.offset + 1 < places.run(p.run).size()) return {p.size, p.run, p.offset + 1};
    return p.run + 1 < places.runs() ? Position{p.size, p.run + 1, 0} : Position{p.size + 1, 0, 0};
  }
  [[nodiscard]] Position previous(Position p) const {
    if (p.offset > 0) return {p.size, p.run, p.offset - 1};
    const std::size_t size = p.run > 0 ? p.size : p.size - 1;
    const Places& places = places_[order_[size]];
    const std::size_t run = (p.run > 0 ? p.run : places.runs()) - 1;
    return {size, run, places.run(run).size() - 1};
  }

  // The first entry of at least `size` bytes, or end().
  [[nodiscard]] Position first_of(std::int64_t size) const { return {rank_of(size), 0, 0}; }

  // REQUIRES: no entry has this size and address.
  void insert(const Entry& entry);
  // REQUIRES: an entry has this size and address.
  void erase(std::int64_t size, std::int64_t address);
  // REQUIRES: p != end().
  void erase(Position p);

 private:
  struct Place {
    std::int64_t address;
    std::int32_t block;
  };
  using Run = std::vector<Place>;  // from the highest address: the lowest, taken first, is at the back

  // The blocks of one size. Only the single run of an empty set is empty.
  class Places {
   public:
    [[nodiscard]] bool empty() const { return runs_.back().empty(); }
    [[nodiscard]] std::size_t runs() const { return runs_.size(); }
    // Counted from the lowest addresses.
    [[nodiscard]] const Run& run(std::size_t number) const { return runs_[runs_.size() - 1 - number]; }
    void insert(const Place& place);
    // The run and the offset in it of a place that the set has, as a Position counts them.
    [[nodiscard]] std::pair<std::size_t, std::size_t> find(std::int64_t address) const;
    void erase(std::size_t number, std::size_t offset);

   private:
    // The index of the run that holds or would hold `address`.
    [[nodiscard]] std::size_t run_of(std::int64_t address) const;

    std::vector<Run> runs_{1};  // from the highest addresses
  };

  // How many distinct sizes are smaller. Which way a step goes is not predictable, so it is not a branch.
  [[nodiscard]] std::size_t rank_of(std::int64_t size) const {
    const std::int64_t* first = sizes_.data();
    for (std::size_t count = sizes_.size(); count > 0;) {
      const std::size_t half = (count + 1) / 2;
      first += first[half - 1] < size ? half : 0;
      count -= half;
    }
    return static_cast<std::size_t>(first - sizes_.data());
  }

  std::vector<std::int64_t> sizes_;   // distinct, rising
  std::vector<std::uint32_t> order_;  // of each size, where its places are
  std::vector<Places> places_;
  std::vector<std::uint32_t> spare_;  // empty places
};

}  // namespace membill

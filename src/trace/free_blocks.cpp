#include "trace/free_blocks.h"

#include <algorithm>

namespace membill {

void FreeBlocks::insert(const Entry& entry) {
  const std::size_t rank = rank_of(entry.size);
  if (rank == sizes_.size() || sizes_[rank] != entry.size) {
    if (spare_.empty()) {
      spare_.push_back(static_cast<std::uint32_t>(places_.size()));
      places_.emplace_back();
    }
    sizes_.insert(sizes_.begin() + static_cast<std::ptrdiff_t>(rank), entry.size);
    order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(rank), spare_.back());
    spare_.pop_back();
  }
  Places& places = places_[order_[rank]];
  const auto after = std::partition_point(places.begin(), places.end(),
                                          [&entry](const Place& place) { return place.address > entry.address; });
  places.insert(after, {entry.address, entry.block});
}

void FreeBlocks::erase(std::int64_t size, std::int64_t address) {
  const std::size_t rank = rank_of(size);
  const Places& places = places_[order_[rank]];
  const auto place = std::partition_point(places.begin(), places.end(),
                                          [address](const Place& other) { return other.address > address; });
  erase(Position{rank, static_cast<std::size_t>(places.end() - place) - 1});
}

void FreeBlocks::erase(Position p) {
  Places& places = places_[order_[p.size]];
  places.erase(places.end() - 1 - static_cast<std::ptrdiff_t>(p.offset));
  if (!places.empty()) return;
  spare_.push_back(order_[p.size]);
  sizes_.erase(sizes_.begin() + static_cast<std::ptrdiff_t>(p.size));
  order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(p.size));
}

}  // namespace membill

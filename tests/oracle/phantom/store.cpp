#include "store.h"

#include <sys/mman.h>

#include <atomic>
#include <iterator>

#include "card.h"

namespace phantom {
namespace {

std::atomic<std::size_t> used{0};

void* map_pages(std::size_t bytes, int protection) {
  void* begin = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return begin == MAP_FAILED ? nullptr : begin;
}

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

void Ranges::add(const void* begin, std::size_t bytes) {
  const std::lock_guard<std::mutex> guard(mutex_);
  ranges_[number(begin)] = bytes;
}

std::size_t Ranges::remove(const void* begin) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = ranges_.find(number(begin));
  if (found == ranges_.end()) return 0;
  const std::size_t bytes = found->second;
  ranges_.erase(found);
  return bytes;
}

bool Ranges::find(const void* address, std::uintptr_t& begin, std::size_t& bytes) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto next = ranges_.upper_bound(number(address));
  if (next == ranges_.begin()) return false;
  const auto found = std::prev(next);
  if (number(address) >= found->first + found->second) return false;
  begin = found->first;
  bytes = found->second;
  return true;
}

bool Ranges::contains(const void* address) const {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  return find(address, begin, bytes);
}

// Never destroyed: frameworks free memory while the process exits.
Ranges& device_ranges() {
  static auto* const kRanges = new Ranges;
  return *kRanges;
}

Ranges& host_ranges() {
  static auto* const kRanges = new Ranges;
  return *kRanges;
}

bool charge(std::size_t bytes) {
  std::size_t before = used;
  do {
    if (before + bytes + context_bytes() > card().bytes) return false;
  } while (!used.compare_exchange_weak(before, before + bytes));
  return true;
}

void give_back(std::size_t bytes) { used -= bytes; }

std::size_t free_bytes() {
  const std::size_t taken = used + context_bytes(), all = card().bytes;
  return taken < all ? all - taken : 0;
}

void* reserve_addresses(std::size_t bytes) { return map_pages(bytes, PROT_NONE); }

void* map_host(std::size_t bytes) { return map_pages(bytes, PROT_READ | PROT_WRITE); }

void unmap(void* begin, std::size_t bytes) { munmap(begin, bytes); }

void* new_handle() {
  static std::atomic<std::uintptr_t> next{0x1000};
  return reinterpret_cast<void*>(next += 64);
}

}  // namespace phantom

// The phantom card's memory: address ranges that nobody can touch, and host memory that is only backed when written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace phantom {

// Ranges by their first address. All members may be called from any thread.
class Ranges {
 public:
  void add(const void* begin, std::size_t bytes);
  // The bytes of the range that begins here, which is forgotten; 0 when none does.
  std::size_t remove(const void* begin);
  [[nodiscard]] bool contains(const void* address) const;
  // The range around `address`; false when there is none.
  bool find(const void* address, std::uintptr_t& begin, std::size_t& bytes) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> ranges_;
};

[[nodiscard]] Ranges& device_ranges();
[[nodiscard]] Ranges& host_ranges();

// Takes `bytes` of the card's capacity; false when they are not left.
[[nodiscard]] bool charge(std::size_t bytes);
void give_back(std::size_t bytes);
[[nodiscard]] std::size_t free_bytes();

// Address space without memory behind it; nullptr when there is none left.
[[nodiscard]] void* reserve_addresses(std::size_t bytes);
// Host memory of which only written pages are backed.
[[nodiscard]] void* map_host(std::size_t bytes);
void unmap(void* begin, std::size_t bytes);

// A name that no other object has: streams, events, handles of libraries.
[[nodiscard]] void* new_handle();

}  // namespace phantom

// Variables of a shell, by name. A copy costs nothing and keeps what was set when it was made: each command of a script has its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace membill::io {

class Variables {
 public:
  // nullptr: it is not set.
  [[nodiscard]] const std::string* find(std::string_view name) const;
  void set(std::string_view name, std::string value) { put(name, std::move(value)); }
  void unset(std::string_view name) { put(name, std::nullopt); }
  // The whole number from 1 to a million that it holds; 0: none.
  [[nodiscard]] std::int64_t count(std::string_view name) const;

 private:
  // A tree in the order of hashes; nodes are shared between copies and never change.
  struct Node;
  using Tree = std::shared_ptr<const Node>;
  struct Node {
    std::size_t hash = 0;
    std::string name;
    std::optional<std::string> value;  // nothing: it is unset again
    Tree before, behind;
  };
  static Tree with(const Tree& tree, Node node);
  void put(std::string_view name, std::optional<std::string> value);

  Tree root_;
};

}  // namespace membill::io

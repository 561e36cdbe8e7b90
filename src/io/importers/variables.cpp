#include "io/importers/variables.h"

#include <functional>
#include <tuple>
#include <utility>

#include "membill/catalog.h"

namespace membill::io {
namespace {

constexpr std::int64_t kMostCards = 1'000'000;

std::size_t hash_of(std::string_view name) { return std::hash<std::string_view>{}(name); }

}  // namespace

const std::string* Variables::find(std::string_view name) const {
  const auto wanted = std::make_tuple(hash_of(name), name);
  for (const Node* node = root_.get(); node != nullptr;) {
    const auto here = std::make_tuple(node->hash, std::string_view(node->name));
    if (here == wanted) return node->value ? &*node->value : nullptr;
    node = (wanted < here ? node->before : node->behind).get();
  }
  return nullptr;
}

std::int64_t Variables::count(std::string_view name) const {
  const std::string* text = find(name);
  const Value value = text == nullptr ? Value() : flag_value(*text);
  return value.is_int() && value.as_int() > 0 && value.as_int() < kMostCards ? value.as_int() : 0;
}

Variables::Tree Variables::with(const Tree& tree, Node node) {
  if (tree == nullptr) return std::make_shared<const Node>(std::move(node));
  Node here = *tree;
  const auto wanted = std::tie(node.hash, node.name), found = std::tie(here.hash, here.name);
  if (wanted == found) {
    here.value = std::move(node.value);
  } else if (wanted < found) {
    here.before = with(here.before, std::move(node));
  } else {
    here.behind = with(here.behind, std::move(node));
  }
  return std::make_shared<const Node>(std::move(here));
}

void Variables::put(std::string_view name, std::optional<std::string> value) {
  root_ = with(root_, Node{hash_of(name), std::string(name), std::move(value), nullptr, nullptr});
}

}  // namespace membill::io

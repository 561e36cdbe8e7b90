#include "io/importers/shell_substitution.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace membill::io {
namespace {

bool holds_text(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// cd "$(dirname "$0")/.." && pwd; dirname "$(readlink -f "${BASH_SOURCE[0]}")".
std::optional<std::string> script_folder(std::string_view command) {
  const bool own = holds_text(command, "$0") || holds_text(command, "${0") || holds_text(command, "BASH_SOURCE");
  if (!own || !holds_text(command, "dirname")) return std::nullopt;
  std::string folder = ".";
  for (std::size_t at = command.find("/.."); at != std::string_view::npos; at = command.find("/..", at + 3))
    folder += "/..";
  return folder;
}

// echo $CUDA_VISIBLE_DEVICES | tr ',' '\n' | wc -l; nvidia-smi -L | wc -l; python -c "... torch.cuda.device_count() ...".
bool counts_cards(std::string_view command) {
  constexpr std::array<std::string_view, 4> kCounts{"wc -", "NF", "len(", "grep -c"};
  const bool counts = std::any_of(kCounts.begin(), kCounts.end(), [&](auto word) { return holds_text(command, word); });
  return holds_text(command, "device_count()") ||
         (counts && (holds_text(command, "CUDA_VISIBLE_DEVICES") || holds_text(command, "nvidia-smi")));
}

std::optional<std::string> cards(const ShellScope& scope) {
  const std::optional<std::string> visible = scope.value_of("CUDA_VISIBLE_DEVICES");
  if (visible && !visible->empty() && visible->find('$') == std::string::npos)
    return std::to_string(std::count(visible->begin(), visible->end(), ',') + 1);
  return scope.value_of("SLURM_GPUS_ON_NODE");
}

}  // namespace

std::optional<std::string> printed_by(std::string_view command, const ShellScope& scope) {
  command = trim(command);
  if (command == "pwd") return ".";
  if (counts_cards(command)) return cards(scope);
  return script_folder(command);
}

}  // namespace membill::io

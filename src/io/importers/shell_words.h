// Launch scripts as a shell would split them: quotes, continuations, comments, variables with defaults, arrays, functions, and branches
// that the text itself decides. Nothing is ever executed: the text of a command substitution stands for itself.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/importers/variables.h"

namespace membill::io {

// Files that a script writes before it trains (cat > ds.json <<EOF), by the name that it gives them.
using WrittenFiles = std::map<std::string, std::string, std::less<>>;

// One command of a script.
struct ShellCommand {
  std::vector<std::string> words;  // without the assignments before it
  Variables variables;             // as they are set before it runs, its own assignments included
  std::shared_ptr<const WrittenFiles> files;
};

// The commands of `script` in the order in which it comes to them; those of functions that it never calls stand before all others. Of a
// loop one turn is taken, with the last value of its variable; a branch whose condition is not known is taken as it stands. A variable
// that is never set is left in the word as "$NAME". At most kMostCommands commands of kMostWords words in all are kept.
inline constexpr std::size_t kMostCommands = 10000;
inline constexpr std::size_t kMostWords = 100000;
// What a command hands to another shell (bash -c "...", eval "...") stands in its place.
[[nodiscard]] std::vector<ShellCommand> split_script(std::string_view script, Variables variables = {});
// The commands behind one that hands them to another shell; that command itself where it does not.
[[nodiscard]] std::vector<ShellCommand> split_command(const std::vector<std::string>& words);
// The same, with variables that are set already, and nested shells left as they are.
[[nodiscard]] std::vector<ShellCommand> split_one(std::string_view script, Variables variables);

}  // namespace membill::io

// What a run was seen to hold beside the caching allocator, kept in the user's own file of the card.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/preset_files.h"

namespace membill::io {

// Keys of a hardware file.
inline constexpr std::string_view kContextKey = "context_mib";
inline constexpr std::string_view kCommunicatorKey = "communicator_mib";

// Sets `key` of the card `short_name` to `mib` in hardware/ of the first folder of `dirs`, which is made when it is not there; the rest
// of the file is the user's own, else membill's. `source` joins the file's sources. Returns the file's path. Throws InputError when
// there is no folder, no such card, or the file cannot be written.
std::string keep_runtime_line(const DataDirs& dirs, const std::string& short_name, std::string_view key,
                              std::int64_t mib, const std::string& source);

}  // namespace membill::io

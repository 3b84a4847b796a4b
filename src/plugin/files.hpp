// Files of plug-ins: where they may be, and what the system's loader says.
#pragma once

#include <string>
#include <vector>

namespace vicinal::plugin {

/// A plug-in's file, or rather the names to try for it: what the environment's `variable` names, and nothing else;
/// without that `file` beside the library, then wherever the system looks.
std::vector<std::string> plugin_candidates(const char* variable, const char* file);
/// Whether the loader would find such a name; one without a folder is left to the system's search.
bool is_there(const std::string& path);
/// What the system's loader last said.
std::string loader_error();

}  // namespace vicinal::plugin

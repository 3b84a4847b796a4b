// `vicinal-bench papers km`: an iteration of k-means on the classical tools' data, from the first k rows until at most
// 0.1 % of the labels change: the serial tool's loop in float32, and ours on the CPU and on a device where one is
// taken.
#pragma once

#include <filesystem>

#include "command/papers.hpp"

namespace vicinal::cli {

/// Whether a folder has any file of the classical tools' data. False for the empty path.
bool has_classical_files(const std::filesystem::path& folder);

PapersPart measure_papers_km(const PapersOptions& options);

}  // namespace vicinal::cli

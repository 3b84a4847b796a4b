// The file of a LOF model: an index (ops/nearest/index_file.hpp) with the scores, k-distances and densities of its rows
// as further arrays, and the options as texts of its metadata.
#pragma once

#include "ops/nearest/index_file.hpp"
#include "vicinal/lof.hpp"

namespace vicinal::ops {

inline constexpr FileKind kLofFile = {"model", "a model of vicinal lof", "vicinal-lof", 1 << 24, true};

/// The result that a file's parts hold, for a table of n rows. Throws `bad_data` naming the file for parts that `save`
/// does not write. O(n ks) time and memory.
Lof read_lof(const std::filesystem::path& path, std::int64_t n, const ModelParts& parts);

}  // namespace vicinal::ops

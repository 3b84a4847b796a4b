// What an index file claims of its own table, compared with the table: a search that trusted a false claim would answer
// wrongly. The file's check sum says nothing of that, because whoever forges a claim writes the sum, too.
#pragma once

#include <filesystem>

#include "backend/nearest.hpp"
#include "ops/nearest/index_file.hpp"

namespace vicinal::ops {

/// Throws `bad_data` naming the file unless the groups are a partition of the rows, each ascending, the groups in the
/// order of their first rows. O(n).
void check_groups(const FileKind& kind, const std::filesystem::path& path, const kernels::Prepared& index);

/// Throws `bad_data` naming the file for a value that is not finite (with its row and column) or farther from the
/// center than `largest`, and for rows of one group that differ. O(n d).
void check_rows(const Context& ctx, const FileKind& kind, const std::filesystem::path& path,
                const kernels::Prepared& index);

}  // namespace vicinal::ops

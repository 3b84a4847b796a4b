// The files of the classical parallel k-means tools. In: lines `id x1 ... xD` parted by spaces, where the ids count up
// and are skipped, or int32 N, int32 D and N * D float32, little-endian. Out: NAME.cluster_centres, lines `cluster c1
// ... cD`, and NAME.membership, lines `row cluster`, both counted from 0.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "vicinal/io.hpp"
#include "vicinal/kmeans.hpp"

namespace vicinal::cli {

/// The table, where the file (gzip, xz or neither) is one of theirs by content: binary when its length is what its
/// header says, text when line 1 is numbers parted by spaces alone and the first column counts up from 0 or 1. Nothing
/// for any other file. Throws what `read_bytes` throws, `bad_data` naming file and line for such a text whose lines
/// differ in length or hold no numbers, `over_memory` for one beyond the limit.
std::optional<Table> read_classical(const Context& ctx, const std::filesystem::path& path);

/// Writes NAME.cluster_centres and NAME.membership; numbers are the shortest that read back as the same float64.
void write_classical(const Context& ctx, const std::string& name, const KMeans& found);

}  // namespace vicinal::cli

// A graph on its way into a file, batch by batch, with the bytes that write_graph writes of it at once. Of .npz, whose
// arrays stand one behind the other and whose headers tell their lengths, the arrays are spooled beside the output;
// .csv is written as it comes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "io/packed_file.hpp"
#include "io/spool.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::io {

enum class GraphFormat : std::uint8_t { npz, csv };

/// Throws `invalid_argument` for a path without a suffix that neighbors are written as.
GraphFormat graph_format_of(const std::filesystem::path& path);

/// Throws `invalid_argument` where ids, distances and offsets do not fit rows and k.
void check_arrays(const NeighborGraph& graph);

/// Lines `row,rank,id,distance`; the graph's row 0 is `first` there, or `numbers[first]` where rows have numbers.
void write_graph_lines(PackedFile& file, std::int64_t first, const NeighborGraph& graph,
                       std::span<const std::int64_t> numbers = {});
/// The line above them.
void write_graph_header(PackedFile& file);

class VICINAL_API GraphWriter {
 public:
  /// Creates the output, and throws what AtomicFile throws. Borrows the context, and the rows' `numbers` where they are
  /// not 0, 1, .. (as those of write_graph).
  GraphWriter(const Context& ctx, const std::filesystem::path& path, std::span<const std::int64_t> numbers = {});
  ~GraphWriter();
  GraphWriter(const GraphWriter&) = delete;
  GraphWriter& operator=(const GraphWriter&) = delete;

  /// The lists of the queries that come next, from `first` on, as compressed rows. Throws `invalid_argument` for
  /// others, `io`, `cancelled`.
  void add(std::int64_t first, const NeighborGraph& lists);
  /// The output is complete: see AtomicFile::commit.
  void commit();

 private:
  struct Spools {
    Spool ids;
    Spool distances;
    Spool offsets;

    Spools(const Context& ctx, const std::filesystem::path& path)
        : ids(ctx, path), distances(ctx, path), offsets(ctx, path) {}
  };

  PackedFile file_;
  std::unique_ptr<Spools> spools_;  // none: csv
  std::span<const std::int64_t> numbers_;
  std::int64_t rows_ = 0;
  std::int64_t neighbors_ = 0;
};

}  // namespace vicinal::io

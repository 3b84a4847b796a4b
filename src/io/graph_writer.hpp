// A graph on its way into a file, batch by batch, with the bytes that write_graph writes of it at once, in the same
// layouts. The arrays of an .npz follow each other and their headers hold their lengths, so they are spooled beside the
// output until all are known; .csv is written as it comes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "io/npz.hpp"
#include "io/packed_file.hpp"
#include "io/spool.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io {

enum class GraphFormat : std::uint8_t { npz, csv };

/// Throws `invalid_argument` for a path without a suffix that neighbors are written as.
GraphFormat graph_format_of(const std::filesystem::path& path);

/// Throws `invalid_argument` where ids, distances and offsets do not fit rows and k.
void check_arrays(const NeighborGraph& graph);

/// Throws `invalid_argument` where ids do not number `graph`'s rows, those from `first` on, or what its ids number.
void check_ids(std::int64_t first, const NeighborGraph& graph, const GraphWriteOptions& options);

/// Throws `invalid_argument` for a path, layout, numbers of rows and type of distances that do not go together.
void check_layout(const std::filesystem::path& path, const GraphWriteOptions& options);
/// A distance of query `row`. Throws `bad_data` where it is finite and beyond float32.
float distance_as_float(std::int64_t row, double distance);
/// Whether a matrix with these sizes has int32 indices, as scipy writes them.
bool fits_int32(std::int64_t rows, std::int64_t table_rows, std::int64_t neighbors) noexcept;

/// Lines `row,rank,id,distance`; the graph's row 0 is row `first` of all. Rows have the numbers and the ids, those of
/// GraphWriteOptions, that `options` says.
void write_graph_lines(PackedFile& file, std::int64_t first, const NeighborGraph& graph,
                       const GraphWriteOptions& options = {});
/// The line above them.
void write_graph_header(PackedFile& file);

class VICINAL_API GraphWriter {
 public:
  /// Creates the output. Borrows the context, and what `options` borrow. Throws `invalid_argument` as write_graph does,
  /// and what AtomicFile throws.
  GraphWriter(const Context& ctx, const std::filesystem::path& path, const GraphWriteOptions& options = {});
  ~GraphWriter();
  GraphWriter(const GraphWriter&) = delete;
  GraphWriter& operator=(const GraphWriter&) = delete;

  /// The lists of the queries that come next, from `first` on, as compressed rows. Throws `invalid_argument` for
  /// others, `bad_data` for distances beyond float32 where that is written, `io`, `cancelled`.
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

  void spool_distances(std::int64_t first, const NeighborGraph& lists);
  void write_lists();
  void write_matrix();
  void write_ids(NpzWriter& archive);

  const Context& ctx_;
  std::string path_;
  PackedFile file_;
  std::unique_ptr<Spools> spools_;  // none: csv
  GraphWriteOptions options_;
  std::int64_t rows_ = 0;
  std::int64_t table_rows_ = 0;
  std::int64_t neighbors_ = 0;
};

}  // namespace vicinal::io

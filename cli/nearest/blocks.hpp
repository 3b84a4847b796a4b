// --resume of `knn` and `radius`: the queries are searched in blocks, and the lists of each finished block are a part
// in a file (vicinal/parts.hpp). At the end the lists of all blocks are read in order. No list depends on the blocks.
// With several ranks each of them searches a block at a time, in the whole table, and rank 0 keeps the record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/resume_folder.hpp"
#include "nearest/neighbors_output.hpp"
#include "vicinal/communicator.hpp"
#include "vicinal/parts.hpp"

namespace vicinal::cli {

/// A search for all rows that are asked about.
struct WholeSearch {
  PartKind kind = PartKind::knn;
  std::vector<JobFact> facts;  ///< k or radius
  Bitmap filter = {};
  Plan plan;
  std::int64_t planned_rows = 0;  ///< that the plan is for, about; no block has more; 0: all
  /// Searches for some of the rows and writes their part.
  std::function<void(const TableView& queries, const PartOptions& place, const std::filesystem::path& path)> search;
};

class SearchBlocks {
 public:
  /// Opens the folder of --resume, with what an earlier run of the same search has finished. Throws as ResumeFolder,
  /// and for files in it that are not of this search. `ranks`: all of them make one, and call `run`; null: the process
  /// is alone.
  SearchBlocks(const Runtime& runtime, const NeighborsCommand& command, const NeighborTables& tables,
               const WholeSearch& whole, Communicator* ranks = nullptr);
  /// Searches for the rows that are left, in blocks that take about --resume-every seconds each.
  void run();
  /// The lists of rows [begin, end), or their counts, as a part of the search in the whole table. Throws `bad_data` for
  /// a file that is damaged, `over_memory`.
  NeighborPart part(const Context& ctx, std::int64_t begin, std::int64_t end) const;
  /// The lists of all rows, or their counts, in the order of the rows. Throws `bad_data` for a file that is damaged.
  RadiusSummary lists(const Context& ctx, const TakeLists& take) const;
  NeighborCounts counts(const Context& ctx) const;
  /// Rows that are asked about.
  [[nodiscard]] std::int64_t rows() const { return asked_.rows(); }
  /// The lists are written elsewhere: removes what the folder has.
  void finish();

 private:
  struct Block {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::string digest;  // of its file; empty while it is searched again
    bool is_there = false;
  };

  [[nodiscard]] std::vector<JobFact> facts() const;
  [[nodiscard]] std::filesystem::path file(const Block& block) const;
  void read_blocks();
  void cut_large_blocks();
  [[nodiscard]] std::int64_t neighbors(const Context& ctx, std::int64_t begin, std::int64_t end,
                                       const PartInfo& info) const;
  void share_blocks();
  void share_digests(const std::vector<std::size_t>& numbers);
  void search(const std::vector<std::size_t>& numbers);
  void save();
  [[nodiscard]] std::int64_t first_size() const;
  /// Shows the progress of reading a block's lists as that of reading all.
  void show_reading(const Block& block) const;
  [[nodiscard]] double share(std::int64_t row) const;
  [[nodiscard]] PartSource open(const Context& ctx, const Block& block) const;

  const Runtime& runtime_;
  const NeighborsCommand& command_;
  const NeighborTables& tables_;
  const WholeSearch& whole_;
  const TableView& asked_;
  Communicator alone_;
  Communicator& ranks_;
  std::optional<ResumeFolder> folder_;  // of rank 0
  std::vector<Block> blocks_;
  std::int64_t done_ = 0;  // rows
};

/// Bytes that reading the lists of blocks takes beside them.
constexpr std::uint64_t kBytesOfBlocks = std::uint64_t{64} << 20;

/// The k nearest rows of all rows, as `knn` returns them.
NeighborGraph nearest_of(const Context& ctx, const SearchBlocks& blocks, const Plan& plan, std::int64_t k,
                         double max_radius);

}  // namespace vicinal::cli

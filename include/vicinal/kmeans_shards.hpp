// k-means of a table whose rows are held elsewhere, such as by the workers of a cluster: one process iterates and asks
// questions, which whoever holds a shard answers (docs/contract.md, clause 12, shards; docs/distributed.md). Questions
// and answers are bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// A shard of a table, which answers the questions of `kmeans` below. An answer depends on the shard and the question
/// alone, not on earlier questions. So a question can be repeated, also to another object with the same rows.
///
/// It borrows table and weights, which must outlive it and not change, and holds a copy of the context, which is of the
/// CPU. One thread at a time. It keeps the centers and labels of its last answer, so that answering the next question
/// takes no more than an iteration of `kmeans`; another object first repeats the last assignment where a question is
/// about its labels.
class VICINAL_API KMeansShard {
 public:
  /// `shard` [rows, d] has the rows from `first_row` on of the whole table; `weights` [rows] are theirs, or empty: 1
  /// each. Throws `invalid_argument` for a table without rows and for weights that do not fit. O(rows) with weights.
  KMeansShard(const Context& ctx, const TableView& shard, std::int64_t first_row, std::span<const double> weights = {});
  /// Throws `bad_data` for bytes that are no question, and naming row and column (of the whole table) of NaN, infinity
  /// and values whose squared distances may overflow; `invalid_argument` for a question about another table;
  /// `over_memory` before work begins; `cancelled`. At most the time of two iterations, O(rows d clusters); of a
  /// question about first centers as many of these as there are candidates. Memory as `kmeans` of the shard.
  std::vector<std::byte> answer(std::span<const std::byte> question);

  KMeansShard(KMeansShard&&) noexcept = default;
  KMeansShard& operator=(KMeansShard&&) noexcept = default;
  KMeansShard(const KMeansShard&) = delete;
  KMeansShard& operator=(const KMeansShard&) = delete;
  ~KMeansShard() = default;

 private:
  struct State;
  std::shared_ptr<State> state_;  // of which nobody else has one
};

/// Passes a question to all shards, and returns their answers in the order of the shards. Called on the thread that
/// called `kmeans`. If it throws, `kmeans` ends with this exception.
using AskShards = std::function<std::vector<std::vector<std::byte>>(std::span<const std::byte> question)>;

/// `kmeans` of a table of d columns that is divided into shards, with the same bits as of the whole table. Shard s has
/// `shard_rows[s]` rows, after those of the shards before it. `options.weights` are those of all rows, as are labels.
///
/// An iteration asks one question: 8 k d bytes for the centers and 24 d for the grid of sums, and 16 for each shard. An
/// answer has 8 k (1 + w + d l) bytes for the sums (l = 2 or 3 integers for most data, w, 0 without weights, a weight),
/// and a label of 1, 2 or 4 bytes for each row. The inertia, and rows for empty clusters, take one question more.
/// k-means|| takes about 7, whose answers have 12 bytes for each row.
///
/// Throws as `kmeans`; `invalid_argument` for k-means++, which would take a question for each center, for mini-batches
/// and checkpoints, and for a context of a device; `bad_data` for bytes that are no answer. O(n + k d l) an iteration,
/// beside what the shards do. Memory: 25 bytes for each row, and O(k d l).
VICINAL_API KMeans kmeans(const Context& ctx, std::span<const std::int64_t> shard_rows, std::int64_t cols,
                          const AskShards& ask, const KMeansOptions& options);

}  // namespace vicinal

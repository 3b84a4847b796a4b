// classify: the vote of the k nearest rows, in one call (kNN classification; the GS paper).
#pragma once

#include <span>
#include <vector>

#include "vicinal/knn.hpp"
#include "vicinal/vote.hpp"

namespace vicinal {

struct Classification {
  std::vector<Vote> votes;      ///< one an output
  std::int64_t rows = 0;        ///< m
  std::int64_t table_rows = 0;  ///< n
  Plan plan;
  SearchStats stats;
};

/// What `vote` makes of the graph that `knn` finds, bit for bit, without the graph: on a CUDA context neither lists nor
/// weights leave the device. Custom weights are a function of the host's: with them lists are found on the device and
/// the vote is taken on the host, which the plan says. Labels number the table's rows. Throws what `knn` and `vote`
/// throw. Cost of `knn`, and O(m k) more.
VICINAL_API Classification classify(const Context& ctx, const Index& index, const TableView& queries,
                                    std::span<const Labels> outputs, const KnnOptions& options,
                                    const VoteOptions& voting = {});
VICINAL_API Classification classify(const Context& ctx, const TableView& table, const TableView& queries,
                                    std::span<const Labels> outputs, const KnnOptions& options,
                                    const VoteOptions& voting = {});

/// What `vote` makes of the graph that `radius` finds. A query without neighbors has the code -1: what an outlier is to
/// be called is the caller's choice. Throws what `radius` and `vote` throw.
VICINAL_API Classification classify_radius(const Context& ctx, const Index& index, const TableView& queries,
                                           std::span<const Labels> outputs, const RadiusOptions& options,
                                           const VoteOptions& voting = {});
VICINAL_API Classification classify_radius(const Context& ctx, const TableView& table, const TableView& queries,
                                           std::span<const Labels> outputs, const RadiusOptions& options,
                                           const VoteOptions& voting = {});

}  // namespace vicinal

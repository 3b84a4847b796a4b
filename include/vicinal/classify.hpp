// classify: search and vote in one call (k-nearest-neighbor classification).
#pragma once

#include <span>
#include <vector>

#include "vicinal/knn.hpp"
#include "vicinal/radius_batches.hpp"
#include "vicinal/vote.hpp"

namespace vicinal {

struct Classification {
  std::vector<Vote> votes;      ///< one per output
  std::int64_t rows = 0;        ///< m
  std::int64_t table_rows = 0;  ///< n
  Plan plan;
  SearchStats stats;
};

/// The vote of the k nearest rows for each query, with the bits of `knn` followed by `vote`. `outputs` are the labels
/// of the table's rows, each [n]. With a CUDA context neither lists nor weights leave the device. The exception is
/// custom weights, which are a function on the host: then the device finds the lists, and the host counts the votes.
/// The plan says which.
///
/// Throws `invalid_argument` for options outside their domain, queries of another width than the table, labels that are
/// not as many as the table's rows, weights by distance with inner_product, and custom weights that are negative or not
/// finite, `bad_data` for NaN, infinity and distances that overflow, `over_memory` before work begins, `cancelled`.
/// Cost of `knn`, and O(m k) for each output; the same bits for every thread count, instruction set and device.
VICINAL_API Classification classify(const Context& ctx, const Index& index, const TableView& queries,
                                    std::span<const Labels> outputs, const KnnOptions& options,
                                    const VoteOptions& voting = {});
VICINAL_API Classification classify(const Context& ctx, const TableView& table, const TableView& queries,
                                    std::span<const Labels> outputs, const KnnOptions& options,
                                    const VoteOptions& voting = {});

/// The vote of all rows within a radius for each query, with the bits of `radius` followed by `vote`. A query without
/// neighbors gets the code -1; the caller decides how to label it. `watch`, if not empty, receives the lists batch by
/// batch as from `radius_batches`, after their votes are counted.
///
/// Throws `invalid_argument` for options outside their domain, queries of another width than the table, labels that are
/// not as many as the table's rows, weights by distance with inner_product, and custom weights that are negative or not
/// finite, `bad_data` for NaN, infinity and distances that overflow, `over_memory` as `radius_batches` does,
/// `cancelled`. Cost of `radius_batches`, and O(neighbors) for each output.
VICINAL_API Classification classify_radius(const Context& ctx, const Index& index, const TableView& queries,
                                           std::span<const Labels> outputs, const RadiusOptions& options,
                                           const VoteOptions& voting = {}, const TakeLists& watch = {});
VICINAL_API Classification classify_radius(const Context& ctx, const TableView& table, const TableView& queries,
                                           std::span<const Labels> outputs, const RadiusOptions& options,
                                           const VoteOptions& voting = {});

}  // namespace vicinal

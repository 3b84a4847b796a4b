// Checks that more than one operation makes at the door (contract clauses 6 and 9).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "vicinal/context.hpp"
#include "vicinal/table.hpp"
#include "vicinal/vote.hpp"

namespace vicinal {

/// Throws `invalid_argument` for a table without rows or columns, and what `check_memory` throws.
void check_table(const Context& ctx, const TableView& table, std::string_view name);
/// Throws `device_unavailable` for a table that lies where the context's device cannot read.
void check_memory(const Context& ctx, const TableView& table, std::string_view name);

/// A graph may come from anywhere: throws `invalid_argument` where its arrays do not fit together. `operation` begins
/// the sentence.
void check_graph(const NeighborGraph& graph, std::string_view operation);

/// Throws `invalid_argument` for labels that do not number the table's rows, or codes outside their classes.
void check_labels(const Labels& labels, std::int64_t table_rows);
/// Throws `invalid_argument` for weights that the metric's distances cannot give, or a function that is missing;
/// `operation` begins the sentence.
void check_weights(Weighting weights, const WeightFn& custom, Metric metric, std::string_view operation);
/// The same for an operation on a graph, whose neighbors may have weights that are given: one each.
void check_weights(const NeighborGraph& graph, Weighting weights, const WeightFn& custom, std::span<const double> given,
                   std::string_view operation);
/// Bytes of the votes of m queries, and of the totals that they are counted with.
std::uint64_t vote_bytes(const Context& ctx, std::int64_t m, std::span<const Labels> outputs,
                         const VoteOptions& options);
/// Votes with room for m queries.
std::vector<Vote> make_votes(std::int64_t m, std::span<const Labels> outputs, const VoteOptions& options);

}  // namespace vicinal

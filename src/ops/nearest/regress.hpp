// Targets of a regression: checked once, and averaged as often as there are neighborhoods (contract clause 14).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vicinal/regress.hpp"

namespace vicinal::ops {

/// [n, outputs], widened to float64 and finite.
struct Targets {
  std::vector<double> values;
  std::int64_t rows = 0;
  std::int64_t outputs = 0;
};

/// What can be said from shapes: throws as `average` does.
void check_targets(const TableView& targets, std::int64_t table_rows);
/// Bytes of the targets as they are kept.
std::uint64_t target_bytes(const TableView& targets);
/// Throws `bad_data` naming row and column of a target that is not finite.
Targets read_targets(const Context& ctx, const TableView& targets, std::int64_t table_rows);

/// Writes the means of each row's neighbors to `means` [graph.rows, outputs]. The graph has been checked, but for its
/// ids; `operation` begins sentences, which name row i as `first` + i.
void average(const Context& ctx, const NeighborGraph& graph, const Targets& targets, const RegressOptions& options,
             std::string_view operation, std::int64_t first, std::span<double> means);
std::vector<double> average(const Context& ctx, const NeighborGraph& graph, const Targets& targets,
                            const RegressOptions& options, std::string_view operation);

}  // namespace vicinal::ops

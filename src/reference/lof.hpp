// The outlier scores by the letter of docs/contract.md, clause 13: whole rankings, a sum for every number. Shares no
// code with the library.
#pragma once

#include <span>
#include <vector>

#include "reference/reference.hpp"
#include "vicinal/lof.hpp"

namespace vicinal::reference {

/// What `vicinal::lof` must return but for plan, statistics and times; a score that is NaN must be refused. `within`:
/// the table ranked within itself, by the metric of the options. Fields that `novelty` needs are there whether it is
/// asked for or not.
Lof lof(const TableView& table, const Ranking& within, const LofOptions& options);
/// The same of a graph's lists, of which the first k count, of CSR all. `table` may be null but for ldof and the cofs.
Lof lof(const NeighborGraph& graph, const TableView* table, const LofOptions& options);

/// Scores of other rows; `model` is a result of `lof`, `across` the queries ranked among the table's rows.
std::vector<double> novelty(const TableView& table, const Lof& model, const TableView& queries, const Ranking& across);

/// The threshold above which a share of these scores lies.
double threshold_of(std::span<const double> scores, double contamination);

}  // namespace vicinal::reference

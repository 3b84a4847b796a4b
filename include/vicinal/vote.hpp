// vote: labels of the neighbors to labels of the queries (k-nearest-neighbor classification).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"

namespace vicinal {

/// Labels of one output, encoded: class c of row i is codes[i]; classes are sorted ascending
/// (integers by value, strings by byte), so "the smaller label" is the smaller code.
struct VICINAL_API Labels {
  std::variant<std::vector<std::int64_t>, std::vector<std::string>> classes;
  std::vector<std::int32_t> codes;  ///< [n]

  [[nodiscard]] std::int64_t class_count() const noexcept;
  /// The class as text. Throws `invalid_argument` for a code that is not there (-1 included).
  [[nodiscard]] std::string name_of(std::int64_t code) const;
  [[nodiscard]] bool is_text() const noexcept { return std::holds_alternative<std::vector<std::string>>(classes); }
};

/// Throws `bad_data` for an empty list or more than 2^31 - 1 classes.
VICINAL_API Labels encode_labels(std::span<const std::int64_t> values);
VICINAL_API Labels encode_labels(std::span<const std::string> values);

/// Weights of one query's neighbors from their distances (same length, in the order of the list). Must be finite and
/// not negative.
using WeightFn = std::function<void(std::span<const double> distances, std::span<double> weights)>;

enum class Weighting : std::uint8_t {
  uniform,
  /// 1 / distance, rounded. Neighbors at distance 0 take all the weight, equally; a distance below 2^-960 counts as 0,
  /// so that no sum overflows. Not for inner_product, whose distances may be negative.
  distance,
  custom,
  given,  ///< of `vote` and `average`, which have a graph that weights can be aligned with
};

struct VoteOptions {
  Weighting weights = Weighting::uniform;
  WeightFn custom = {};        ///< for Weighting::custom; called on several threads at once
  bool probabilities = false;  ///< also return the share of the weight of each class
  /// For Weighting::given: a weight for each of graph.ids, in the same places ([m, k] or CSR); finite and not negative.
  std::span<const double> given = {};
};

/// The vote of one output.
struct Vote {
  std::vector<std::int32_t> codes;  ///< [m] winning class; ties to the smaller label; -1 for a query without neighbors
  /// [m, classes] when asked for: weight of the class / weight of all. A row without neighbors or weight is all 0.
  std::vector<double> probabilities;
  std::int64_t class_count = 0;
};

/// For each query of a graph the label with the largest weight among its neighbors, ties to the smaller label. Weights
/// are added in rank order in float64; neighbors that all weigh 0 tie. O(m k) time, O(m (k + classes)) with
/// probabilities; the same bits for every thread count. Throws `invalid_argument` when labels do not number the graph's
/// table rows, when the graph's arrays do not fit together, for weights by distance with inner_product, for given
/// weights of another number than neighbors, and for custom or given weights that are negative or not finite (or whose
/// sum is not), naming the query row; `over_memory` when the result does not fit.
VICINAL_API Vote vote(const Context& ctx, const NeighborGraph& graph, const Labels& labels,
                      const VoteOptions& options = {});
/// One vote per output; weights are computed once. Throws as the function for one output.
VICINAL_API std::vector<Vote> vote(const Context& ctx, const NeighborGraph& graph, std::span<const Labels> outputs,
                                   const VoteOptions& options = {});

}  // namespace vicinal

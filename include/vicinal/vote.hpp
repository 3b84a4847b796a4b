// vote: predicts labels of queries from the labels of their neighbors (k-nearest-neighbor classification;
// docs/contract.md, clause 4).
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

/// Encoded labels of one output: codes[i] is the class of row i, an index into `classes`. Classes are in ascending
/// order (integers by value, strings by byte), so "the smaller label" is the smaller code.
struct VICINAL_API Labels {
  std::variant<std::vector<std::int64_t>, std::vector<std::string>> classes;
  std::vector<std::int32_t> codes;  ///< [n]

  [[nodiscard]] std::int64_t class_count() const noexcept;
  /// The class of a code, as text. Throws `invalid_argument` for a code outside [0, class_count()), such as -1.
  [[nodiscard]] std::string name_of(std::int64_t code) const;
  [[nodiscard]] bool is_text() const noexcept { return std::holds_alternative<std::vector<std::string>>(classes); }
};

/// Encodes labels [n]. Throws `bad_data` for an empty list or more than 2^31 - 1 classes. O(n log n) time.
VICINAL_API Labels encode_labels(std::span<const std::int64_t> values);
VICINAL_API Labels encode_labels(std::span<const std::string> values);

/// Computes the weights of one query's neighbors from their distances. Both spans have the same length, in the order of
/// the list. Weights must be finite and not negative.
using WeightFn = std::function<void(std::span<const double> distances, std::span<double> weights)>;

enum class Weighting : std::uint8_t {
  uniform,
  /// 1 / distance, rounded. If there are neighbors at distance 0, only these count, equally; a distance below 2^-960
  /// counts as 0, so that no sum overflows. Not for inner_product, whose distances may be negative.
  distance,
  custom,
  given,  ///< of `vote` and `average`, which have a graph that weights can be aligned with
};

struct VoteOptions {
  Weighting weights = Weighting::uniform;
  WeightFn custom = {};        ///< for Weighting::custom; called on several threads at once
  bool probabilities = false;  ///< also return each class's fraction of the weight
  /// For Weighting::given: a weight for each of graph.ids, in the same places ([m, k] or CSR); finite and not negative.
  std::span<const double> given = {};
};

/// The vote of one output.
struct Vote {
  std::vector<std::int32_t> codes;  ///< [m] winning class; ties to the smaller label; -1 for a query without neighbors
  /// [m, class_count] with VoteOptions::probabilities, else empty: weight of the class / weight of all neighbors. A row
  /// without neighbors or without weight is all 0.
  std::vector<double> probabilities;
  std::int64_t class_count = 0;
};

/// For each query of a graph, the label with the largest sum of weights among its neighbors, ties to the smaller label.
/// Weights are added in rank order in float64; if all weights are 0, all labels of the neighbors tie. O(m k) time, O(m
/// (k + classes)) with probabilities; the same bits for every thread count. Throws `invalid_argument` when labels are
/// not as many as the graph's table rows, when the graph's arrays do not fit together, for weights by distance with
/// inner_product, for given weights of another number than neighbors, and for custom or given weights that are negative
/// or not finite (or whose sum is not), naming the query row; `over_memory` if the result does not fit.
VICINAL_API Vote vote(const Context& ctx, const NeighborGraph& graph, const Labels& labels,
                      const VoteOptions& options = {});
/// One vote per output; weights are computed once. Throws as the function for one output.
VICINAL_API std::vector<Vote> vote(const Context& ctx, const NeighborGraph& graph, std::span<const Labels> outputs,
                                   const VoteOptions& options = {});

}  // namespace vicinal

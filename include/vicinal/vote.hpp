// vote: labels of the neighbors to labels of the queries (kNN classification; the GS paper, step 5).
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"

namespace vicinal {

/// Labels of one output, encoded: class c of row i is codes[i]; classes are sorted ascending
/// (integers by value, strings by byte), so "the smaller label" is the smaller code.
struct Labels {
  std::variant<std::vector<std::int64_t>, std::vector<std::string>> classes;
  std::vector<std::int32_t> codes;  ///< [n]

  [[nodiscard]] std::int64_t class_count() const noexcept;
  /// The class as text.
  [[nodiscard]] std::string name_of(std::int64_t code) const;
  [[nodiscard]] bool is_text() const noexcept { return std::holds_alternative<std::vector<std::string>>(classes); }
};

/// Throws `bad_data` for an empty list or more than 2^31 - 1 classes.
VICINAL_API Labels encode_labels(std::span<const std::int64_t> values);
VICINAL_API Labels encode_labels(std::span<const std::string> values);

/// Weights of one query's neighbors from their distances (same length, (key, id) order). Must be finite and not negative.
using WeightFn = std::function<void(std::span<const double> distances, std::span<double> weights)>;

enum class Weighting : std::uint8_t {
  uniform,
  distance,  ///< 1 / distance; neighbors at distance 0 take all the weight, equally
  custom,
};

struct VoteOptions {
  Weighting weights = Weighting::uniform;
  WeightFn custom = {};        ///< for Weighting::custom; called on several threads at once
  bool probabilities = false;  ///< also return the share of the weight of each class
};

/// The vote of one output.
struct Vote {
  std::vector<std::int32_t> codes;        ///< [m] winning class; ties to the smaller label; -1 for a query without neighbors
  std::vector<double> probabilities;      ///< [m, classes] when asked for; a row without neighbors is all 0
  std::int64_t class_count = 0;
};

/// One output. Cost O(m (k + classes)); weights are added in rank order in float64.
/// Throws `invalid_argument` when labels do not number the graph's table rows.
VICINAL_API Vote vote(const Context& ctx, const NeighborGraph& graph, const Labels& labels,
                      const VoteOptions& options = {});
/// Several outputs: one vote each, the weights computed once.
VICINAL_API std::vector<Vote> vote(const Context& ctx, const NeighborGraph& graph, std::span<const Labels> outputs,
                                   const VoteOptions& options = {});

}  // namespace vicinal

// The oracle of regression and of the choice of k, by the letter of docs/contract.md, clauses 14 and 15: every fold and
// every k is a problem of its own, answered by brute force. Shares no code with the library.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/reference.hpp"

namespace vicinal::reference {

/// The mean [m, outputs] of the targets [n, outputs] of each row's neighbors; `outlier` where there are none.
std::vector<double> average(const NeighborGraph& graph, std::span<const double> targets, std::int64_t outputs,
                            Weighting weights, double outlier, std::span<const double> given = {});

/// The fold of each row.
std::vector<std::int32_t> folds(std::span<const std::int32_t> codes, std::int64_t folds, std::uint64_t seed);

struct CrossValidated {
  std::int64_t k = 0;
  std::vector<double> scores;       ///< [ks]
  std::vector<double> fold_scores;  ///< [ks, folds]
};

/// What is validated: labels, or targets [n, outputs] where there are none.
struct Supervised {
  const Labels* labels = nullptr;
  std::span<const double> targets = {};
  std::int64_t outputs = 0;
  Weighting weights = Weighting::uniform;
};

/// `ranking`: of the table within itself.
CrossValidated cross_validate(const Ranking& ranking, std::span<const std::int32_t> fold_of, const Supervised& what,
                              std::int64_t k, std::int64_t k_to);

}  // namespace vicinal::reference

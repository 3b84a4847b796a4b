// cross_validate: chooses the number k of neighbors by cross-validation (docs/contract.md, clause 15). One search
// serves every k and every fold.
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/table.hpp"
#include "vicinal/vote.hpp"

namespace vicinal {

struct CrossValidateOptions {
  std::int64_t k = 1;      ///< the fewest neighbors tried
  std::int64_t k_to = 25;  ///< the most: k <= k_to <= rows outside the largest fold
  std::int64_t folds = 5;  ///< 2 <= folds <= n
  std::uint64_t seed = 0;  ///< seed of the draws that make the folds
  Weighting weights = Weighting::uniform;
  WeightFn custom = {};  ///< for Weighting::custom; called on several threads at once
  Metric metric = Metric::euclidean;
  double p = 2;
  Method method = Method::automatic;
  ScreenType screen = ScreenType::automatic;
};

struct CrossValidation {
  std::int64_t k = 0;  ///< the best number of neighbors; of several equally good ones the smallest
  double score = 0;    ///< the score of `k`
  /// [k_to - k + 1] the score of each k over all rows: the fraction of rows that are predicted correctly (larger is
  /// better), or the mean squared error of all targets (smaller is better).
  std::vector<double> scores;
  std::vector<double> fold_scores;       ///< [k_to - k + 1, folds] the same over the rows of each fold
  std::vector<std::int32_t> fold_of;     ///< [n]
  std::vector<std::int64_t> fold_sizes;  ///< [folds]
  std::int64_t searched = 0;             ///< neighbors per row that the search found
  std::int64_t topped_up = 0;            ///< rows with too few neighbors outside their fold, which were searched again
  Plan plan;
  SearchStats stats;
  double score_seconds = 0;  ///< after the search: removal of the own fold's rows, second searches, votes
};

/// Predicts the class of each row by a vote of its k nearest rows in the other folds, for every k of a range, and
/// returns the best k with all scores. Folds are stratified by class. Time: one search within the table for somewhat
/// more than k_to neighbors, and O(n k_to^2) for the votes; O(n k_to) memory. The same bits for every thread count,
/// instruction set and device. Throws what `knn` and `vote` throw, and `invalid_argument` for options outside their
/// domain.
VICINAL_API CrossValidation cross_validate(const Context& ctx, const Index& index, const Labels& labels,
                                           const CrossValidateOptions& options = {});
VICINAL_API CrossValidation cross_validate(const Context& ctx, const TableView& table, const Labels& labels,
                                           const CrossValidateOptions& options = {});
/// The same for targets [n, outputs], by the mean squared error of `average`. Folds are not stratified. A row whose
/// neighbors all have the weight 0 (custom weights) is an error.
VICINAL_API CrossValidation cross_validate(const Context& ctx, const Index& index, const TableView& targets,
                                           const CrossValidateOptions& options = {});
VICINAL_API CrossValidation cross_validate(const Context& ctx, const TableView& table, const TableView& targets,
                                           const CrossValidateOptions& options = {});

/// The plan of `cross_validate` without running it: method, bytes of memory and the reason. Throws `invalid_argument`
/// for options outside their domain and `bad_data` for NaN and infinity.
VICINAL_API Plan plan_cross_validate(const Context& ctx, const TableView& table,
                                     const CrossValidateOptions& options = {});

}  // namespace vicinal

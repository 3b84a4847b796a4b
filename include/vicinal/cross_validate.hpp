// cross_validate: how many neighbors to ask, by what each number of them says of rows that were left out
// (docs/contract.md, clause 15). One search serves every number and every fold.
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
  std::uint64_t seed = 0;  ///< of the folds
  Weighting weights = Weighting::uniform;
  WeightFn custom = {};  ///< for Weighting::custom; called on several threads at once
  Metric metric = Metric::euclidean;
  double p = 2;
  Method method = Method::automatic;
  ScreenType screen = ScreenType::automatic;
};

struct CrossValidation {
  std::int64_t k = 0;  ///< the best number of neighbors; of several the smallest
  double score = 0;    ///< by it
  /// [k_to - k + 1] for each number tried, over all rows: the share of rows that get their own class (more is better),
  /// or the mean squared error of all targets (less is better).
  std::vector<double> scores;
  std::vector<double> fold_scores;       ///< [k_to - k + 1, folds] the same over the rows of each fold
  std::vector<std::int32_t> fold_of;     ///< [n]
  std::vector<std::int64_t> fold_sizes;  ///< [folds]
  std::int64_t searched = 0;             ///< neighbors a row of the one search
  std::int64_t topped_up = 0;            ///< rows with too few of them outside their fold, which were searched again
  Plan plan;
  SearchStats stats;
  double score_seconds = 0;  ///< after the search: leaving out, topping up, votes
};

/// Each row is given the class that its k nearest rows of other folds vote for, for every k of a range; folds are
/// stratified by class. Cost of one search within the table for somewhat more than k_to neighbors, and O(n k_to^2) of
/// votes; O(n k_to) memory. Throws what `knn` and `vote` throw, and `invalid_argument` for options outside their
/// domain.
VICINAL_API CrossValidation cross_validate(const Context& ctx, const Index& index, const Labels& labels,
                                           const CrossValidateOptions& options = {});
VICINAL_API CrossValidation cross_validate(const Context& ctx, const TableView& table, const Labels& labels,
                                           const CrossValidateOptions& options = {});
/// The same of targets [n, outputs], by the mean squared error of `average`; folds are not stratified. A row whose
/// neighbors all weigh 0 (custom weights) is an error.
VICINAL_API CrossValidation cross_validate(const Context& ctx, const Index& index, const TableView& targets,
                                           const CrossValidateOptions& options = {});
VICINAL_API CrossValidation cross_validate(const Context& ctx, const TableView& table, const TableView& targets,
                                           const CrossValidateOptions& options = {});

/// What `cross_validate` would do and the memory it needs, without doing it.
VICINAL_API Plan plan_cross_validate(const Context& ctx, const TableView& table,
                                     const CrossValidateOptions& options = {});

}  // namespace vicinal

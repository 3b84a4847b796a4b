// The oracle of clause 21 of docs/contract.md, by its letter: pairs are counted one by one, distances are keys of all
// pairs. Shares no code with the library.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/metrics.hpp"

namespace vicinal::reference {

ClassificationScores classification_scores(std::span<const std::int32_t> truth, std::span<const std::int32_t> predicted,
                                           std::int64_t class_count);
std::vector<std::int64_t> confusion_matrix(std::span<const std::int32_t> truth, std::span<const std::int32_t> predicted,
                                           std::int64_t class_count);
/// O(n^2); both kinds of rows are there.
double roc_auc_score(std::span<const std::int32_t> truth, std::span<const double> scores);
RocCurve roc_curve(std::span<const std::int32_t> truth, std::span<const double> scores, bool drop_intermediate);
double average_precision_score(std::span<const std::int32_t> truth, std::span<const double> scores);
double precision_at_n_score(std::span<const std::int32_t> truth, std::span<const double> scores, std::int64_t n);
ClusteringScores clustering_scores(const Labeling& truth, const Labeling& predicted);
RegressionScore regression_score(std::span<const double> truth, std::span<const double> predicted);
/// O(n^2 d); rows [n, d].
SilhouetteScores silhouette_scores(const TableView& table, const Labeling& labeling, const SilhouetteOptions& options);

}  // namespace vicinal::reference

// Metrics: scores of predicted classes and values, of outlier scores and of clusters (docs/contract.md, clause 21).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// Precision, recall and F1, each in [0, 1].
struct PrecisionRecall {
  double precision = 0;  ///< correct / predicted; 0 if nothing was predicted
  double recall = 0;     ///< correct / support; 0 if the class does not occur
  double f1 = 0;         ///< 2 correct / (support + predicted); 0 if both are 0
};

/// Scores of one class.
struct ClassScore : PrecisionRecall {
  std::int64_t support = 0;    ///< rows of this class
  std::int64_t predicted = 0;  ///< rows that were predicted to be of this class
  std::int64_t correct = 0;    ///< rows that are both
};

struct ClassificationScores {
  std::int64_t rows = 0;
  std::int64_t correct = 0;
  double accuracy = 0;              ///< correct / rows
  std::vector<ClassScore> classes;  ///< [class_count]
  PrecisionRecall macro;            ///< means over the classes that occur in `truth`; its recall is balanced accuracy
  PrecisionRecall weighted;         ///< means over the classes, weighted by their support
  /// Cohen's kappa: 1 - (fraction of wrong rows) / (expected fraction for predictions drawn at random). Missing if the
  /// latter is 0, that is, if all rows are of one class and all are predicted as this class.
  std::optional<double> kappa;
  /// Matthews' correlation coefficient, in [-1, 1]; 0 if `truth` or `predicted` has one class only.
  double matthews = 0;
};

/// Scores of predicted classes: accuracy, precision, recall and F1 of each class and their means, kappa and Matthews'
/// coefficient. `truth` [m] and `predicted` [m] are codes in [0, class_count), as `encode_labels` and `vote` return
/// them. A prediction of -1 (a row without neighbors) is wrong. It counts for no class; for kappa and Matthews'
/// coefficient it is a class of its own.
///
/// O(m + class_count) time and memory, one thread. No result is NaN: a quotient by 0 is 0. Throws `invalid_argument`
/// for no rows, arrays of different lengths, codes outside their domain, and fewer than 1 or more than 2^31 - 1
/// classes; `over_memory`; `cancelled`.
VICINAL_API ClassificationScores classification_scores(const Context& ctx, std::span<const std::int32_t> truth,
                                                       std::span<const std::int32_t> predicted,
                                                       std::int64_t class_count);

/// The confusion matrix [class_count, class_count]: entry (i, j) counts the rows of class i that were predicted to be
/// of class j. Rows with a prediction of -1 are not counted. O(m + class_count^2) time and memory. Throws as
/// `classification_scores`.
VICINAL_API std::vector<std::int64_t> confusion_matrix(const Context& ctx, std::span<const std::int32_t> truth,
                                                       std::span<const std::int32_t> predicted,
                                                       std::int64_t class_count);

/// The area under the ROC curve: of all pairs of a positive and a negative row, the fraction in which the positive row
/// has the larger score; pairs of equal scores count half. `truth` [n] is 1 for a positive row (of outlier scores: an
/// outlier) and 0 for a negative one; `scores` [n] may be infinite.
///
/// Pairs are counted in whole numbers, so the result is the same for every order of the rows. O(n log n) time, 16 bytes
/// of memory per row, one thread. Throws `invalid_argument` for arrays of different lengths and other values of
/// `truth`, `bad_data` naming the row of a NaN, and if there is no positive or no negative row; `over_memory`;
/// `cancelled`.
VICINAL_API double roc_auc_score(const Context& ctx, std::span<const std::int32_t> truth,
                                 std::span<const double> scores);

/// The ROC curve. At each threshold, rows with at least this score are predicted to be positive.
struct RocCurve {
  std::vector<double> false_positive_rates;  ///< fraction of the negative rows, ascending from 0 to 1
  std::vector<double> true_positive_rates;   ///< fraction of the positive rows, ascending from 0 to 1
  std::vector<double> thresholds;            ///< descending: infinity, where no row is positive, then scores that occur
};

/// The ROC curve of scores, with a point for each score that occurs; `drop_intermediate` drops a point between two
/// equal steps of the curve (contract, clause 21), as scikit-learn does. `truth` and `scores` as for `roc_auc_score`.
/// O(n log n) time, 40 bytes of memory per row, one thread; the same for every order of the rows. Throws as
/// `roc_auc_score`.
VICINAL_API RocCurve roc_curve(const Context& ctx, std::span<const std::int32_t> truth, std::span<const double> scores,
                               bool drop_intermediate = true);

/// Average precision, the area under the steps of precision over recall: the mean, over the positive rows, of the
/// precision if all rows with at least this row's score are predicted to be positive. `truth` and `scores` as for
/// `roc_auc_score`; rows of equal scores count together.
///
/// The sum is exact. O(n log n) time, 16 bytes of memory per row, one thread; the same for every order of the rows.
/// Throws as `roc_auc_score`, but negative rows are not required.
VICINAL_API double average_precision_score(const Context& ctx, std::span<const std::int32_t> truth,
                                           std::span<const double> scores);

/// Precision at n: the fraction of positive rows among the n rows with the largest scores; n = 0: the number of
/// positive rows, for which precision and recall are equal. If several rows have the n-th score, the number expected in
/// a random order of them counts.
///
/// O(n log n) time, 16 bytes of memory per row, one thread; the same for every order of the rows. Throws as
/// `average_precision_score`, and `invalid_argument` for n below 0 and above the number of rows.
VICINAL_API double precision_at_n_score(const Context& ctx, std::span<const std::int32_t> truth,
                                        std::span<const double> scores, std::int64_t n = 0);

/// Errors of one output. Sums are exact and rounded once.
struct RegressionScore {
  double root_mean_squared_error = 0;
  double mean_absolute_error = 0;
  double max_error = 0;  ///< the largest magnitude of an error
  /// The coefficient of determination: 1 - (sum of squared errors) / (sum of squared deviations of `truth` from its
  /// mean). Missing if the latter sum is 0; minus infinity if it is below the range of float64.
  std::optional<double> r2;
};

/// Errors of predicted values, one entry for each output. `truth` and `predicted` are [m, outputs], row by row.
///
/// O(m outputs) time, one thread. No result is NaN, and the order of the rows makes no difference. Throws
/// `invalid_argument` for no rows, fewer than 1 output, arrays of different lengths or of a length that is no multiple
/// of `outputs`; `bad_data` naming row and output of a value that is not finite, or the output whose sums overflow;
/// `over_memory`; `cancelled`.
VICINAL_API std::vector<RegressionScore> regression_scores(const Context& ctx, std::span<const double> truth,
                                                           std::span<const double> predicted, std::int64_t outputs = 1);

/// The clusters of a table's rows.
struct Labeling {
  std::span<const std::int32_t> labels;  ///< [n] in [0, clusters); borrowed
  std::int64_t clusters = 0;             ///< from 1 to 2^31 - 1; some may have no rows
};

/// How well clusters agree with known classes. All scores except the first are in [0, 1].
struct ClusteringScores {
  /// The Rand index, adjusted for chance: 1 if both divisions are the same, about 0 if they are independent; at least
  /// -1/2.
  double adjusted_rand = 0;
  double normalized_mutual_info = 0;  ///< mutual information / mean of both entropies: the same number as `v_measure`
  double homogeneity = 0;             ///< mutual information / entropy of the classes; 1: clusters have one class each
  double completeness = 0;            ///< mutual information / entropy of the clusters; 1: each class is in one cluster
  double v_measure = 0;               ///< harmonic mean of homogeneity and completeness
};

/// Compares clusters with known classes (Hubert and Arabie 1985; Rosenberg and Hirschberg 2007). The numbers of the
/// labels do not matter: any two labelings of the same rows can be compared. Exchanging the two only exchanges
/// homogeneity and completeness.
///
/// Counts are whole numbers and sums are exact, so the order of the rows makes no difference. O(n log n) time, 8 bytes
/// of memory per row and per label, one thread. Throws `invalid_argument` for no rows, labelings of different lengths,
/// and labels outside their domain; `over_memory`; `cancelled`.
VICINAL_API ClusteringScores clustering_scores(const Context& ctx, const Labeling& truth, const Labeling& predicted);

struct SilhouetteOptions {
  Metric metric = Metric::euclidean;  ///< any but inner_product
  double p = 2;                       ///< exponent of minkowski
};

/// Silhouettes (Rousseeuw 1987). Let a be the mean distance of a row to the other rows of its cluster, and b the
/// smallest mean distance to the rows of another cluster. The silhouette is (b - a) / max(a, b), in [-1, 1]: near 1 if
/// the row fits its cluster, below 0 if another cluster is nearer. It is 0 for the only row of a cluster, if a = b = 0,
/// and if there is no other cluster.
struct SilhouetteScores {
  std::vector<double> samples;      ///< [n] of each row
  std::vector<double> clusters;     ///< [clusters] mean over the cluster's rows; 0 for a cluster without rows
  std::vector<std::int64_t> sizes;  ///< [clusters] rows
  std::optional<double> mean;       ///< over all rows; missing if fewer than two clusters have rows
};

/// The silhouettes of a table's rows [n, d]. Distances are those that `knn` reports, exact in float64.
///
/// O(n^2 (d + log n)) time, on all threads and on the context's device; of a large table take a sample first
/// (`sample_rows`). Memory O(n) per row of a block of at most 256 rows. The same bits for every thread count,
/// instruction set and device; no result is NaN. Reports progress as "silhouettes". Throws `invalid_argument` for
/// Metric::inner_product, an exponent that is not finite and at least 1, an empty table, labels that are not as many as
/// its rows or are outside [0, clusters); `bad_data` for NaN and infinity by row and column, and where distances or
/// their sums overflow; `over_memory` before work begins; `cancelled`.
VICINAL_API SilhouetteScores silhouette_scores(const Context& ctx, const TableView& table, const Labeling& labeling,
                                               const SilhouetteOptions& options = {});
/// Silhouettes of several labelings of one table, with one computation of the distances: [labelings]. O(n^2) time for
/// each labeling in addition to the distances. Memory, errors and determinism as for one labeling; throws
/// `invalid_argument` for no labeling, and names one by its position.
VICINAL_API std::vector<SilhouetteScores> silhouette_scores(const Context& ctx, const TableView& table,
                                                            std::span<const Labeling> labelings,
                                                            const SilhouetteOptions& options = {});

/// The maximum number of bytes that `silhouette_scores` takes for `labelings` labelings of at most `clusters` clusters
/// each. It depends only on the table's shape and element type. Throws `invalid_argument` for an empty table, counts
/// outside 1 to 2^31 - 1, and options outside their domain.
VICINAL_API std::uint64_t silhouette_bytes(const Context& ctx, const TableView& table, std::int64_t labelings,
                                           std::int64_t clusters, const SilhouetteOptions& options = {});

}  // namespace vicinal

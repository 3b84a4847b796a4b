// Metrics: how good predicted classes and values, outlier scores and clusters are (docs/contract.md, clause 21).
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
  double precision = 0;  ///< correct / predicted; 0 where nothing was predicted
  double recall = 0;     ///< correct / support; 0 where the class does not occur
  double f1 = 0;         ///< 2 correct / (support + predicted); 0 where both are 0
};

/// Of one class.
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
  /// Cohen's kappa, 1 - share of wrong rows / that share if predictions were drawn at random; none where the latter is
  /// 0: every row is of one class, and predicted to be.
  std::optional<double> kappa;
  double matthews = 0;  ///< Matthews' correlation coefficient, in [-1, 1]; 0 where either side has one class only
};

/// Accuracy, and precision, recall and F1 of each class with their means, of predicted classes; kappa and Matthews'
/// coefficient. `truth` [m] and `predicted` [m] are codes in [0, class_count), as `encode_labels` and `vote` give them;
/// a prediction of -1 (a row without neighbors) is wrong and counts for no class, but for kappa and Matthews as one of
/// its own.
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

/// The area under the ROC curve: the share of all pairs of a positive and a negative row in which the positive one has
/// the larger score; equal scores count half. `truth` [n] is 1 for a positive row (of outlier scores: an outlier) and 0
/// for a negative one; `scores` [n] may be infinite.
///
/// Pairs are counted in whole numbers, so that the result is the same for every order of the rows. O(n log n) time, 16
/// bytes of memory per row, one thread. Throws `invalid_argument` for arrays of different lengths and other values of
/// `truth`, `bad_data` naming the row of a NaN, and where there is no positive or no negative row; `over_memory`;
/// `cancelled`.
VICINAL_API double roc_auc_score(const Context& ctx, std::span<const std::int32_t> truth,
                                 std::span<const double> scores);

/// The ROC curve: what is found at each threshold, at and above which a row is said to be positive.
struct RocCurve {
  std::vector<double> false_positive_rates;  ///< share of the negative rows, ascending from 0 to 1
  std::vector<double> true_positive_rates;   ///< share of the positive rows, ascending from 0 to 1
  std::vector<double> thresholds;            ///< descending: infinity, where nothing is found, then scores that occur
};

/// The ROC curve of scores, with a point for each score that occurs; `drop_intermediate` leaves out those that the
/// curve passes in two equal steps (contract, clause 21), as scikit-learn's does. `truth` and `scores` as for
/// `roc_auc_score`. O(n log n) time, 40 bytes of memory per row, one thread; the same for every order of the rows.
/// Throws as `roc_auc_score`.
VICINAL_API RocCurve roc_curve(const Context& ctx, std::span<const std::int32_t> truth, std::span<const double> scores,
                               bool drop_intermediate = true);

/// Average precision, the area under the steps of precision over recall: the mean over the positive rows of the
/// precision at their scores. `truth` and `scores` as for `roc_auc_score`; equal scores are found together.
///
/// The sum is exact. O(n log n) time, 16 bytes of memory per row, one thread; the same for every order of the rows.
/// Throws as `roc_auc_score`, but there need be no negative row.
VICINAL_API double average_precision_score(const Context& ctx, std::span<const std::int32_t> truth,
                                           std::span<const double> scores);

/// Precision at n: the share of positive rows among the n with the largest scores; n = 0: as many as there are positive
/// rows, where it is the recall, too. Of rows with the n-th score it counts the number expected in a random order.
///
/// O(n log n) time, 16 bytes of memory per row, one thread; the same for every order of the rows. Throws as
/// `average_precision_score`, and `invalid_argument` for n below 0 and above the number of rows.
VICINAL_API double precision_at_n_score(const Context& ctx, std::span<const std::int32_t> truth,
                                        std::span<const double> scores, std::int64_t n = 0);

/// Of one output. Sums are exact and rounded once.
struct RegressionScore {
  double root_mean_squared_error = 0;
  double mean_absolute_error = 0;
  double max_error = 0;  ///< the largest magnitude of an error
  /// The coefficient of determination, 1 - sum of squared errors / sum of squared deviations of `truth` from its mean;
  /// none where the latter sum is 0. Below float64's range it is minus infinity.
  std::optional<double> r2;
};

/// Errors of predicted values, of each output. `truth` and `predicted` are [m, outputs], row by row.
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

/// How well clusters agree with known classes. But for the first, each is in [0, 1].
struct ClusteringScores {
  /// The Rand index less what is expected by chance: 1 where both are the same, about 0 where they have nothing to do
  /// with each other, and at least -1/2.
  double adjusted_rand = 0;
  double normalized_mutual_info = 0;  ///< mutual information / mean of both entropies: the same number as `v_measure`
  double homogeneity = 0;             ///< mutual information / entropy of the classes; 1: clusters have one class each
  double completeness = 0;            ///< mutual information / entropy of the clusters; 1: each class is in one cluster
  double v_measure = 0;               ///< harmonic mean of homogeneity and completeness
};

/// Compares clusters with known classes (Hubert and Arabie 1985; Rosenberg and Hirschberg 2007). Numbers of labels mean
/// nothing: any two labelings of the same rows can be compared, and exchanging them exchanges homogeneity and
/// completeness only.
///
/// Counts are whole numbers and sums exact, so that the order of the rows makes no difference. O(n log n) time, 8 bytes
/// of memory per row and per label, one thread. Throws `invalid_argument` for no rows, labelings of different lengths,
/// and labels outside their domain; `over_memory`; `cancelled`.
VICINAL_API ClusteringScores clustering_scores(const Context& ctx, const Labeling& truth, const Labeling& predicted);

struct SilhouetteOptions {
  Metric metric = Metric::euclidean;  ///< any but inner_product
  double p = 2;                       ///< of minkowski
};

/// Silhouettes (Rousseeuw 1987). With a the mean distance of a row to the others of its cluster and b the least mean
/// distance to another cluster, its silhouette is (b - a) / max(a, b), in [-1, 1]: near 1 where the row fits its
/// cluster, below 0 where another cluster is nearer. It is 0 for a row that is alone in its cluster, where a = b = 0,
/// and where there is no other cluster.
struct SilhouetteScores {
  std::vector<double> samples;      ///< [n] of each row
  std::vector<double> clusters;     ///< [clusters] mean over the cluster's rows; 0 for a cluster without rows
  std::vector<std::int64_t> sizes;  ///< [clusters] rows
  std::optional<double> mean;       ///< over all rows; none where fewer than two clusters have rows
};

/// The silhouettes of a table's rows [n, d]. Distances are those that `knn` reports, exact in float64.
///
/// O(n^2 (d + log n)) time, on all threads and on the context's device; for large tables take `sample_rows` first.
/// Memory O(n) per row of a block of at most 256 rows. The same bits for every thread count, instruction set and
/// device; no result is NaN. Reports progress as "silhouettes". Throws `invalid_argument` for Metric::inner_product, an
/// exponent that is not finite and at least 1, an empty table, labels that are not as many as its rows or are outside
/// [0, clusters); `bad_data` for NaN and infinity by row and column, and where distances or their sums overflow;
/// `over_memory` before work begins; `cancelled`.
VICINAL_API SilhouetteScores silhouette_scores(const Context& ctx, const TableView& table, const Labeling& labeling,
                                               const SilhouetteOptions& options = {});
/// Silhouettes of several labelings of one table, with one computation of the distances: [labelings]. O(n^2) time for
/// each labeling in addition to the distances. Memory, errors and determinism as for one labeling; throws
/// `invalid_argument` for no labeling, and names one by its position.
VICINAL_API std::vector<SilhouetteScores> silhouette_scores(const Context& ctx, const TableView& table,
                                                            std::span<const Labeling> labelings,
                                                            const SilhouetteOptions& options = {});

/// The bytes that `silhouette_scores` takes at most for a number of labelings of at most `clusters` clusters each; only
/// the table's shape and element type count. Throws `invalid_argument` for an empty table, counts outside 1 to 2^31 -
/// 1, and options outside their domain.
VICINAL_API std::uint64_t silhouette_bytes(const Context& ctx, const TableView& table, std::int64_t labelings,
                                           std::int64_t clusters, const SilhouetteOptions& options = {});

}  // namespace vicinal

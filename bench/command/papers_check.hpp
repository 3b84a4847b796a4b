// What `vicinal-bench papers` holds its answers against: src/reference, which shares no code with the library, or a
// sum in float64 that is as independent.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/reference.hpp"
#include "vicinal/cocluster.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lle.hpp"
#include "vicinal/lof.hpp"
#include "vicinal/sparse.hpp"

namespace vicinal::cli {

/// Answers that were checked, and those that are wrong.
struct Verdict {
  std::int64_t checked = 0;
  std::int64_t wrong = 0;

  Verdict& operator+=(const Verdict& other) {
    checked += other.checked;
    wrong += other.wrong;
    return *this;
  }
};

/// The lists of a sample of queries, ranked by brute force. O(sample n (d + log n)).
class ListCheck {
 public:
  /// `queries` null: rows of the table within itself. All are borrowed.
  ListCheck(const TableView& table, const TableView* queries, std::int64_t sample);

  /// Ids and the bits of every distance.
  [[nodiscard]] Verdict of(const NeighborGraph& graph) const;
  /// The sample's votes by the reference. O(sample k).
  [[nodiscard]] std::vector<std::int32_t> votes(std::int64_t k, const Labels& labels) const;
  /// Votes of the sample, given those of all queries.
  [[nodiscard]] Verdict of_votes(std::int64_t k, const Labels& labels, std::span<const std::int32_t> codes) const;
  /// Outlier scores of the sample among the rows; `within` holds the rows' own lists.
  [[nodiscard]] Verdict of_scores(const NeighborGraph& within, const LofOptions& options,
                                  std::span<const double> scores) const;

 private:
  const TableView& table_;
  std::vector<std::int64_t> rows_;  // of the sample
  std::vector<double> sample_;      // their values
  reference::Ranking ranking_;
};

/// Labels, and the number of iterations of the serial tool in float64; where these differ, because two centers are
/// equally far to rounding, the bits of the reference decide.
Verdict check_classical(const TableView& table, const KMeansOptions& options, const KMeans& found);
/// Labels of a walk from every member, and ones after each product by lengths of paths.
Verdict check_groups(const BipartiteEdges& edges, const Cocluster& found);
/// Each column as an eigenvector of M, with weights in long double over the lists of `graph`.
Verdict check_embedding(std::span<const double> rows, std::int64_t cols, const NeighborGraph& graph, const Lle& found);
/// Every element of a product, whose rows have about ten entries of at most 1.
Verdict check_product(const SparseView& a, std::span<const double> x, std::span<const double> product);

}  // namespace vicinal::cli

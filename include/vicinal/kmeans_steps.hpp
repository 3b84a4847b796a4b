// KMeansSteps: Lloyd's iterations one step at a time, for loops of the caller's own (docs/contract.md, clause 12).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

struct KMeansStepsOptions {
  std::int64_t clusters = 8;             ///< at least 1, below 2^24; more than there are rows is no error
  Metric metric = Metric::euclidean;     ///< or cosine: rows, centers and means are brought to length one
  std::span<const double> weights = {};  ///< [n] finite and at least 0, not all 0; empty: 1 each; copied
};

/// What an assignment did.
struct KMeansAssigned {
  std::int64_t changed = 0;  ///< rows whose label is another one than before; of the first since `start`, all
  std::int64_t empty = 0;    ///< clusters that have no row with a weight above 0
};

/// The steps of which `kmeans` consists, with the same bits, called by a loop that decides for itself what empty
/// clusters take and when to stop:
///
///   KMeansSteps steps(ctx, table, {.clusters = 8});
///   steps.start(centers);
///   while (steps.assign().changed > 0) steps.means();
///
/// Rows of weight 0 get labels and keys, and count for nothing else: not for sizes, means, inertia or `changed`.
///
/// It borrows the table, which must outlive it and not change, and holds a copy of the context. One thread at a time. A
/// function that throws while it computes leaves no labels: `start` begins anew; after a cancel the context's token
/// stays set. Memory O(n + k d) per thread beyond the table, as `kmeans` plans it, and a copy of the rows if the metric
/// is cosine or a weight is 0. Block sources are read again by every `assign`, `keys` and `inertia`, unless the device
/// can hold the whole table.
///
/// All functions throw `cancelled`, `over_memory`, and `invalid_argument` for arguments outside their domain and for a
/// step before those that it needs.
class VICINAL_API KMeansSteps {
 public:
  /// Throws `bad_data` naming row and column of NaN, infinity and values whose squared distances may overflow (with
  /// cosine also rows of zeros), and `over_memory` before work begins. O(n d).
  KMeansSteps(const Context& ctx, const TableView& table, const KMeansStepsOptions& options = {});

  /// Takes first centers [clusters, d] in host memory, which are copied, and forgets all labels. Throws `bad_data` for
  /// NaN, infinity and values too large. O(k d).
  void start(const TableView& centres);
  /// Puts other centers in the place of those that there are; labels stay. Throws as `start`. O(k d).
  void set_centres(const TableView& centres);
  /// Gives each row the label of its nearest center, ties to the smaller one. Needs `start`. O(n k d) at most.
  KMeansAssigned assign();
  /// Gives a row of a weight above 0 another label, until the next `assign`. Needs `assign`. O(d).
  void move_row(std::int64_t row, std::int64_t cluster);
  /// Replaces the center of each cluster that has rows by their mean; with cosine, one without a direction stays.
  /// Returns the shift: the sum of squared distances of the old centers to the new ones. Needs `assign`. O(k d).
  double means();

  [[nodiscard]] std::vector<double> centres() const;       ///< [clusters, d]; needs `start`
  [[nodiscard]] std::vector<std::int32_t> labels() const;  ///< [n]; needs `assign`, as do those that follow
  [[nodiscard]] std::vector<std::int64_t> sizes() const;   ///< [clusters] rows of a weight above 0
  /// [n] the squared distance of each row to the center of its label, as both are now; with cosine of both at length
  /// one, which is twice the cosine distance. O(n d).
  [[nodiscard]] std::vector<double> keys() const;
  /// The exact sum of weight times squared (or cosine) distance to the center of the label, as both are now. O(n d).
  [[nodiscard]] double inertia() const;

  [[nodiscard]] std::int64_t rows() const noexcept;
  [[nodiscard]] std::int64_t cols() const noexcept;
  [[nodiscard]] std::int64_t clusters() const noexcept;
  [[nodiscard]] const Plan& plan() const noexcept;

  KMeansSteps(KMeansSteps&&) noexcept = default;
  KMeansSteps& operator=(KMeansSteps&&) noexcept = default;
  KMeansSteps(const KMeansSteps&) = delete;
  KMeansSteps& operator=(const KMeansSteps&) = delete;
  ~KMeansSteps() = default;

 private:
  struct State;
  std::shared_ptr<State> state_;  // of which nobody else has one
};

}  // namespace vicinal

// The steps of k-means by the letter of docs/contract.md, clause 12. Shares no code with the library.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/kmeans_problem.hpp"
#include "vicinal/kmeans_steps.hpp"

namespace vicinal::reference {

/// What `vicinal::KMeansSteps` must say after the same calls.
class Steps {
 public:
  Steps(const TableView& table, const KMeansStepsOptions& options);

  void start(const TableView& centres);
  void set_centres(const TableView& centres);
  KMeansAssigned assign();
  void move_row(std::int64_t row, std::int32_t cluster) { labels_[static_cast<std::size_t>(row)] = cluster; }
  double means();

  [[nodiscard]] const std::vector<double>& centres() const { return centres_; }
  [[nodiscard]] const std::vector<std::int32_t>& labels() const { return labels_; }
  [[nodiscard]] std::vector<std::int64_t> sizes() const;
  [[nodiscard]] std::vector<double> keys() const;
  [[nodiscard]] double inertia() const { return inertia_of(weighted_, centres_, weighted_labels()); }

 private:
  [[nodiscard]] std::vector<std::int32_t> weighted_labels() const;

  Problem all_;
  Problem weighted_;                         // rows of a weight above 0
  std::vector<std::int64_t> weighted_rows_;  // their numbers
  std::vector<double> centres_;
  std::vector<std::int32_t> labels_;
};

}  // namespace vicinal::reference

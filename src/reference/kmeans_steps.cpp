// See kmeans_steps.hpp.
#include "reference/kmeans_steps.hpp"

#include <algorithm>

#include "reference/reference.hpp"

namespace vicinal::reference {

Steps::Steps(const TableView& table, const KMeansStepsOptions& options) {
  all_.rows = widen(table);
  all_.weights.assign(options.weights.begin(), options.weights.end());
  if (all_.weights.empty()) all_.weights.assign(static_cast<std::size_t>(table.rows()), 1);
  all_.n = table.rows();
  all_.d = table.cols();
  all_.k = options.clusters;
  all_.cosine = options.metric == Metric::cosine;
  if (all_.cosine) all_.rows = units(all_.rows, all_.d);
  std::vector<double> weights;
  for (std::int64_t i = 0; i < all_.n; ++i) {
    const double weight = all_.weights[static_cast<std::size_t>(i)];
    if (weight == 0) continue;
    weighted_rows_.push_back(i);
    weights.push_back(weight);
  }
  weighted_ = part_of(all_, weighted_rows_, weights);
}

void Steps::start(const TableView& centres) {
  set_centres(centres);
  labels_.assign(static_cast<std::size_t>(all_.n), -1);
}

void Steps::set_centres(const TableView& centres) {
  centres_ = all_.cosine ? units(widen(centres), all_.d) : widen(centres);
}

KMeansAssigned Steps::assign() {
  const std::vector<std::int32_t> before = weighted_labels();
  for (std::int64_t i = 0; i < all_.n; ++i) labels_[static_cast<std::size_t>(i)] = nearest(all_, i, centres_);
  const std::vector<std::int32_t> after = weighted_labels();
  KMeansAssigned done;
  for (std::size_t i = 0; i < after.size(); ++i) done.changed += after[i] != before[i] ? 1 : 0;
  const std::vector<std::int64_t> sizes = this->sizes();
  done.empty = std::count(sizes.begin(), sizes.end(), 0);
  return done;
}

double Steps::means() {
  return step_to_means(weighted_, weighted_labels(), centres_);
}

std::vector<std::int64_t> Steps::sizes() const {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(all_.k));
  for (const std::int32_t label : weighted_labels()) ++sizes[static_cast<std::size_t>(label)];
  return sizes;
}

std::vector<double> Steps::keys() const {
  std::vector<double> keys;
  for (std::int64_t i = 0; i < all_.n; ++i)
    keys.push_back(all_.key_to(i, centres_, labels_[static_cast<std::size_t>(i)]));
  return keys;
}

std::vector<std::int32_t> Steps::weighted_labels() const {
  std::vector<std::int32_t> labels;
  for (const std::int64_t row : weighted_rows_) labels.push_back(labels_[static_cast<std::size_t>(row)]);
  return labels;
}

}  // namespace vicinal::reference

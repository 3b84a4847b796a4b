// What the two halves of the k-means oracle share: rows, their weights, and draws (contract clause 12).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/reference.hpp"
#include "vicinal/kmeans.hpp"

namespace vicinal::reference {

/// Rows with a weight above 0, as they are compared.
struct Problem {
  std::vector<double> rows;
  std::vector<double> weights;
  std::int64_t n = 0;
  std::int64_t d = 0;
  std::int64_t k = 0;
  bool cosine = false;

  [[nodiscard]] std::span<const double> row(std::int64_t i) const {
    return std::span(rows).subspan(static_cast<std::size_t>(i * d), static_cast<std::size_t>(d));
  }
  [[nodiscard]] double key_to(std::int64_t i, std::span<const double> centres, std::int64_t c) const {
    return key(Metric::sqeuclidean, 2, row(i),
               centres.subspan(static_cast<std::size_t>(c * d), static_cast<std::size_t>(d)));
  }
};

/// Some rows of a problem, each as often as it is named, as a problem of their own.
Problem part_of(const Problem& problem, const std::vector<std::int64_t>& rows, const std::vector<double>& weights);
/// Rows at length one, as the cosine key wants them.
std::vector<double> units(const std::vector<double>& rows, std::int64_t d);

/// The label of row i: the smallest of the nearest centers.
std::int32_t nearest(const Problem& problem, std::int64_t i, std::span<const double> centres);
double inertia_of(const Problem& problem, std::span<const double> centres, std::span<const std::int32_t> labels);
/// Means in the place of centers, those of empty clusters left alone; returns the sizes.
std::vector<std::int64_t> make_means(const Problem& problem, std::span<const std::int32_t> labels,
                                     std::vector<double>& centres);
/// The same, and for cosine at length one; returns the shift.
double step_to_means(const Problem& problem, std::span<const std::int32_t> labels, std::vector<double>& centres);

/// The draws of a stream, one after the other.
struct Draws {
  std::uint64_t seed;
  std::uint64_t stream;
  std::uint64_t counter = 0;
  double next();
};

/// The first centers of a run, [k, d].
std::vector<double> first_centres(const Problem& problem, const KMeansOptions& options, std::int64_t run);

}  // namespace vicinal::reference

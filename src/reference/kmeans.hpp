// k-means by the letter of docs/contract.md, clause 12: every key of every row in every iteration, sums made anew each
// time. Also the serial algorithm of the classical parallel k-means tools, in float64. Shares no code with the library.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/kmeans.hpp"

namespace vicinal::reference {

/// The exact sum, rounded once.
double exact_sum(std::span<const double> terms);

/// What `vicinal::kmeans` must return: centers, labels, sizes, inertia, iterations, stopped and history.
KMeans kmeans(const TableView& table, const KMeansOptions& options);

/// The serial tool: the first k rows as centers, labels until at most `threshold` of them change or 500 loops are
/// over; plain sums in the order of the rows. Labels of the last assignment, centers made after it.
struct Classical {
  std::vector<double> centres;       ///< [k, d]
  std::vector<std::int32_t> labels;  ///< [n]
  std::int64_t loops = 0;
};
Classical classical_kmeans(const TableView& table, std::int64_t clusters, double threshold);

}  // namespace vicinal::reference

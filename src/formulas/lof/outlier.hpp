// What a neighborhood says of its row (contract clause 13), written once for host and device: sums, densities and
// ratios in one fixed order of IEEE operations. O(k) without allocation; to be compiled without contraction.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/distance.hpp"
#include "core/octet.hpp"
#include "vicinal/lof.hpp"

namespace vicinal::core {

/// Neighborhoods of rows, where they lie: k lists, or lists of their own lengths whose entries stand for several rows.
struct Neighborhoods {
  const std::int64_t* ids = nullptr;
  const double* distances = nullptr;
  const std::int64_t* offsets = nullptr;  ///< [rows + 1], or null: row p's begin at p * stride
  const std::int64_t* weights = nullptr;  ///< like ids; null: 1 each
  std::int64_t rows = 0;
  std::int64_t k = 0;  ///< entries of each row that count, where there are no offsets
  std::int64_t stride = 0;

  [[nodiscard]] VICINAL_HD std::int64_t begin_of(std::int64_t row) const noexcept {
    return offsets != nullptr ? offsets[row] : row * stride;
  }
  [[nodiscard]] VICINAL_HD std::int64_t size_of(std::int64_t row) const noexcept {
    return offsets != nullptr ? offsets[row + 1] - offsets[row] : k;
  }
};

/// Of one row.
struct Neighborhood {
  const std::int64_t* ids;
  const double* distances;
  const std::int64_t* weights;
  std::int64_t size;

  VICINAL_HD Neighborhood(const Neighborhoods& all, std::int64_t row) noexcept
      : ids(all.ids + all.begin_of(row)),
        distances(all.distances + all.begin_of(row)),
        weights(all.weights != nullptr ? all.weights + all.begin_of(row) : nullptr),
        size(all.size_of(row)) {}

  [[nodiscard]] VICINAL_HD double k_distance() const noexcept { return distances[size - 1]; }

  /// Rows in it.
  [[nodiscard]] VICINAL_HD double count() const noexcept {
    if (weights == nullptr) return static_cast<double>(size);
    std::int64_t rows = 0;
    for (std::int64_t i = 0; i < size; ++i) rows += weights[i];
    return static_cast<double>(rows);
  }

  /// Clause 1's sum of term(i). On a device eight lanes of a warp share a neighborhood, each with one of the
  /// accumulators, and all of them get the sum.
  template <class Term>
  [[nodiscard]] VICINAL_HD double sum(const Term& term) const noexcept {
#if defined(__CUDA_ARCH__)
    double a = 0;
    for (std::int64_t i = threadIdx.x % kLanes; i < size; i += kLanes) a = added(a, i, term(i));
    return sum_of_eight(a);
#else
    double a[kLanes] = {};
    for (std::int64_t i = 0; i < size; ++i) a[i % kLanes] = added(a[i % kLanes], i, term(i));
    return sum_of_lanes(a);
#endif
  }
  template <class Term>
  [[nodiscard]] VICINAL_HD double mean(const Term& term) const noexcept {
    return sum(term) / count();
  }

 private:
  [[nodiscard]] VICINAL_HD double added(double a, std::int64_t i, double term) const noexcept {
    return weights != nullptr ? std::fma(static_cast<double>(weights[i]), term, a) : a + term;
  }
};

VICINAL_HD constexpr double larger(double a, double b) noexcept {
  return a > b ? a : b;
}

/// What is added to a mean reach distance.
VICINAL_HD constexpr double added_reach(Duplicates duplicates) noexcept {
  return duplicates == Duplicates::sklearn ? 1e-10 : 0;
}

/// Mean density of others over one's own.
VICINAL_HD inline double density_ratio(Duplicates duplicates, double mean, double own) noexcept {
  if (!std::isinf(own)) return mean / own;
  if (duplicates == Duplicates::one) return std::isinf(mean) ? 1 : 0;
  return 1;
}

/// x / y where 0 / 0 is 1.
VICINAL_HD inline double ratio_or_one(double x, double y) noexcept {
  return x == 0 && y == 0 ? 1 : x / y;
}

/// What a row's neighborhood gives its neighbors' scores: density, or standard distance. `k_distances[o]` is that of
/// row o. Not of the scores that need the table.
VICINAL_HD inline double local_value(OutlierScore score, Duplicates duplicates, const Neighborhood& near,
                                     const double* k_distances) noexcept {
  switch (score) {
    case OutlierScore::lof: {
      const double reach =
          near.mean([&](std::int64_t i) { return larger(near.distances[i], k_distances[near.ids[i]]); });
      return 1 / (reach + added_reach(duplicates));
    }
    case OutlierScore::loop:
      return std::sqrt(near.mean([&](std::int64_t i) { return near.distances[i] * near.distances[i]; }));
    default:
      return 1 / (near.k_distance() + added_reach(duplicates));
  }
}

/// Whether a score is made of what `local_value`, or a chain, says of the neighbors.
VICINAL_HD constexpr bool compares_neighbors(OutlierScore score) noexcept {
  return score != OutlierScore::knn && score != OutlierScore::knn_weighted && score != OutlierScore::ldof;
}
/// Whether it is made of distances between neighbors.
VICINAL_HD constexpr bool needs_table(OutlierScore score) noexcept {
  return score == OutlierScore::ldof || score == OutlierScore::cof || score == OutlierScore::cof_pyod;
}
/// Whether what the neighbors say is a density, which may have no bound.
VICINAL_HD constexpr bool has_densities(OutlierScore score) noexcept {
  return score == OutlierScore::lof || score == OutlierScore::simplified_lof || score == OutlierScore::inflo;
}
VICINAL_HD constexpr bool is_chain(OutlierScore score) noexcept {
  return score == OutlierScore::cof || score == OutlierScore::cof_pyod;
}

/// The score of a row; of loop its PLOF. `own`: its local value, `local[o]`: that of row o. Not of ldof and inflo.
VICINAL_HD inline double row_score(OutlierScore score, Duplicates duplicates, const Neighborhood& near, double own,
                                   const double* local) noexcept {
  if (score == OutlierScore::knn) return near.k_distance();
  if (score == OutlierScore::knn_weighted) return near.sum([&](std::int64_t i) { return near.distances[i]; });
  const double mean = near.mean([&](std::int64_t i) { return local[near.ids[i]]; });
  if (score == OutlierScore::loop) return ratio_or_one(own, mean) - 1;
  if (is_chain(score)) return ratio_or_one(own, mean);
  return density_ratio(duplicates, mean, own);
}

/// The scores by every k of a range, given one after the other, joined. One that is NaN makes the result so.
class AcrossKs {
 public:
  VICINAL_HD explicit AcrossKs(AcrossK across) noexcept : across_(across) {}
  VICINAL_HD void take(double score) noexcept {
    if (across_ == AcrossK::mean) {
      a_[taken_ % kLanes] += score;
    } else if (taken_ == 0 || score != score || (across_ == AcrossK::max ? score > a_[0] : score < a_[0])) {
      a_[0] = score;
    }
    ++taken_;
  }
  [[nodiscard]] VICINAL_HD double result() const noexcept {
    return across_ == AcrossK::mean ? sum_of_lanes(a_) / static_cast<double>(taken_) : a_[0];
  }

 private:
  AcrossK across_;
  std::int64_t taken_ = 0;
  double a_[kLanes] = {};
};

}  // namespace vicinal::core

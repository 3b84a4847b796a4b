// What inverse iteration works on: two sets of tall vectors, wherever they lie, A and a factor of M = A'A. The host's
// is solver/smallest.cpp's own; a device's keeps its vectors there, and only small matrices come back.
#pragma once

#include <cstdint>
#include <vector>

#include "formulas/lle/iteration_set.hpp"
#include "solver/rows.hpp"
#include "solver/tall.hpp"

namespace vicinal::solver {

class Space {
 public:
  Space() = default;
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;
  virtual ~Space() = default;

  /// Rows of a vector.
  [[nodiscard]] virtual std::int64_t points() const = 0;
  [[nodiscard]] virtual std::int64_t width(Set set) const = 0;
  /// best: `width` random vectors (contract clause 8) without their means.
  virtual void start(std::int64_t width) = 0;
  /// set = M^-1 set, without means.
  virtual void solve(Set set) = 0;
  /// next = M best - best S^2.
  virtual void gradient(const std::vector<double>& values) = 0;
  /// x'next.
  virtual Small inner_with_next(Set x) = 0;
  /// next -= best c; and again without means, of which orthonormalizing vectors that all but depend on each other would
  /// make large ones of what rounding has left.
  virtual void subtract(const Small& c) = 0;
  /// set = set c.
  virtual void multiply(Set set, const Small& c) = 0;
  /// R of set = Q R.
  virtual Small triangle(Set set) = 0;
  /// R of A best = Q R.
  virtual Small triangle_of_rows() = 0;
  /// best = [best next].
  virtual void join() = 0;
  /// The first columns of best, in host memory.
  virtual Vectors fetch(std::int64_t width) = 0;
  /// At least M's norm (rows.hpp).
  virtual double norm_bound() = 0;
};

}  // namespace vicinal::solver

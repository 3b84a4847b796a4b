// The operator of locally linear embedding (contract clause 17): A, one block of rows a point, each block on the
// point's few columns. M = A'A is never formed: who needs a row of it adds it up from the blocks that hold the column.
#pragma once

#include <cstdint>
#include <vector>

#include "core/aligned.hpp"
#include "core/raw_vector.hpp"
#include "vicinal/context.hpp"

namespace vicinal::solver {

/// Points are numbered by 32 bits: a direct factor of more would not fit any machine (checked at the door).
using Point = std::int32_t;

/// A, for n points. Block i is rows [first[i], first[i + 1]) on the `width` columns cols[i * width ..].
struct LocalRows {
  Point points = 0;
  std::int64_t width = 0;
  core::RawVector<Point> cols;          ///< [n, width], distinct within a block
  core::RawVector<std::int64_t> first;  ///< [n + 1]
  core::RawVector<double> values;       ///< [first[n], width]

  [[nodiscard]] std::int64_t rows() const noexcept { return first.back(); }
};

/// Puts the columns of each block, and its values with them, in ascending order. O(entries log width).
void sort_columns(const Context& ctx, LocalRows& a);

/// For each point the blocks that have it as a column, and where in the block it stands, by ascending block.
struct Incidence {
  core::RawVector<std::int64_t> first;  ///< [n + 1]
  core::RawVector<Point> blocks;        ///< [n * width]
  core::RawVector<std::int32_t> at;     ///< [n * width]
};
Incidence incidence_of(const Context& ctx, const LocalRows& a);
/// The same without `at`.
Incidence blocks_of(const Context& ctx, const LocalRows& a);

/// Vectors side by side: [n, width], row-major.
struct Vectors {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  core::RawVector<double> values;  // on large pages: a vector of millions of points comes and goes many times

  Vectors() = default;
  Vectors(std::int64_t n, std::int64_t q) : rows(n), width(q), values(static_cast<std::size_t>(n * q)) {}
  Vectors(const Vectors&) = delete;
  Vectors& operator=(const Vectors&) = delete;
  Vectors(Vectors&&) = default;
  Vectors& operator=(Vectors&&) = default;
  ~Vectors() = default;
  /// Takes another shape, in the same memory where that is enough; what the values are then is anything.
  void reshape(std::int64_t n, std::int64_t q) {
    const auto size = static_cast<std::size_t>(n * q);
    if (size > values.capacity()) values = core::RawVector<double>();
    values.resize(size);
    rows = n;
    width = q;
  }
  double* row(std::int64_t i) noexcept { return values.data() + i * width; }
  [[nodiscard]] const double* row(std::int64_t i) const noexcept { return values.data() + i * width; }
};

/// Points of one task: fixed, so that no sum depends on who adds it (clause 4).
inline constexpr std::int64_t kTaskPoints = 4096;

/// Writes rows of A x for the blocks [begin, end): [first[end] - first[begin], x.width].
void apply_blocks(const Context& ctx, const LocalRows& a, const Vectors& x, Point begin, Point end, double* out);
/// y = A x.
void apply(const Context& ctx, const LocalRows& a, const Vectors& x, Vectors& y);
/// y = A' x.
void apply_transposed(const Context& ctx, const LocalRows& a, const Incidence& in, const Vectors& x, Vectors& y);

/// The largest sum of magnitudes of a row of A times that of a column: at least the greatest singular value squared.
double norm_bound(const Context& ctx, const LocalRows& a, const Incidence& in);

}  // namespace vicinal::solver

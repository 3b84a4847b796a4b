// A sparse matrix by compressed rows, and what of it a Krylov method needs: A of locally linear embedding and its
// transpose, each with rows of its own, so that both products read along memory (contract clause 17).
#pragma once

#include <cstdint>
#include <vector>

#include "core/raw_vector.hpp"
#include "solver/rows.hpp"
#include "vicinal/context.hpp"

namespace vicinal::solver {

struct Csr {
  std::int64_t cols = 0;
  core::RawVector<std::int64_t> first;  ///< [rows + 1]
  core::RawVector<Point> index;         ///< [entries] columns, ascending within a row of a transpose
  core::RawVector<double> values;       ///< [entries]

  [[nodiscard]] std::int64_t rows() const noexcept { return static_cast<std::int64_t>(first.size()) - 1; }
  [[nodiscard]] std::int64_t entries() const noexcept { return static_cast<std::int64_t>(index.size()); }
};

/// The rows of A, as blocks have them. Rows must be numbered by 32 bits.
Csr csr_of(const LocalRows& a);
/// Its transpose. O(entries).
Csr transposed(const Csr& a);
/// Bytes of A and its transpose.
std::uint64_t csr_bytes(const LocalRows& a);

/// y = scale A x + also also_x + own y; x [a.cols, q], y and also_x [a.rows, q].
struct Combination {
  double scale = 1;
  double also = 0;
  const Vectors* also_x = nullptr;  ///< may be null where `also` is 0
  double own = 0;                   ///< 0: y is not read
};
void multiply(const Context& ctx, const Csr& a, const Vectors& x, const Combination& combination, Vectors& y);

}  // namespace vicinal::solver

// The inner loops of Krylov methods (solver/operator.hpp), compiled once for each instruction set: products of a sparse
// matrix with vectors side by side, and of tall blocks of vectors with each other. Every sum runs in one order in every
// table; only whether a product is rounded before it is added differs (clause 17). Widths that are multiples of eight
// are quick.
#pragma once

#include <cstdint>

#include "vicinal/context.hpp"

namespace vicinal::cpu {

/// Rows of a sparse matrix: row i has entries first[i] .. first[i + 1]. out[i] becomes scale (A x)[i] + also also_x[i]
/// + own out[i]; what is scaled by 0 is not read.
struct SparseProduct {
  const std::int64_t* first = nullptr;
  const std::int32_t* index = nullptr;
  const double* values = nullptr;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  double scale = 1;
  double also = 0;
  double own = 0;
};

/// Blocks of vectors, row by row: x [rows, x_width], y [rows, y_width].
struct TallPair {
  std::int64_t rows = 0;
  std::int64_t x_width = 0;
  std::int64_t y_width = 0;
};

struct SparseKernels {
  void (*product)(const SparseProduct& task, const double* x, const double* also_x, double* out);
  /// sums[x_width, y_width] += x'y.
  void (*inner)(const TallPair& pair, const double* x, const double* y, double* sums);
  /// y -= x c, c [x_width, y_width].
  void (*subtract)(const TallPair& pair, const double* x, const double* c, double* y);
};

/// The table for an instruction set in use (never `automatic`).
const SparseKernels& sparse_kernels(Isa isa);

}  // namespace vicinal::cpu

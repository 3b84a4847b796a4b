// The plug-in's interface for Krylov methods and sparse products: plain structs, as in plugin.hpp. A space holds
// A, its transpose and a basis in device memory; its work is done by steps (solver/operator.hpp).
#pragma once

#include "plugin/abi/plugin.hpp"

namespace vicinal::plugin {

/// A sparse matrix by compressed rows in host memory.
struct CsrMatrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  const std::int64_t* first = nullptr;  ///< [rows + 1]
  const std::int32_t* index = nullptr;  ///< [first[rows]]
  const double* values = nullptr;       ///< [first[rows]]
};

struct KrylovTask {
  CsrMatrix a;
  CsrMatrix transpose;
  std::int64_t block = 1;
  std::int64_t blocks = 1;
};

/// As solver::KrylovSpace's functions.
enum KrylovWork : std::int32_t {
  kKrylovStore = 0,  ///< vectors [n, block], host: read
  kKrylovLoad,       ///< vectors: filled
  kKrylovFilter,     ///< from, to, degree, low, high
  kKrylovProject,    ///< count, to; small [count * block, block]: filled
  kKrylovGram,       ///< to; small [block, block]: filled
  kKrylovScale,      ///< to; small [block, block]
  kKrylovRotate,     ///< count; small [count * block, columns]
  kKrylovMove,       ///< from, to
};

struct KrylovStep {
  std::int32_t work = kKrylovStore;
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t count = 0;
  std::int64_t columns = 0;
  std::int64_t degree = 1;
  double low = 0;
  double high = 1;
  double* small = nullptr;    ///< host
  double* vectors = nullptr;  ///< host
};

/// Forms of y = A x for one vector (cuda/lle/krylov/spmv.cu).
enum SpmvForm : std::int32_t {
  kSpmvThreadRow = 0,  ///< one thread a row
  kSpmvBlockRow,       ///< one block of threads a row
  kSpmvWarpRow,        ///< one warp a row
  kSpmvPaddedRow,      ///< one warp a row, rows padded to its size
  kSpmvSliced,         ///< one thread a row, 32 rows side by side, padded to the longest of them
  kSpmvEight,          ///< eight vectors at a time, all of them x
  kSpmvLibrary,        ///< cuSPARSE, where it is there
};

struct SpmvTask {
  CsrMatrix a;
  std::int32_t form = kSpmvSliced;
  std::int64_t repeat = 1;
  const double* x = nullptr;  ///< [cols] host
  double* y = nullptr;        ///< [rows] host: filled
  double seconds = 0;         ///< filled: of one product, the median
};

}  // namespace vicinal::plugin

// NVIDIA's cuDSS 1.x, a package of its own that is found at run time and never linked: the factor of a sparse symmetric
// matrix in device memory, by an ordering of ours. Its deterministic mode is on, so that two runs give the same bits.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "cuda/device.hpp"

namespace vicinal::cuda {

/// Throws `device_unavailable` naming the package, where cuDSS is not there or is none of version 1.
void require_cudss();

/// The upper triangle of a symmetric matrix, rows in ascending columns, numbered in the order of elimination.
struct SymmetricMatrix {
  std::int64_t n = 0;
  std::int64_t entries = 0;
  Buffer<std::int64_t> first;  ///< [n + 1]
  Buffer<std::int32_t> cols;   ///< [entries]
  Buffer<double> values;       ///< [entries]
};

enum class Definite : std::uint8_t {
  positive,  ///< L L'
  unknown,   ///< L D L' without pivoting, whose signs count eigenvalues
};

class SparseFactor {
 public:
  /// Finds the factor's shape. `matrix` must outlive it. Throws `over_memory` where the factor is larger than what the
  /// engine's limit leaves.
  SparseFactor(const Engine& engine, const Host& host, const SymmetricMatrix& matrix, Definite definite);
  ~SparseFactor();
  SparseFactor(const SparseFactor&) = delete;
  SparseFactor& operator=(const SparseFactor&) = delete;

  void factor();
  /// x = matrix^-1 b, both [n, width] by columns.
  void solve(const double* b, double* x, std::int64_t width);
  /// Negative pivots, or -1 where some had to be changed, so that their signs prove nothing.
  [[nodiscard]] std::int64_t negative() const;
  /// Entries of the factor.
  [[nodiscard]] std::int64_t fill() const { return fill_; }
  /// Bytes of device memory that the factor takes at most.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  struct Parts;
  void execute(int phase, void* x, void* b, const char* what);

  const Engine& engine_;
  const Host& host_;
  std::unique_ptr<Parts> parts_;
  std::int64_t n_ = 0;
  std::int64_t fill_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace vicinal::cuda

// The float32 screen of k-means on the host: centers as its kernels read them. The bound and its proof:
// formulas/kmeans/float_bound.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "simd/lloyd_kernels.hpp"

namespace vicinal::cpu {

/// Scale and shift of a table's rows, fixed for its life.
struct LloydFrame {
  bool usable = false;       ///< false: every label is decided by keys
  double scale = 1;          ///< s
  std::vector<float> shift;  ///< [d + 4] m, zeros beyond d

  /// center: [d] any; largest: at least every |value| of the table.
  static LloydFrame of(std::span<const double> centre, double largest);
};

/// How far a center has gone, in the frame's units: 0 where it is the same, else not below s |a - b|. A key has lost
/// all accuracy below 2^-900; such a shift is rounded up to 2^-440.
float centre_shift(const double* a, const double* b, std::int64_t d, double scale);

/// The centers of one iteration as the kernels read them.
class LloydCentres {
 public:
  LloydCentres(const LloydKernels& simd, const LloydFrame& frame, std::int64_t d);

  /// Takes centers [k, d]. False when the screen cannot serve them: then every row is decided by keys.
  bool assign(std::span<const double> centres);
  /// Points a tile to them.
  void attach(LloydTile& tile) const;

  /// Centers that differ: the first of each, ascending. What the kernels call center i is distinct()[i].
  [[nodiscard]] const std::vector<std::int32_t>& distinct() const noexcept { return distinct_; }
  [[nodiscard]] std::int64_t padded() const noexcept { return padded_; }

  /// Bytes it takes for k centers.
  static std::uint64_t bytes(std::int64_t k, std::int64_t d);

 private:
  const LloydKernels& simd_;
  const LloydFrame& frame_;
  std::int64_t d_;
  std::vector<std::int32_t> distinct_;
  std::int64_t padded_ = 0;
  std::int64_t full_panels_ = 0;
  std::int32_t last_height_ = 0;
  core::AlignedArray<float> panels_;
  std::vector<float> lengths_;
  std::vector<float> allowances_;
  core::LloydBound bound_;
};

}  // namespace vicinal::cpu

// The direct way on a device: M - shift I + grounding = L D L' by a multifrontal factor (Duff and Reid 1983), with the
// dissection, the shape and the rule for pivots that the CPU's has (solver/factor.hpp), and solves with it. Every sum
// has one order: two runs give the same bits. Cost: solver/symbolic.hpp; M's columns are added up where they stay, and
// what is moved beside products is every panel and some five times every square, once.
#pragma once

#include <cstdint>

#include "cuda/lle/factor/plan.hpp"
#include "cuda/lle/lle.hpp"
#include "cuda/lle/tall.hpp"

namespace vicinal::cuda::lle {

/// What kernels know of the fronts.
struct FrontView {
  const Front* fronts;
  const std::int32_t* front_of;  ///< [n] whose own a point is
  const std::int32_t* rows;      ///< below, ascending
  const std::int32_t* places;    ///< of these rows in the parent's front
  const FrontTile* tiles;
  double* panels;
  double* pivots;  ///< [n]
};

#ifdef __CUDACC__
/// Of so many rows or columns left, those of a tile.
__device__ inline int tile_part(std::int64_t left) {
  return static_cast<int>(left < kFrontTile ? left : kFrontTile);
}

/// Where a tile of a block column lies in its panel. The last block column may be narrow.
struct PanelTile {
  std::int64_t begin;  ///< first column, and row of the diagonal
  int width;           ///< columns
  std::int64_t row;    ///< first row
  int count;           ///< rows

  __device__ PanelTile(const Front& f, const FrontTile& tile)
      : begin(std::int64_t{tile.col} * kFrontTile),
        width(tile_part(f.own - begin)),
        row(tile.row == 0 ? begin : begin + width + (std::int64_t{tile.row} - 1) * kFrontTile),
        count(tile.row == 0 ? width : tile_part(f.height() - row)) {}
};
#endif

class FrontFactor {
 public:
  /// Plans, and takes what stays. `width`: right sides of a solve, at most; `beside`: bytes that solves need beside
  /// theirs. Throws `over_memory` where all of it is more than the engine's limit leaves.
  FrontFactor(const Engine& engine, const plugin::LleTree& tree, std::int64_t points, std::int64_t width,
              std::uint64_t beside);

  /// Factors M less `shift` on its diagonal, and with `ground` more on the last point's.
  void factor(const Host& host, const DeviceBlocks& a, const DeviceIncidence& in, double shift, double ground);
  /// x becomes M^-1 x.
  void solve(const Host& host, DeviceVectors& x) const;
  /// Negative pivots.
  [[nodiscard]] std::int64_t negative() const;
  /// Bytes of device memory that it takes at most.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  [[nodiscard]] FrontView view() const;

  const Engine& engine_;
  FrontPlan plan_;
  std::int64_t points_;
  std::uint64_t bytes_ = 0;
  Buffer<Front> fronts_;
  Buffer<FrontTile> tiles_;
  Buffer<std::int32_t> front_of_;
  Buffer<std::int32_t> rows_;
  Buffer<std::int32_t> places_;
  Buffer<double> panels_;
  Buffer<double> pivots_;
};

/// Fills `front_of` and `places` of what is laid out otherwise (assemble.cu).
void find_places(const Engine& engine, const FrontView& view, std::int64_t fronts, std::int32_t* front_of,
                 std::int32_t* places);
/// Panels, cleared: M's columns, less the shift, with the ground.
void add_matrix(const Engine& engine, const FrontView& view, const DeviceBlocks& a, const DeviceIncidence& in,
                double shift, double ground);
/// Squares of the level before into panels and squares of a level.
void add_children(const Engine& engine, const FrontView& view, TileRange range, const double* from, double* squares);
/// One block column of a level's fronts, the columns before it done.
void eliminate(const Engine& engine, const FrontView& view, const FrontLevel& level, std::size_t col);
/// squares -= L D L' of the rows below.
void subtract_squares(const Engine& engine, const FrontView& view, TileRange range, double* squares);

}  // namespace vicinal::cuda::lle

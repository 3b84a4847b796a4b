// The area that two features share (contract clause 18), by a signed sum over pairs of edges, and a bound on its
// rounding.
//
// With s = +1 for an edge that goes to the right, -1 for one that goes to the left, the number of times that a region
// covers (x, y) is the sum of s over the edges that pass above y at x. The product of two such sums, integrated from
// the floor of the box that both regions' boxes share, is
//   area = sum over edges a, b of s_a s_b * integral of min(f_a, f_b) over the x that both span,
// f the height above that floor, cut off at the box's ceiling (Franklin's sum over edge vectors is a kin of it). No
// crossing is ever computed, and nothing can fail. What is left of the box's sides or below it adds nothing; what
// passes above it for a while is one flat piece, however many edges it has.
//
// Where pieces are many the box is halved, again and again, and pieces are cut to the halves: cost O(n log n) for two
// regions of n edges whose borders do not cross everywhere, a quarter of a microsecond for two houses.
#pragma once

#include <array>
#include <vector>

#include "core/aligned.hpp"
#include "formulas/overlap/pieces.hpp"
#include "geo/layer.hpp"
#include "simd/overlap_kernels.hpp"

namespace vicinal::geo {

struct SharedArea {
  double area = 0;   ///< never negative
  double error = 0;  ///< the exact area of what the coordinates say is at most that far away
};

/// What one worker needs; keep it from pair to pair.
class OverlapArea {
 public:
  explicit OverlapArea(const cpu::OverlapKernels& kernels) : kernels_(kernels) {}

  /// Of feature i of `a` and feature j of `b`. Where a region covers itself, what it covers twice counts twice.
  SharedArea operator()(const Layer& a, std::int64_t i, const Layer& b, std::int64_t j);

  /// The perimeter of what they share: the length of each border within the other region. The same sum, over edges
  /// below others instead of areas; flat edges are met in x, steep ones in y. Where borders run along each other each
  /// stretch counts once, whether the regions lie on the same side or not.
  double perimeter(const Layer& a, std::int64_t i, const Layer& b, std::int64_t j);

 private:
  // Pieces in the order of the rings, in room that is made before edges are cut: at most two pieces each.
  class Chain {
   public:
    void start(std::int64_t edges) {
      pieces_.reserve(2 * edges);
      size_ = 0;
    }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] std::int64_t size() const { return size_; }
    [[nodiscard]] const Piece& back() const { return pieces_[size_ - 1]; }
    void push_back(const Piece& piece) { pieces_[size_++] = piece; }
    void pop_back() { --size_; }
    const Piece& operator[](std::int64_t i) const { return pieces_[i]; }
    [[nodiscard]] const Piece* begin() const { return pieces_.data(); }
    [[nodiscard]] const Piece* end() const { return pieces_.data() + size_; }

   private:
    core::AlignedArray<Piece> pieces_;
    std::int64_t size_ = 0;
  };
  struct Lanes {
    core::AlignedArray<double> left, right, height, slope, sign, weight, first, last;
    void fill(const Chain& chain, Measure measure, double ceiling, cpu::OverlapPieces& pieces);
  };
  static constexpr int kDeepest = 40;

  void cut(const Layer& a, std::int64_t i, const Layer& b, std::int64_t j, const Box& box);
  SharedArea integrate(int depth, double width, double height);
  SharedArea sum(const Chain& a, const Chain& b, double height);

  const cpu::OverlapKernels& kernels_;
  std::array<std::array<Chain, 2>, kDeepest + 1> chains_;
  Lanes lanes_[2];
  Measure measure_ = Measure::area;
};

}  // namespace vicinal::geo

// See count.hpp.
#include "ops/lle/count.hpp"

#include <algorithm>

namespace vicinal::ops {
namespace {

constexpr double kTold = 1e-15;  // of M's norm: eigenvalues nearer to a shift may fall to either side by rounding
constexpr double kSameEigenvalue = 1e-3;  // of it: eigenvalues nearer to each other are one cluster

}  // namespace

void count_eigenvalues(const solver::Smallest& found, const std::function<std::int64_t(double)>& below,
                       LlePiece& piece) {
  const auto square = [&](std::int64_t at) { return at < 0 ? 0 : found.values[at] * found.values[at]; };
  const auto wanted = std::ssize(found.values);
  const double last = square(wanted - 1);
  const double next = found.next * found.next;
  const double told = kTold * piece.norm;
  const double shift = (last + next) / 2;
  const bool resolved = shift - last > told;
  if (resolved) piece.counted = below(shift) - 1;
  if (piece.counted == wanted) {
    piece.count = LleCount::complete;
    return;
  }
  if (resolved && next - last > kSameEigenvalue * last) {
    piece.count = LleCount::skipped;
    return;
  }
  // The next value bounds its eigenvalue from above only, so that more of a cluster may lie below the shift. What has
  // to be counted then is what lies below the whole cluster.
  std::int64_t first = wanted - 1;
  while (first > 0 && square(first) - square(first - 1) <= std::max(kSameEigenvalue * square(first), told)) --first;
  const double under = (square(first - 1) + square(first)) / 2;
  if (!(square(first) - under > told)) {
    piece.count = LleCount::unresolved;
    return;
  }
  piece.count = below(under) - 1 == first ? LleCount::clustered : LleCount::skipped;
}

}  // namespace vicinal::ops

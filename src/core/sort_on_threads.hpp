// Sorts a large array in place on all threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/parallel.hpp"
#include "core/poll.hpp"

namespace vicinal::core {

/// Ascending by `less`, a strict weak order. Pieces are parted by a median of some of their values until there are
/// enough for all threads, which sort them. Of a total order the result is the same whatever the number of threads.
template <class T, class Less>
void sort_on_threads(const Context& ctx, std::vector<T>& values, const Less& less) {
  constexpr std::int64_t kSmall = std::int64_t{1} << 14;  // a piece that is not parted
  constexpr std::int64_t kPiecesAThread = 4;
  constexpr std::int64_t kDrawn = 127;
  std::vector<std::int64_t> ends = {0, std::ssize(values)};
  const auto begin_of = [&](std::int64_t piece) { return values.begin() + ends[static_cast<std::size_t>(piece)]; };
  while (ctx.threads() > 1 && std::ssize(values) > kSmall * (std::ssize(ends) - 1) &&
         std::ssize(ends) - 1 < kPiecesAThread * ctx.threads()) {
    const std::int64_t pieces = std::ssize(ends) - 1;
    std::vector<std::int64_t> middles(static_cast<std::size_t>(pieces));
    parallel_for(ctx, pieces, [&](std::int64_t piece, int /*worker*/) {
      const auto begin = begin_of(piece);
      const auto end = begin_of(piece + 1);
      auto middle = begin;
      if (end - begin > kSmall) {
        std::array<T, kDrawn> drawn;
        for (std::int64_t i = 0; i < kDrawn; ++i)
          drawn[static_cast<std::size_t>(i)] = begin[(end - begin) / kDrawn * i];
        std::nth_element(drawn.begin(), drawn.begin() + kDrawn / 2, drawn.end(), less);
        Poll poll(ctx);
        middle = std::partition(begin, end, [&](const T& value) {
          poll.step();
          return less(value, drawn[kDrawn / 2]);
        });
      }
      middles[static_cast<std::size_t>(piece)] = middle - values.begin();
    });
    ends.insert(ends.end(), middles.begin(), middles.end());
    std::sort(ends.begin(), ends.end());
  }
  parallel_for(ctx, std::ssize(ends) - 1, [&](std::int64_t piece, int /*worker*/) {
    Poll poll(ctx);
    std::sort(begin_of(piece), begin_of(piece + 1), [&](const T& x, const T& y) {
      poll.step();
      return less(x, y);
    });
  });
}

}  // namespace vicinal::core

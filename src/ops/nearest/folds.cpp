// See folds.hpp. Rows are dealt out like cards, class after class, each class in the order of its rows' draws: so folds
// differ by one row at most, and in each class by one row, too.
#include "ops/nearest/folds.hpp"

#include <algorithm>
#include <tuple>

#include "core/philox.hpp"
#include "core/poll.hpp"

namespace vicinal::ops {
namespace {

constexpr std::uint64_t kFoldStream = 0x63760000;

struct Card {
  std::int32_t code;
  double draw;
  std::int64_t row;
};

}  // namespace

std::vector<std::int32_t> make_folds(const Context& ctx, std::int64_t n, std::span<const std::int32_t> codes,
                                     std::int64_t folds, std::uint64_t seed) {
  core::Poll poll(ctx);
  std::vector<Card> cards;
  cards.reserve(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    poll.step();
    const double draw = core::philox_uniform(seed, kFoldStream, static_cast<std::uint64_t>(i));
    cards.push_back({codes.empty() ? 0 : codes[static_cast<std::size_t>(i)], draw, i});
  }
  std::sort(cards.begin(), cards.end(), [&](const Card& a, const Card& b) {
    poll.step();
    return std::tie(a.code, a.draw, a.row) < std::tie(b.code, b.draw, b.row);
  });
  std::vector<std::int32_t> fold_of(static_cast<std::size_t>(n));
  for (std::int64_t t = 0; t < n; ++t) {
    poll.step();
    fold_of[static_cast<std::size_t>(cards[static_cast<std::size_t>(t)].row)] = static_cast<std::int32_t>(t % folds);
  }
  return fold_of;
}

}  // namespace vicinal::ops

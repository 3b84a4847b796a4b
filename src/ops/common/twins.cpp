// See twins.hpp. Every draw is a Philox number of the row's or the variant's counter, every operation is rounded once.
#include "ops/common/twins.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/elementary.hpp"
#include "core/philox.hpp"

namespace vicinal::ops {
namespace {

constexpr std::uint64_t kHabitDraws = 0;    // stream: what the rows of a kind of KDD have in common
constexpr std::uint64_t kRowDraws = 3;      // stream: a row's own draws
constexpr std::uint64_t kVariantDraws = 4;  // stream of kind 0; the others follow
constexpr double kPi = std::numbers::pi;

/// Number q: the first or the second of the pair at counter first + q / 2.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t stream, std::uint64_t first) : seed_(seed), stream_(stream), first_(first) {}

  [[nodiscard]] double operator()(std::uint64_t q) const {
    const auto x = core::philox(seed_, stream_, first_ + q / 2);
    const std::uint64_t word = q % 2 == 0 ? std::uint64_t{x[0]} << 32 | x[1] : std::uint64_t{x[2]} << 32 | x[3];
    return static_cast<double>(word >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t first_;
};

Draws draws_of_row(std::uint64_t seed, std::int64_t row) {
  return {seed, kRowDraws, static_cast<std::uint64_t>(row) * 16};
}

/// The place of a draw among shares that are given by counts.
template <std::size_t n>
std::int64_t drawn(const std::array<std::int64_t, n>& counts, double draw) {
  std::int64_t all = 0;
  for (const std::int64_t count : counts) all += count;
  double left = std::floor(static_cast<double>(all) * draw);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    left -= static_cast<double>(counts[i]);
    if (left < 0) return static_cast<std::int64_t>(i);
  }
  return static_cast<std::int64_t>(n) - 1;
}

/// Rows of each kind in the 10 percent file of KDD Cup 99, normal first, and how many of them are distinct.
constexpr std::array<std::int64_t, 23> kKddRows = {
    97278, 280790, 107201, 2203, 1589, 1247, 1040, 1020, 979, 264, 231, 53, 30, 21, 20, 12, 10, 9, 8, 7, 4, 3, 2};
constexpr std::array<std::int64_t, 23> kKddDistinct = {87832, 641, 51820, 968, 906, 651, 416, 893, 918, 206, 158, 53,
                                                       30,    19,  20,    12,  10,  9,   8,   7,   4,   3,   2};

/// A value of column j: `habit` is the kind's, `own` the variant's, both in [0, 1).
double kdd_value(std::int64_t j, double habit, double own) {
  const double x = habit * own;
  const auto word = [&](double words) { return std::floor(words * (own < 0.9 ? habit : own)); };
  if (j == 1) return word(3);
  if (j == 2) return word(66);
  if (j == 3) return word(11);
  if (j == 0 || j == 4 || j == 5) return std::floor(65536 * (x * x * x));
  if (j < 22) return std::floor(1.25 * x);
  if (j == 22 || j == 23) return std::floor(512 * x);
  if (j == 31 || j == 32) return std::floor(256 * x);
  return std::floor(100 * x + 0.5) / 100;
}

std::int64_t place_kdd(std::uint64_t seed, const Draws& draw, std::span<double> point) {
  const std::int64_t kind = drawn(kKddRows, draw(0));
  const auto at = static_cast<std::size_t>(kind);
  const double variant = std::floor(static_cast<double>(kKddDistinct[at]) * draw(1));
  const Draws own(seed, kVariantDraws + at, static_cast<std::uint64_t>(variant) * 32);
  for (std::int64_t j = 0; j < kKddColumns; ++j) {
    const double habit = core::philox_uniform(seed, kHabitDraws, static_cast<std::uint64_t>(kind * kKddColumns + j));
    point[static_cast<std::size_t>(j)] = kdd_value(j, habit, own(static_cast<std::uint64_t>(j)));
  }
  return kind;
}

/// The class of a hand of Poker: how often each rank occurs decides, then whether suits are equal or ranks follow.
std::int64_t class_of_hand(const std::array<int, 5>& suits, std::array<int, 5> ranks) {
  std::sort(ranks.begin(), ranks.end());
  int pairs = 0;  // of equal ranks: 1 a pair, 2 two pairs, 3 three of a kind, 4 full house, 6 four of a kind
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = i + 1; j < 5; ++j) pairs += ranks[i] == ranks[j] ? 1 : 0;
  }
  if (pairs > 0) return std::array<std::int64_t, 7>{0, 1, 2, 3, 6, 0, 7}[static_cast<std::size_t>(pairs)];
  const bool royal = ranks[0] == 1 && ranks[1] == 10;
  const bool straight = royal || ranks[4] - ranks[0] == 4;
  const bool flush = std::all_of(suits.begin(), suits.end(), [&](int suit) { return suit == suits[0]; });
  if (flush) return royal ? 9 : straight ? 8 : 5;
  return straight ? 4 : 0;
}

std::int64_t place_poker(const Draws& draw, std::span<double> point) {
  std::array<int, 52> cards{};
  for (int card = 0; card < 52; ++card) cards[static_cast<std::size_t>(card)] = card;
  std::array<int, 5> suits{};
  std::array<int, 5> ranks{};
  for (std::size_t c = 0; c < 5; ++c) {
    const auto place = static_cast<std::ptrdiff_t>((52.0 - static_cast<double>(c)) * draw(c));
    const int card = cards[static_cast<std::size_t>(place)];
    // Those after it move up.
    std::copy(cards.begin() + place + 1, cards.end(), cards.begin() + place);
    suits[c] = card / 13 + 1;
    ranks[c] = card % 13 + 1;
    point[2 * c] = suits[c];
    point[2 * c + 1] = ranks[c];
  }
  return class_of_hand(suits, ranks);
}

/// Rows of each cover type in Covertype; mean and deviation of its elevation in a sample.
constexpr std::array<std::int64_t, 7> kCoverRows = {211840, 283301, 35754, 2747, 9493, 17367, 20510};
constexpr std::array<double, 7> kElevation = {3026, 2816, 2398, 2223, 2767, 2423, 3363};
constexpr std::array<double, 7> kElevationDeviation = {219, 173, 194, 103, 112, 189, 109};

double rounded(double x) {
  return std::floor(x + 0.5);
}

/// A distance on a grid of 30 meters, whose sides are below `cells`.
double grid_distance(double cells, double a, double b) {
  const double x = std::floor(cells * a);
  const double y = std::floor(cells * b);
  return rounded(30 * std::sqrt(x * x + y * y));
}

/// How bright ground is that slopes `slope` degrees towards `aspect`, under a sun from `sun` degrees.
double hillshade(double slope, double aspect, double sun) {
  const auto tilt = core::sin_cos(kPi * (slope / 180));
  const auto turn = core::sin_cos(kPi * ((aspect - sun) / 180));
  return rounded(255 * std::max(0.0, 0.8 * tilt.cos + 0.6 * (tilt.sin * turn.cos)));
}

std::int64_t place_covertype(const Draws& draw, std::span<double> point) {
  const std::int64_t cover = drawn(kCoverRows, draw(0));
  const auto at = static_cast<std::size_t>(cover);
  // Three draws have the variance 1/4.
  point[0] = rounded(kElevation[at] + kElevationDeviation[at] * (2 * ((draw(1) + draw(2)) + draw(3)) - 3));
  point[1] = std::floor(361 * draw(4));
  point[2] = std::floor(66 * (draw(5) * draw(6)));
  point[3] = grid_distance(17, draw(7) * draw(8), draw(9) * draw(10));
  point[4] = rounded(0.5 * (point[3] * (draw(11) - 0.2)));
  point[5] = grid_distance(190, draw(12) * draw(13), draw(14) * draw(15));
  for (std::size_t j = 6; j < 9; ++j) point[j] = hillshade(point[2], point[1], 120 + 60 * static_cast<double>(j - 6));
  point[9] = grid_distance(190, draw(16) * draw(17), draw(18) * draw(19));
  return cover + 1;
}

}  // namespace

std::int64_t place_twin(Shape shape, std::uint64_t seed, std::int64_t row, std::span<double> point) {
  const Draws draw = draws_of_row(seed, row);
  if (shape == Shape::kdd) return place_kdd(seed, draw, point);
  return shape == Shape::poker ? place_poker(draw, point) : place_covertype(draw, point);
}

}  // namespace vicinal::ops

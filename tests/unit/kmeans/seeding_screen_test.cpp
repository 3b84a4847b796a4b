// The int8 screen of k-means++ (cpu/kmeans/seeding_screen.hpp): a row whose key to a drawn row is below its least key
// survives, also where the bound is met but for a rounding.
#include "cpu/kmeans/seeding_screen.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "core/distance.hpp"
#include "isas.hpp"
#include "simd/kernels.hpp"

namespace vicinal::cpu {
namespace {

struct Pairs {
  std::int64_t d;
  double scale;
  std::vector<double> centre;
  std::vector<double> rows;
  std::vector<double> draws;
};

// Which pairs of a draw and a row survive, if the least key of each row is `keys[row]`.
std::set<std::pair<std::int64_t, std::int64_t>> surviving(const SimdKernels& simd, const Pairs& of,
                                                          const std::vector<double>& keys) {
  const auto n = static_cast<std::int64_t>(keys.size());
  const std::int64_t m = static_cast<std::int64_t>(of.draws.size()) / of.d;
  SeedingScreen screen(simd, {ScreenType::int8, ScreenKind::distance, of.d, of.scale, of.centre}, n, m);
  for (std::int64_t i = 0; i < n; ++i) screen.pack(i, of.rows.data() + i * of.d, 1e300);
  for (std::int64_t i = 0; i < n; ++i) screen.set_key(i, keys[static_cast<std::size_t>(i)]);
  screen.ask(of.draws);
  std::set<std::pair<std::int64_t, std::int64_t>> found;
  SeedingScreen::Scratch scratch = screen.scratch();
  for (std::int64_t tile = 0; tile * screen.tile_rows() < n; ++tile) {
    screen.survivors(tile, scratch);
    for (const SeedingScreen::Found& pair : scratch.found)
      found.emplace(pair.draw, tile * screen.tile_rows() + pair.row);
  }
  return found;
}

// Each row's least key is the next number above its key to draw i % m: that draw changes it.
void expect_kept(const Pairs& of, const char* what) {
  const auto n = static_cast<std::int64_t>(of.rows.size()) / of.d;
  const auto m = static_cast<std::int64_t>(of.draws.size()) / of.d;
  std::vector<double> keys;
  for (std::int64_t i = 0; i < n; ++i) {
    const double key = core::euclidean_key(of.rows.data() + i * of.d, of.draws.data() + i % m * of.d, of.d);
    keys.push_back(std::nextafter(key, std::numeric_limits<double>::infinity()));
  }
  for (const Isa isa : isas()) {
    const auto found = surviving(simd_kernels(isa), of, keys);
    for (std::int64_t i = 0; i < n; ++i) {
      EXPECT_TRUE(found.contains({i % m, i})) << what << ", d " << of.d << ", row " << i << ", draw " << i % m;
    }
  }
}

// Rows and draws whose errors of rounding point to each other: distance and errors add up exactly to the distance of
// the rounded rows.
TEST(KMeansSeedingScreen, KeepsRowsWhoseErrorsPointToTheDraw) {
  std::mt19937_64 random(3);
  for (const std::int64_t d : {1, 3, 16, 77, 300}) {
    for (const double rest : {0.0, 0.25, 0.49}) {
      Pairs of = {d, 1.0, std::vector<double>(static_cast<std::size_t>(d), 0.0), {}, {}};
      for (std::int64_t i = 0; i < 14; ++i) {
        const auto size = static_cast<double>(random() % 40);
        const auto apart = static_cast<double>(1 + i % 5);
        for (std::int64_t j = 0; j < d; ++j) {
          const double whole = j % 2 == 0 ? size : -size;
          of.rows.push_back(whole + rest);
          of.draws.push_back(whole + apart - rest);
        }
      }
      expect_kept(of, "towards each other");
    }
  }
}

// Lengths from 2^-300 to 2^400 of the scale's, columns beyond the range of int8, equal rows.
TEST(KMeansSeedingScreen, KeepsRowsOfAnySize) {
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  for (const int exponent : {-300, -20, -3, 0, 1, 3, 8, 60, 400}) {
    for (const std::int64_t d : {2, 9, 64}) {
      Pairs of = {d, std::ldexp(20.0, exponent), {}, {}, {}};
      for (std::int64_t j = 0; j < d; ++j) of.centre.push_back(normal(random));
      for (std::int64_t i = 0; i < 130 * d; ++i) of.rows.push_back(normal(random) * (i % 7 == 0 ? 30 : 1));
      of.draws.assign(of.rows.begin(), of.rows.begin() + 13 * d);
      std::copy_n(of.draws.begin(), 5 * d, of.rows.begin() + 40 * d);
      expect_kept(of, "any size");
    }
  }
}

// Keys below the smallest float64 are 0: a row whose least key is just above 0 changes.
TEST(KMeansSeedingScreen, KeepsRowsWhoseKeysVanish) {
  const std::int64_t d = 64;
  Pairs of = {d, std::ldexp(1.27, 537), std::vector<double>(d, 0.0), std::vector<double>(d, 0.0),
              std::vector<double>(d, std::ldexp(0.7, -537))};
  expect_kept(of, "vanishing keys");
}

// Errors of rounding beyond float32, of a row that meets a draw within the range, and of a draw.
TEST(KMeansSeedingScreen, KeepsRowsBesideADrawFarBeyondTheRange) {
  const std::int64_t d = 4;
  Pairs of = {d, 1.0, std::vector<double>(d, 0.0), {}, {}};
  for (std::int64_t i = 0; i < 40 * d; ++i) of.rows.push_back(i / d % 4 == 0 ? 1e60 : static_cast<double>(i % 50));
  for (std::int64_t i = 0; i < 2 * d; ++i) of.draws.push_back(i < d ? 120 : -1e60);
  expect_kept(of, "beyond the range");
}

TEST(KMeansSeedingScreen, LeavesOutWhatIsFar) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  const std::int64_t d = 40;
  Pairs of = {d, 30, std::vector<double>(d, 0.0), {}, {}};
  for (std::int64_t i = 0; i < 200 * d; ++i) of.rows.push_back(normal(random));
  of.draws.assign(of.rows.begin(), of.rows.begin() + 5 * d);
  for (const Isa isa : isas()) {
    // Every row is at 0.5 from its center; draws are rows, of which each is near to itself alone.
    const auto found = surviving(simd_kernels(isa), of, std::vector<double>(200, 0.25));
    EXPECT_EQ(found.size(), 5U);
    for (std::int64_t i = 0; i < 5; ++i) EXPECT_TRUE(found.contains({i, i}));
  }
}

// A draw whose rounding error is far greater than that of the others does not open rows to the others.
TEST(KMeansSeedingScreen, LeavesOutWhatIsFarBesideADrawBeyondTheRange) {
  std::mt19937_64 random(6);
  std::normal_distribution<double> normal;
  const std::int64_t d = 40;
  Pairs of = {d, 30, std::vector<double>(d, 0.0), {}, {}};
  for (std::int64_t i = 0; i < 200 * d; ++i) of.rows.push_back(normal(random));
  of.draws.assign(of.rows.begin(), of.rows.begin() + 5 * d);
  of.draws[2 * d] = 200;
  for (const Isa isa : isas()) {
    const auto found = surviving(simd_kernels(isa), of, std::vector<double>(200, 0.25));
    const auto of_others = std::count_if(found.begin(), found.end(), [](const auto& pair) { return pair.first != 2; });
    EXPECT_EQ(of_others, 4);
  }
}

}  // namespace
}  // namespace vicinal::cpu

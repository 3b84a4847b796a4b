// The int8 screen of Lloyd's iterations (cpu/kmeans/label_screen.hpp): a center that is not farther than the reach
// survives, also where the bound is met but for a rounding.
#include "cpu/kmeans/label_screen.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "core/distance.hpp"
#include "isas.hpp"
#include "simd/kernels.hpp"

namespace vicinal::cpu {
namespace {

struct LabelPairs {
  std::int64_t d;
  double scale;
  std::vector<double> middle;
  std::vector<double> rows;
  std::vector<double> centres;
};

// The centers that survive each row, which looks as far as `reach` says.
std::vector<std::vector<std::int32_t>> surviving(const SimdKernels& simd, const LabelPairs& of,
                                                 const std::vector<double>& reach) {
  const auto n = static_cast<std::int64_t>(reach.size());
  const auto k = static_cast<std::int64_t>(of.centres.size()) / of.d;
  LabelScreen screen(simd, {ScreenType::int8, ScreenKind::distance, of.d, of.scale, of.middle}, n, k);
  std::vector<std::int32_t> all(static_cast<std::size_t>(k));
  std::iota(all.begin(), all.end(), 0);
  screen.ask(Context::cpu({.threads = 1}), of.centres, all);
  std::vector<std::vector<std::int32_t>> found;
  LabelScreen::Tile tile = screen.tile();
  for (std::int64_t first = 0; first < n; first += screen.tile_rows()) {
    const std::int64_t count = std::min(screen.tile_rows(), n - first);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = first + i;
      EXPECT_FALSE(screen.packed(row));
      screen.pack(row, of.rows.data() + row * of.d);
      EXPECT_TRUE(screen.packed(row));
      screen.put(tile, i, row, reach[static_cast<std::size_t>(row)]);
    }
    screen.survivors(tile, count);
    found.insert(found.end(), tile.centres.begin(), tile.centres.begin() + count);
  }
  return found;
}

// Each row looks as far as its center i % k is.
void expect_labels_kept(const LabelPairs& of, const char* what) {
  const auto n = static_cast<std::int64_t>(of.rows.size()) / of.d;
  const auto k = static_cast<std::int64_t>(of.centres.size()) / of.d;
  const auto d = static_cast<double>(of.d);
  std::vector<double> reach;
  for (std::int64_t i = 0; i < n; ++i) {
    const double key = core::euclidean_key(of.rows.data() + i * of.d, of.centres.data() + i % k * of.d, of.d);
    reach.push_back(of.scale * std::sqrt(key * (1 + (d + 8) * 0x1p-51) + d * 0x1p-1072) * (1 + 0x1p-50));
  }
  for (const Isa isa : isas()) {
    const auto found = surviving(simd_kernels(isa), of, reach);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto& centres = found[static_cast<std::size_t>(i)];
      EXPECT_EQ(std::count(centres.begin(), centres.end(), i % k), 1)
          << what << ", d " << of.d << ", row " << i << ", center " << i % k;
    }
  }
}

// Rows and centers on one line, with their errors of rounding along it: of some pairs every inequality is met. The
// first center decides the second scale, `ratio` times the first; with many long centers form T is taken.
TEST(KMeansLabelScreen, KeepsCentersWhereErrorsAddUp) {
  for (const std::int64_t d : {16, 77, 300}) {
    for (const double ratio : {0.5, 1.0, 2.0}) {
      for (const int turn : {0, 1, 2, 3, 4, 5, 6, 7}) {
        const double row_rest = turn % 2 == 0 ? 0.49 : -0.49;
        const double centre_rest = turn / 2 % 2 == 0 ? 0.49 : -0.49;
        const double length = turn < 4 ? 6 : 60;
        LabelPairs of = {d, 1.0, std::vector<double>(static_cast<std::size_t>(d), 0.0), {}, {}};
        const std::int64_t k = 25;
        for (std::int64_t c = 0; c < k; ++c) {
          const double value =
              c == 0 ? 126.5 / ratio : (std::nearbyint(length * ratio) + (c % 5) + centre_rest) / ratio;
          of.centres.insert(of.centres.end(), static_cast<std::size_t>(d), value);
        }
        for (std::int64_t i = 0; i < 4 * k; ++i) {
          const double value = static_cast<double>(i * 7 % 125 - 62) + row_rest;
          of.rows.insert(of.rows.end(), static_cast<std::size_t>(d), value);
        }
        expect_labels_kept(of, "errors along a line");
      }
    }
  }
}

// Lengths from 2^-300 to 2^400 of the scale's, columns beyond the range of int8, equal rows, centers far nearer to the
// middle than rows and far beyond them.
TEST(KMeansLabelScreen, KeepsCentersOfAnySize) {
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  for (const int exponent : {-300, -20, -3, 0, 1, 3, 8, 60, 400}) {
    for (const std::int64_t d : {16, 64}) {
      for (const double size : {1e-6, 0.1, 1.0, 40.0}) {
        LabelPairs of = {d, std::ldexp(20.0, exponent), {}, {}, {}};
        for (std::int64_t j = 0; j < d; ++j) of.middle.push_back(normal(random));
        for (std::int64_t i = 0; i < 130 * d; ++i) of.rows.push_back(normal(random) * (i % 7 == 0 ? 30 : 1));
        for (std::int64_t i = 0; i < 13 * d; ++i) of.centres.push_back(of.rows[static_cast<std::size_t>(i)] * size);
        std::copy_n(of.centres.begin(), 5 * d, of.rows.begin() + 40 * d);
        expect_labels_kept(of, "any size");
      }
    }
  }
}

// Centers of sizes from 1 to 2^-20 in one call, which have scales of their own.
TEST(KMeansLabelScreen, KeepsCentersOfManySizes) {
  std::mt19937_64 random(6);
  std::normal_distribution<double> normal;
  for (const std::int64_t d : {16, 77}) {
    for (const double apart : {0.0, 3.0}) {
      LabelPairs of = {d, 25.0, std::vector<double>(static_cast<std::size_t>(d), 0.0), {}, {}};
      for (std::int64_t i = 0; i < 200 * d; ++i) of.rows.push_back(normal(random));
      for (std::int64_t i = 0; i < 100 * d; ++i) {
        const auto size = static_cast<int>(i / d * 5 % 21);
        of.centres.push_back(std::ldexp(of.rows[static_cast<std::size_t>(i)], -size) + apart * std::ldexp(1.0, -size));
      }
      expect_labels_kept(of, "many sizes");
    }
  }
}

// Keys below the smallest float64 are 0.
TEST(KMeansLabelScreen, KeepsCentersWhoseKeysVanish) {
  const std::int64_t d = 64;
  const LabelPairs of = {d, std::ldexp(1.27, 537), std::vector<double>(d, 0.0), std::vector<double>(d, 0.0),
                         std::vector<double>(d, std::ldexp(0.7, -537))};
  expect_labels_kept(of, "vanishing keys");
}

// Errors of rounding beyond the range, of rows and of centers.
TEST(KMeansLabelScreen, KeepsCentersFarBeyondTheRange) {
  const std::int64_t d = 16;
  LabelPairs of = {d, 1.0, std::vector<double>(d, 0.0), {}, {}};
  for (std::int64_t i = 0; i < 40 * d; ++i) of.rows.push_back(i / d % 4 == 0 ? 1e60 : static_cast<double>(i % 50));
  for (std::int64_t i = 0; i < 3 * d; ++i) of.centres.push_back(i < d ? 120 : (i < 2 * d ? -1e60 : 1e5));
  expect_labels_kept(of, "beyond the range");
}

// The most columns, all of whose elements fill their bytes: sums come near the ends of their range, for rows and
// centers on one side of the middle and on both. Some rows look so far that the sum's other terms are large, too.
TEST(KMeansLabelScreen, KeepsCentersOfTheMostColumns) {
  const std::int64_t d = 8192;
  for (const double size : {126.4, 126.5, 60.3}) {
    LabelPairs of = {d, 1.0, std::vector<double>(d, 0.0), {}, {}};
    for (std::int64_t c = 0; c < 6; ++c) {
      for (std::int64_t j = 0; j < d; ++j) of.centres.push_back((c + j * (c / 2)) % 2 == 0 ? size : -size);
    }
    for (std::int64_t i = 0; i < 36; ++i) {
      for (std::int64_t j = 0; j < d; ++j) of.rows.push_back((i + j * (i / 6)) % 2 == 0 ? 126.45 : -126.45);
    }
    expect_labels_kept(of, "the most columns");
  }
}

TEST(KMeansLabelScreen, ServesTheColumnsAndCentersOfItsProof) {
  const std::vector<float> values(2 * 8193, 0.0F);
  for (const Isa isa : isas()) {
    const SimdKernels& simd = simd_kernels(isa);
    const auto serves = [&](std::int64_t d, std::int64_t centres) {
      return LabelScreen::serves(simd, TableView(values.data(), 2, d), centres);
    };
    const bool quick = simd.quick[screen_index(ScreenType::int8)];
    EXPECT_EQ(serves(16, 256), quick);
    EXPECT_EQ(serves(8192, 256), quick);
    EXPECT_FALSE(serves(15, 256));
    EXPECT_FALSE(serves(8193, 256));
    EXPECT_FALSE(serves(16, 255));
  }
}

TEST(KMeansLabelScreen, LeavesOutWhatIsFar) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  const std::int64_t d = 40;
  // Centers about the middle, and all of it about 1e3 from the middle.
  for (const double apart : {0.0, 1e3}) {
    LabelPairs of = {d, apart > 0 ? 0.12 : 30, std::vector<double>(d, 0.0), {}, {}};
    for (std::int64_t i = 0; i < 200 * d; ++i) of.rows.push_back(normal(random) * (apart > 0 ? 60 : 1) + apart);
    of.centres.assign(of.rows.begin(), of.rows.begin() + 50 * d);
    for (const Isa isa : isas()) {
      // Every row looks at a distance of 0.5 deviations: of each center it finds but the row itself.
      const double reach = of.scale * (apart > 0 ? 30 : 0.5);
      const auto found = surviving(simd_kernels(isa), of, std::vector<double>(200, reach));
      for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].size(), i < 50 ? 1U : 0U) << apart << " " << i;
    }
  }
}

// A few centers of large elements do not make the screen coarse for the others.
TEST(KMeansLabelScreen, SmallCentersHaveAScaleOfTheirOwn) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const std::int64_t d = 256;
  const std::int64_t small = 48;
  LabelPairs of = {d, 25.0, std::vector<double>(d, 0.0), {}, {}};
  for (std::int64_t i = 0; i < 100 * d; ++i) of.rows.push_back(normal(random));
  for (std::int64_t i = 0; i < small * d; ++i) of.centres.push_back(0.02 * normal(random));
  for (std::int64_t i = 0; i < 12 * d; ++i) of.centres.push_back(normal(random));
  std::vector<double> reach;
  for (std::int64_t i = 0; i < 100; ++i) {
    double least = core::euclidean_key(of.rows.data() + i * d, of.centres.data(), d);
    for (std::int64_t c = 1; c < small; ++c) {
      least = std::min(least, core::euclidean_key(of.rows.data() + i * d, of.centres.data() + c * d, d));
    }
    reach.push_back(of.scale * std::sqrt(least) * (1 + 0x1p-40));
  }
  for (const Isa isa : isas()) {
    for (const auto& found : surviving(simd_kernels(isa), of, reach)) EXPECT_LE(found.size(), small / 3);
  }
}

// A quarter of rho_x |Y| / q + (U + rho_x) rho_y / q over U, where rho_y / q is at most half a step of the rows for
// each column.
TEST(KMeansLabelScreen, RoomIsAQuarterOfWhatRoundingAdds) {
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  constexpr std::int64_t d = 64;
  constexpr double scale = 20;
  std::vector<double> centres(300 * d);
  for (double& value : centres) value = 0.3 * normal(random);
  double length = 0;
  for (std::int64_t c = 0; c < 300; ++c) {
    length += scale * std::sqrt(core::euclidean_key(&centres[c * d], std::vector<double>(d).data(), d)) / 300;
  }
  std::vector<std::int32_t> all(300);
  std::iota(all.begin(), all.end(), 0);
  for (const Isa isa : isas()) {
    LabelScreen screen(simd_kernels(isa), {ScreenType::int8, ScreenKind::distance, d, scale, std::vector<double>(d)},
                       50, 300);
    screen.ask(Context::cpu({.threads = 1}), centres, all);
    for (std::int64_t row = 0; row < 50; ++row) {
      std::vector<double> values(d);
      double error = 0;
      for (double& value : values) {
        value = normal(random);
        error += std::pow(scale * value - std::nearbyint(std::clamp(scale * value, -128.0, 127.0)), 2);
      }
      screen.pack(row, values.data());
      const double rho = std::sqrt(error);
      EXPECT_EQ(screen.room(row, 0), 0);
      for (const double reach : {0.1, 50.0, 400.0}) {
        const double room = screen.room(row, reach);
        const double least = rho * length / (4 * reach);
        EXPECT_FALSE(!(room >= least * (1 - 1e-6))) << room << " " << least;
        EXPECT_FALSE(!(room <= least + (reach + rho) * 0.5 * std::sqrt(d) / (4 * reach))) << room << " " << least;
      }
    }
  }
}

// Of whole numbers within 127 of the center nothing is rounded.
TEST(KMeansLabelScreen, ChoosesTheScaleOfWholeNumbers) {
  std::mt19937_64 random(9);
  std::vector<float> values(300 * 16);
  for (float& value : values) value = static_cast<float>(random() % 100);
  const Context ctx = Context::cpu({.threads = 1});
  const Screen whole = LabelScreen::choose(ctx, TableView(values.data(), 300, 16), std::vector<double>(16, 49.7));
  EXPECT_EQ(whole.scale(), 1);
  EXPECT_EQ(whole.centre(), std::vector<double>(16, 50));
  for (float& value : values) value += 0.25F;
  const Screen parts = LabelScreen::choose(ctx, TableView(values.data(), 300, 16), std::vector<double>(16, 49.7));
  EXPECT_GT(parts.scale(), 1);
  EXPECT_EQ(parts.centre(), std::vector<double>(16, 49.7));
}

}  // namespace
}  // namespace vicinal::cpu

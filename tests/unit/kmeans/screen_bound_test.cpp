// Every term of the bound of k-means' screen (formulas/kmeans/float_bound.hpp), against its lemma in 113 bits. The
// kernels take the lemma's constants from a tile, so that a test may make each of them far larger than any rounding:
// then no term hides behind the allowance of another.
#include <gtest/gtest.h>
#include <quadmath.h>

#include <cmath>
#include <vector>

#include "core/philox.hpp"
#include "cpu/kmeans/screen.hpp"
#include "quad.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cpu {
namespace {

// Of LloydCentres: k centers of d columns in a frame that moves nothing.
struct Staged {
  LloydFrame frame;
  LloydCentres centres;
  LloydTile tile{};
  std::vector<float> points;
  std::vector<double> values;
  std::int64_t k;
  std::int64_t d;

  Staged(const LloydKernels& kernels, std::vector<double> of, std::int64_t columns)
      : frame{true, 1, std::vector<float>(static_cast<std::size_t>(columns + 4), 0)},
        centres(kernels, frame, columns),
        points(static_cast<std::size_t>((columns + 1) * kernels.tile_points)),
        values(std::move(of)),
        k(static_cast<std::int64_t>(values.size()) / columns),
        d(columns) {
    EXPECT_TRUE(centres.assign(values));
    centres.attach(tile);
    tile.points = points.data();
  }

  // Of a center as the kernels read it.
  [[nodiscard]] Quad length(std::int64_t c) const {
    Quad squares = 0;
    for (std::int64_t j = 0; j < d; ++j) {
      const Quad value = static_cast<float>(values[static_cast<std::size_t>(c * d + j)]);
      squares += value * value;
    }
    return sqrtq(squares);
  }
  [[nodiscard]] Quad length_of_point(std::int64_t i, std::int64_t points_of_tile) const {
    Quad squares = 0;
    for (std::int64_t j = 0; j < d; ++j) {
      const Quad value = points[static_cast<std::size_t>(j * points_of_tile + i)];
      squares += value * value;
    }
    return sqrtq(squares);
  }
};

double uniform(std::uint64_t stream, std::int64_t at) {
  return 2 * core::philox_uniform(15, stream, static_cast<std::uint64_t>(at)) - 1;
}

std::vector<const LloydKernels*> all_kernels() {
  std::vector<const LloydKernels*> all;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    try {
      Context::cpu({.threads = 1, .isa = isa});
      all.push_back(&lloyd_kernels(isa));
    } catch (const Error&) {  // not on this machine
    }
  }
  return all;
}

TEST(LloydScreenBound, ConstantsAreOnTheirSafeSides) {
  for (const LloydKernels* kernels : all_kernels()) {
    for (const std::int64_t d : {1, 2, 7, 64, 1000, 65536}) {
      std::vector<double> values(static_cast<std::size_t>(5 * d), 0.0);
      for (std::int64_t c = 0; c < 5; ++c) {
        for (std::int64_t j = 0; j < std::min<std::int64_t>(d, 20); ++j) {
          values[static_cast<std::size_t>(c * d + j)] = static_cast<float>(
              uniform(static_cast<std::uint64_t>(d), c * 20 + j) * std::ldexp(1.0, -7 * static_cast<int>(c)));
        }
      }
      const Staged staged(*kernels, values, d);
      const Quad b = power2(-24) * Quad(1.25) * static_cast<Quad>(d + 4);
      const Quad unit = power2(-24) * (1 + power2(-10));
      const core::LloydBound& constants = staged.tile.bound;
      EXPECT_FALSE(!(constants.beta >= b));
      EXPECT_FALSE(!(constants.unit >= unit));
      EXPECT_FALSE(!(constants.tiny >= power2(-120)));
      EXPECT_FALSE(!(constants.key_margin >= static_cast<Quad>(d + 8) * power2(-51)));
      Quad least = staged.length(0);
      Quad most = 0;
      for (std::int64_t c = 0; c < staged.k; ++c) {
        const Quad length = staged.length(c);
        least = fminq(least, length);
        most = fmaxq(most, length);
        const Quad half = length * length / 2;
        const Quad f = b * half + power2(-100);
        const std::int64_t tall = kernels->centre_tile;
        const Quad start = staged.tile.panels[c / tall * tall * (d + 2) + c % tall];  // five centers: one panel or two
        EXPECT_FALSE(!(start + half >= f)) << d;
        EXPECT_FALSE(!(start + half <= staged.tile.allowances[c])) << d;  // S_k >= P_k - 2 (g e_k + f_k)
        EXPECT_FALSE(!(staged.tile.lengths[c] >= length)) << d;
      }
      EXPECT_FALSE(!(constants.least_norm <= least * (1 + power2(-29)))) << d;
      EXPECT_FALSE(!(constants.most_rho >= unit * most + power2(-120))) << d;
    }
  }
}

// What a tile says of each point, against the lemma with the constants that the tile was given.
void expect_lemma(const LloydKernels& kernels, Staged& staged) {
  LloydTile& tile = staged.tile;
  const core::LloydBound& of = tile.bound;
  kernels.screen(tile);
  for (std::int64_t i = 0; i < kernels.tile_points; ++i) {
    const Quad x = staged.length_of_point(i, kernels.tile_points);
    const Quad g = staged.points[static_cast<std::size_t>(staged.d * kernels.tile_points + i)];
    EXPECT_FALSE(!(g >= (of.beta * x + 2 * static_cast<Quad>(of.unit) * (x + of.least_norm)) *
                            (1 + 2 * static_cast<Quad>(of.beta))));
    const auto best = static_cast<std::size_t>(tile.index[i]);
    const Quad e = tile.lengths[best];
    const Quad s = tile.best[i] - 2 * (g * e + tile.allowances[best]);
    const Quad delta = sqrtq(fmaxq(x * x - 2 * s, 0));
    const Quad rho_x = of.unit * x + of.tiny;
    const Quad rho_b = of.unit * e + of.tiny;
    const Quad u = delta + rho_x + rho_b;
    EXPECT_FALSE(!(tile.upper[i] >= u));
    const Quad w = 2 * rho_x + rho_b + of.key_margin * u;
    EXPECT_FALSE(!(tile.threshold[i] <= s - w * (delta + w / 2)));
    // g and this test go by the same bound of |x~|, so that R may be as large as it makes it.
    const Quad longest = sqrtq(tile.norms[i] * (1 + 2 * Quad(of.beta))) * (1 + power2(-19)) + of.tiny;
    EXPECT_TRUE(u + rho_x <= Quad(1.0625) * (longest + of.least_norm) || tile.threshold[i] == -HUGE_VALF);
    const Quad beyond = sqrtq(fmaxq(x * x - 2 * static_cast<Quad>(tile.second[i]), 0)) - rho_x - of.most_rho;
    EXPECT_FALSE(!(tile.lower[i] <= fmaxq(beyond, 0)));
  }
}

TEST(LloydScreenBound, ATileAllowsForEveryTermOfTheLemma) {
  for (const LloydKernels* kernels : all_kernels()) {
    for (int trial = 0; trial < 400; ++trial) {
      const std::int64_t d = 1 + trial % 5;
      const auto stream = static_cast<std::uint64_t>(trial);
      std::vector<double> values;
      for (std::int64_t i = 0; i < (2 + trial % 3) * d; ++i) values.push_back(static_cast<float>(uniform(stream, i)));
      Staged staged(*kernels, values, d);
      for (std::int64_t i = 0; i < d * kernels->tile_points; ++i) {
        staged.points[static_cast<std::size_t>(i)] =
            static_cast<float>(uniform(stream + 1000, i)) * (trial % 7 == 0 ? 0x1p-10F : 4.0F);
      }
      // As they are, one of them much larger, or all.
      core::LloydBound& constants = staged.tile.bound;
      const int which = trial / 5 % 8;
      if (which == 1 || which == 7) constants.beta = 0x1p-7F;
      if (which == 2 || which == 7) constants.unit = 0x1p-9F;
      if (which == 3 || which == 7) constants.tiny = 0x1p-8F;
      if (which == 4 || which == 7) constants.key_margin = 0x1p-6F;
      if (which == 5 || which == 7) constants.most_rho = 0x1p-5F;
      if (which == 6 || which == 7) constants.least_norm = 4;
      expect_lemma(*kernels, staged);
    }
  }
}

// Where rounding is all there is, so that the lemma's constants decide alone: the nearest center at the origin.
TEST(LloydScreenBound, ATileAllowsForRoundingsAroundTheOrigin) {
  for (const LloydKernels* kernels : all_kernels()) {
    for (const double away : {0.0, 1.0, 1024.0}) {
      Staged staged(*kernels, {0, 0, 3 * away + 1, 3 * away}, 2);
      for (std::int64_t i = 0; i < 2 * kernels->tile_points; ++i) {
        staged.points[static_cast<std::size_t>(i)] = static_cast<float>(away * uniform(3, i));
      }
      expect_lemma(*kernels, staged);
    }
  }
}

TEST(LloydScreenBound, ACentreShiftIsNotBelowTheExactOne) {
  const auto expect_above = [](const std::vector<double>& a, const std::vector<double>& b, double scale) {
    Quad squares = 0;
    for (std::size_t j = 0; j < a.size(); ++j) squares += (Quad(a[j]) - b[j]) * (Quad(a[j]) - b[j]);
    const float shift = centre_shift(a.data(), b.data(), static_cast<std::int64_t>(a.size()), scale);
    EXPECT_FALSE(!(shift >= sqrtq(squares) * scale)) << a[0] << " " << scale;
    EXPECT_TRUE(a != b || shift == 0);
  };
  expect_above({1, 2}, {1, 2}, 4);
  expect_above({1, 0x1p-27 * 0.9}, {0, 0}, 1);         // the key is rounded to 1
  expect_above({0x1p-600, 0}, {0, 0}, 0x1p290);        // the key vanishes
  expect_above({0x1p-440, 0}, {0, 0}, 0.25);           // below the least float32
  expect_above({0x1p-300 * 1.7, 0}, {0, 0}, 0x1p160);  // among subnormal ones
  for (std::int64_t i = 0; i < 20000; ++i) {
    const double scale = std::ldexp(1.0, static_cast<int>(i % 40) - 20);
    const std::vector<double> a = {uniform(1, 3 * i), uniform(1, 3 * i + 1), uniform(1, 3 * i + 2)};
    expect_above(a, {0, uniform(2, i), i % 3 == 0 ? a[2] : 0}, scale);
  }
}

}  // namespace
}  // namespace vicinal::cpu

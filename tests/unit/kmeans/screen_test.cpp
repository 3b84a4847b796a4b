// The screen of k-means, tile by tile: no center with the least key is below the threshold, and the bounds of distances
// hold, checked in long double, on easy and on hard rows and for every instruction set
// (formulas/kmeans/float_bound.hpp).
#include "cpu/kmeans/screen.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/distance.hpp"
#include "core/philox.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cpu {
namespace {

struct Data {
  const char* name;
  double offset;
  double spread;
  double step;  // rows and centers are multiples of it, so that some tie
};

double normal(std::uint64_t stream, std::int64_t at) {
  double sum = -6;
  for (std::uint64_t i = 0; i < 12; ++i)
    sum += core::philox_uniform(7, stream, static_cast<std::uint64_t>(at) * 12 + i);
  return sum;
}

void check(const LloydKernels& kernels, const Data& data, std::int64_t d, std::int64_t k) {
  const std::int64_t points = kernels.tile_points;
  const auto value = [&](std::uint64_t stream, std::int64_t at) {
    const double raw = data.offset + data.spread * normal(stream, at);
    return data.step == 0 ? static_cast<float>(raw) : static_cast<float>(std::nearbyint(raw / data.step) * data.step);
  };
  std::vector<float> rows;
  std::vector<double> wide;
  for (std::int64_t i = 0; i < points * d; ++i) {
    rows.push_back(value(1, i) * (i % 11 == 0 ? 1 : 0.5F));
    wide.push_back(static_cast<double>(rows.back()));
  }
  std::vector<double> centres;
  for (std::int64_t i = 0; i < k * d; ++i)
    centres.push_back(static_cast<double>(value(2, i)) * (data.step == 0 ? 0.9 : 1));
  double largest = 0;
  for (const double x : wide) largest = std::max(largest, std::fabs(x));
  if (largest == 0) return;  // no screen serves rows of nothing but zeros
  const LloydFrame frame = LloydFrame::of(std::vector<double>(static_cast<std::size_t>(d), data.offset), largest);
  ASSERT_TRUE(frame.usable);
  LloydCentres screen(kernels, frame, d);
  ASSERT_TRUE(screen.assign(centres));
  std::vector<float> lanes(static_cast<std::size_t>((d + 1) * points));
  std::vector<float> scores(static_cast<std::size_t>((k + kMaxTileQueries) * points));
  std::vector<const float*> pointers;
  for (std::int64_t i = 0; i < points; ++i) pointers.push_back(rows.data() + i * d);
  kernels.stage(pointers.data(), d, static_cast<float>(frame.scale), frame.shift.data(), lanes.data());
  LloydTile tile{};
  screen.attach(tile);
  tile.points = lanes.data();
  tile.scores = scores.data();
  kernels.screen(tile);
  for (std::int64_t i = 0; i < points; ++i) {
    double least = HUGE_VAL;
    for (std::int64_t c = 0; c < k; ++c) {
      least = std::min(least, core::euclidean_key(wide.data() + i * d, centres.data() + c * d, d));
    }
    const auto& distinct = screen.distinct();
    for (std::size_t c = 0; c < distinct.size(); ++c) {
      const double* const centre = centres.data() + distinct[c] * d;
      const bool nearest = core::euclidean_key(wide.data() + i * d, centre, d) == least;
      EXPECT_FALSE(nearest &&
                   scores[c * static_cast<std::size_t>(points) + static_cast<std::size_t>(i)] < tile.threshold[i])
          << data.name << " d " << d << " point " << i;
      long double squared = 0;
      for (std::int64_t j = 0; j < d; ++j) {
        const long double gap = static_cast<long double>(wide[static_cast<std::size_t>(i * d + j)]) - centre[j];
        squared += gap * gap;
      }
      const long double distance = std::sqrt(squared) * static_cast<long double>(frame.scale);
      if (static_cast<std::int32_t>(c) == tile.index[i]) {
        EXPECT_FALSE(!(distance <= tile.upper[i])) << data.name << " d " << d;
      } else if (k > 1) {
        EXPECT_FALSE(!(distance >= tile.lower[i])) << data.name << " d " << d;
      }
    }
  }
}

TEST(LloydScreen, KeepsEveryNearestCentreAndItsBounds) {
  const Data all[] = {{"gaussian", 0, 1, 0},        {"offset", 1e6, 1, 0},    {"small offset", 10, 1, 0},
                      {"tiny", 0, 1e-30, 0},        {"huge", 0, 1e30, 0},     {"ties", 0, 2, 1},
                      {"ties far out", 1000, 2, 1}, {"one point", 5, 1e-9, 0}};
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    try {
      Context::cpu({.threads = 1, .isa = isa});
    } catch (const Error&) {
      continue;  // not on this machine
    }
    for (const Data& data : all) {
      for (const std::int64_t d : {1, 2, 3, 4, 5, 7, 16, 41, 130}) {
        for (const std::int64_t k : {2, 4, 5, 12, 13, 23, 29, 64}) check(lloyd_kernels(isa), data, d, k);
      }
    }
  }
}

TEST(LloydScreen, MovesBoundsAsOneRowAfterTheOtherWould) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> of = {0, 0.25F, 3, 0x1p-149F, 1e30F};
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    try {
      Context::cpu({.threads = 1, .isa = isa});
    } catch (const Error&) {
      continue;  // not on this machine
    }
    const LloydKernels& kernels = lloyd_kernels(isa);
    for (std::int64_t count = 0; count <= 70; ++count) {
      const Shifts shifts = {of.data(), 3, 0.25F, 2};
      std::vector<std::int32_t> labels;
      std::vector<float> upper;
      std::vector<float> lower;
      for (std::int64_t i = 0; i < count; ++i) {
        labels.push_back(static_cast<std::int32_t>(i * 7 % 5));
        upper.push_back(i % 11 == 3 ? infinity : static_cast<float>(5 + normal(1, i)));
        lower.push_back(i % 13 == 5 ? infinity : static_cast<float>(9 + 2 * normal(2, i)));
      }
      std::vector<std::int32_t> expected;
      std::vector<float> moved_upper = upper;
      std::vector<float> moved_lower = lower;
      for (std::size_t i = 0; i < labels.size(); ++i) {
        moved_upper[i] = (upper[i] + of[static_cast<std::size_t>(labels[i])]) * (1 + 0x1p-22F);
        moved_lower[i] = (lower[i] - (labels[i] == shifts.mover ? shifts.next : shifts.most)) * (1 - 0x1p-22F);
        if (!(moved_upper[i] * (1 + 0x1p-20F) < moved_lower[i])) expected.push_back(static_cast<std::int32_t>(i));
      }
      std::vector<std::int32_t> active(static_cast<std::size_t>(count + kernels.tile_points));
      active.resize(static_cast<std::size_t>(
          kernels.move_bounds(labels.data(), count, shifts, upper.data(), lower.data(), active.data())));
      EXPECT_EQ(active, expected) << name_of(isa) << ", " << count << " rows";
      EXPECT_EQ(upper, moved_upper);
      EXPECT_EQ(lower, moved_lower);
    }
  }
}

}  // namespace
}  // namespace vicinal::cpu

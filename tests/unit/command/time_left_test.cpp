// The time left that progress shows: how far it may be from the truth, and that it never rises, on curves of work over
// time that a clock of the test's own reads.
#include "base/time_left.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vicinal::cli {
namespace {

using Curve = std::function<double(double)>;  // share of the time -> share of the work

/// Straight between the points given.
Curve through(std::vector<std::pair<double, double>> points) {
  return [points = std::move(points)](double x) {
    std::size_t i = 1;
    while (i + 1 < points.size() && x > points[i].first) ++i;
    const auto [x0, y0] = points[i - 1];
    const auto [x1, y1] = points[i];
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
  };
}

struct Shown {
  int times = 0;
  int hidden = 0;
};

/// Runs a stage of `seconds` that is reported every 10 ms and drawn every 100 ms. Once a quarter of the work is done
/// and of the time gone, what is shown does not rise, and is within a factor of 2 of the truth, up to one `step`.
Shown run(const std::string& name, const Curve& curve, double seconds, double step = 0) {
  TimeLeft left;
  left.begin(100);
  Shown shown;
  double before = HUGE_VAL;
  const int reports = static_cast<int>(seconds * 100);
  for (int i = 0; i < reports; ++i) {
    const double time = 0.01 * i;
    const double done = curve(time / seconds);
    EXPECT_FALSE(left.add(100 + time, done));
    if (i % 10 != 0) continue;
    const std::optional<double> now = left.show(100 + time);
    if (done < 0.25 || time < seconds / 4) continue;
    ++shown.times;
    if (!now) {
      ++shown.hidden;
      continue;
    }
    const double truth = seconds - time;
    const double slack = step * seconds + 0.02;
    EXPECT_TRUE(*now <= before) << name << " at " << time << " of " << seconds << ": " << *now << " after " << before;
    EXPECT_TRUE(*now <= 2 * truth + slack && *now >= truth / 2 - slack)
        << name << " at " << time << " of " << seconds << ": " << *now << " for " << truth;
    before = *now;
  }
  return shown;
}

TEST(TimeLeft, NeitherRisesNorIsWrongByAFactorOfTwo) {
  const std::vector<std::pair<std::string, Curve>> curves = {
      {"linear", [](double x) { return x; }},
      {"fast in the beginning", through({{0, 0}, {0.02, 0.1}, {1, 1}})},
      {"slow in the beginning", through({{0, 0}, {0.3, 0.1}, {1, 1}})},
      {"slows down to two thirds", [](double x) { return (std::sqrt(1 + 1.25 * x) - 1) / 0.5; }},
      {"speeds up to twice the pace", [](double x) { return (x + x * x / 2) / 1.5; }},
      {"a pause", through({{0, 0}, {0.5, 0.55}, {0.6, 0.55}, {1, 1}})}};
  for (const double seconds : {4.0, 60.0, 1000.0}) {
    for (const auto& [name, curve] : curves) {
      const Shown shown = run(name, curve, seconds);
      EXPECT_GT(shown.times, 0) << name;
      EXPECT_LE(shown.hidden, shown.times / 50) << name << ", " << seconds << " s";
    }
    const Shown bursts = run(
        "bursts", [](double x) { return std::floor(20 * x) / 20; }, seconds, 0.05);
    EXPECT_EQ(bursts.hidden, 0);
    const Curve uneven = [](double x) { return std::floor(20 * x) / 20 + (std::fmod(20 * x, 1) < 0.25 ? 0 : 0.025); };
    EXPECT_EQ(run("uneven bursts", uneven, seconds, 0.05).hidden, 0);
  }
}

TEST(TimeLeft, SaysNothingWhereItWouldHaveToRise) {
  // Half of the work in a twentieth of the time: what is shown by then is soon untrue.
  const Curve curve = through({{0, 0}, {0.05, 0.5}, {1, 1}});
  TimeLeft left;
  left.begin(0);
  double before = HUGE_VAL;
  int hidden = 0;
  for (int i = 0; i < 1000; ++i) {
    left.add(0.1 * i, curve(0.001 * i));
    const std::optional<double> now = left.show(0.1 * i);
    if (!now) ++hidden;
    if (i < 25 || !now) continue;
    EXPECT_LE(*now, before);
    before = *now;
  }
  EXPECT_GT(hidden, 500);
  EXPECT_LT(before, 1);  // and it is back before the end
}

TEST(TimeLeft, LearnsInTheFirstQuarter) {
  // A tenth of the work in 2 s, the rest in 98 s.
  const Curve curve = through({{0, 0}, {0.02, 0.1}, {1, 1}});
  TimeLeft left;
  left.begin(0);
  EXPECT_FALSE(left.show(0.5));
  left.add(0.5, 0.04);
  EXPECT_FALSE(left.show(1.5)) << "one step says nothing";
  std::optional<double> early;
  for (int i = 51; i <= 2500; ++i) {
    left.add(0.01 * i, curve(0.0001 * i));
    const std::optional<double> now = left.show(0.01 * i);
    if (i <= 200 && now) early = now;
  }
  ASSERT_TRUE(early);
  EXPECT_LT(*early, 25);
  const std::optional<double> late = left.show(25);
  ASSERT_TRUE(late);
  EXPECT_NEAR(*late, 75, 15);
}

TEST(TimeLeft, StagesHavePacesOfTheirOwn) {
  TimeLeft left;
  double start = 0;
  for (const double seconds : {3.0, 50.0, 6.0}) {
    left.begin(start);
    for (int i = 0; i <= 50; ++i) {
      const double time = start + seconds * i / 100;
      EXPECT_FALSE(left.add(time, 0.01 * i));
      left.show(time);
    }
    EXPECT_NEAR(*left.show(start + seconds / 2), seconds / 2, 1e-9);
    EXPECT_NEAR(left.elapsed(start + seconds / 2), seconds / 2, 1e-9);
    start += seconds;
  }
  // Small falls of the share are ignored; a large one is a new run of the stage.
  const double now = start - 3;
  EXPECT_FALSE(left.add(now, 0.4));
  EXPECT_TRUE(left.show(now));
  EXPECT_TRUE(left.add(now, 0.1));
  EXPECT_EQ(left.elapsed(now), 0);
  EXPECT_FALSE(left.show(now));
}

}  // namespace
}  // namespace vicinal::cli

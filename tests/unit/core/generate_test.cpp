// Generated tables: the formulas, the counts, the moments; the same bits on any number of threads and, by stored
// check sums, on any machine.
#include "vicinal/generate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/elementary.hpp"

namespace vicinal {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr Shape kShapes[] = {Shape::swiss_roll, Shape::s_curve, Shape::blobs,    Shape::moons,
                             Shape::kdd,        Shape::poker,   Shape::covertype};

Generated made(const GenerateOptions& options, int threads = 1) {
  return generate(Context::cpu({.threads = threads}), options);
}

/// FNV-1a over the bits: any other bit anywhere changes it.
std::uint64_t sum_of_bits(const std::vector<double>& values) {
  std::uint64_t sum = 0xcbf29ce484222325U;
  for (const double value : values) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) sum = (sum ^ (bits >> shift & 255)) * 0x100000001b3U;
  }
  return sum;
}

void expect_near(double got, double wanted, double tolerance) {
  EXPECT_TRUE(std::abs(got - wanted) <= tolerance) << got << " is not " << wanted;
}

TEST(Elementary, SineAndCosineAgreeWithTheLibrary) {
  for (int i = -20000; i <= 20000; ++i) {
    const double angle = i * 0.001 + i * 1e-9;
    const auto [sin, cos] = core::sin_cos(angle);
    ASSERT_TRUE(std::abs(sin - std::sin(angle)) <= 4e-16) << angle;
    ASSERT_TRUE(std::abs(cos - std::cos(angle)) <= 4e-16) << angle;
  }
}

TEST(Elementary, TheLogarithmAgreesWithTheLibrary) {
  for (int i = 1; i <= 20000; ++i) {
    for (const double scale : {0x1p-53, 1e-10, 5e-5, 1.0}) {
      const double x = i * scale;
      const double wanted = std::log(x);
      ASSERT_TRUE(std::abs(core::natural_log(x) - wanted) <= 4e-16 * std::max(1e-3, std::abs(wanted))) << x;
    }
  }
  EXPECT_EQ(core::natural_log(1), 0);
}

TEST(Generate, SwissRollFollowsItsFormula) {
  const Generated roll = made({.shape = Shape::swiss_roll, .rows = 5000, .seed = 3});
  ASSERT_EQ(roll.cols, 3);
  ASSERT_EQ(roll.points.size(), 15000U);
  ASSERT_EQ(roll.parameters.size(), 10000U);
  EXPECT_TRUE(roll.labels.empty());
  for (std::size_t i = 0; i < 5000; ++i) {
    const double t = roll.parameters[2 * i];
    const double height = roll.parameters[2 * i + 1];
    ASSERT_TRUE(t >= 1.5 * kPi && t <= 4.5 * kPi);
    ASSERT_TRUE(height >= 0 && height <= 21);
    expect_near(roll.points[3 * i], t * std::cos(t), 1e-14);
    EXPECT_EQ(roll.points[3 * i + 1], height);
    expect_near(roll.points[3 * i + 2], t * std::sin(t), 1e-14);
  }
}

TEST(Generate, SCurveFollowsItsFormula) {
  const Generated curve = made({.shape = Shape::s_curve, .rows = 5000, .seed = 4});
  ASSERT_EQ(curve.cols, 3);
  for (std::size_t i = 0; i < 5000; ++i) {
    const double t = curve.parameters[2 * i];
    const double height = curve.parameters[2 * i + 1];
    ASSERT_TRUE(std::abs(t) <= 1.5 * kPi);
    ASSERT_TRUE(height >= 0 && height <= 2);
    expect_near(curve.points[3 * i], std::sin(t), 1e-15);
    EXPECT_EQ(curve.points[3 * i + 1], height);
    expect_near(curve.points[3 * i + 2], std::copysign(1, t) * (std::cos(t) - 1), 1e-15);
  }
}

TEST(Generate, MoonsAreTwoEvenlySpacedHalfCircles) {
  const Generated moons = made({.shape = Shape::moons, .rows = 101});
  ASSERT_EQ(moons.cols, 2);
  for (std::size_t i = 0; i < 101; ++i) {
    const bool outer = i < 50;
    EXPECT_EQ(moons.labels[i], outer ? 0 : 1);
    const double t = outer ? kPi * static_cast<double>(i) / 49 : kPi * static_cast<double>(i - 50) / 50;
    expect_near(moons.parameters[2 * i], t, 1e-15);
    expect_near(moons.points[2 * i], outer ? std::cos(t) : 1 - std::cos(t), 1e-15);
    expect_near(moons.points[2 * i + 1], outer ? std::sin(t) : 0.5 - std::sin(t), 1e-15);
  }
}

TEST(Generate, BlobsAreEvenlySizedAndNormalAroundTheirCenters) {
  constexpr std::size_t kRows = 90001;
  const Generated blobs = made({.shape = Shape::blobs, .rows = kRows, .cols = 5, .centers = 3, .noise = 2, .seed = 9});
  EXPECT_TRUE(blobs.parameters.empty());
  std::vector<std::int64_t> sizes(3);
  std::vector<double> sums(15);
  std::vector<double> squares(15);
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto label = static_cast<std::size_t>(blobs.labels[i]);
    ++sizes[label];
    for (std::size_t j = 0; j < 5; ++j) {
      sums[label * 5 + j] += blobs.points[i * 5 + j];
      squares[label * 5 + j] += blobs.points[i * 5 + j] * blobs.points[i * 5 + j];
    }
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{30001, 30000, 30000}));
  const auto still = made({.shape = Shape::blobs, .rows = 3, .cols = 5, .centers = 3, .noise = 1e-300, .seed = 9});
  for (std::size_t i = 0; i < 15; ++i) {
    const double mean = sums[i] / 30000;
    const double deviation = std::sqrt(squares[i] / 30000 - mean * mean);
    EXPECT_TRUE(std::abs(still.points[i]) <= 10);
    expect_near(mean, still.points[i], 6 * 2 / std::sqrt(30000.0) + 1e-3);
    expect_near(deviation, 2, 0.06);
  }
}

TEST(Generate, NoiseIsNormalWithTheDeviationAskedFor) {
  const GenerateOptions plain = {.shape = Shape::swiss_roll, .rows = 50000, .seed = 1};
  GenerateOptions noisy = plain;
  noisy.noise = 0.5;
  const Generated a = made(plain);
  const Generated b = made(noisy);
  EXPECT_EQ(a.parameters, b.parameters);
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  for (std::size_t i = 0; i < a.points.size(); ++i) {
    const double z = (b.points[i] - a.points[i]) / 0.5;
    sum += z;
    squares += z * z;
    fourths += z * z * z * z;
  }
  const auto n = static_cast<double>(a.points.size());
  expect_near(sum / n, 0, 6 / std::sqrt(n));
  expect_near(squares / n, 1, 6 * std::sqrt(2 / n));
  expect_near(fourths / n, 3, 6 * std::sqrt(96 / n));
}

TEST(Generate, BlobsWithoutNoiseHaveDeviationOne) {
  const GenerateOptions options = {.shape = Shape::blobs, .rows = 1000, .seed = 5};
  GenerateOptions one = options;
  one.noise = 1;
  EXPECT_EQ(made(options).points, made(one).points);
}

TEST(Generate, RowsDoNotDependOnHowManyThereAre) {
  for (const Shape shape : kShapes) {
    if (shape == Shape::moons) continue;  // spaced evenly
    const Generated few = made({.shape = shape, .rows = 10, .noise = 0.1, .seed = 2});
    const Generated many = made({.shape = shape, .rows = 1000, .noise = 0.1, .seed = 2});
    EXPECT_TRUE(std::equal(few.points.begin(), few.points.end(), many.points.begin()));
  }
}

TEST(Generate, SeedsGiveDifferentTables) {
  EXPECT_NE(made({.rows = 10, .seed = 1}).points, made({.rows = 10, .seed = 2}).points);
}

TEST(Generate, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const Shape shape : kShapes) {
    const GenerateOptions options = {.shape = shape, .rows = 40000, .cols = 3, .noise = 0.1, .seed = 8};
    const Generated one = made(options);
    for (const int threads : {2, 3, 7}) {
      const Generated many = made(options, threads);
      EXPECT_EQ(many.labels, one.labels);
      EXPECT_EQ(sum_of_bits(many.points), sum_of_bits(one.points));
      EXPECT_EQ(sum_of_bits(many.parameters), sum_of_bits(one.parameters));
    }
  }
}

TEST(Generate, GivesTheSameBitsOnEveryMachine) {
  const auto sum = [](Shape shape) {
    return sum_of_bits(made({.shape = shape, .rows = 1000, .cols = 3, .noise = 0.1, .seed = 42}).points);
  };
  EXPECT_EQ(sum(Shape::swiss_roll), 14010944104311028856U);
  EXPECT_EQ(sum(Shape::s_curve), 16130117187664715675U);
  EXPECT_EQ(sum(Shape::blobs), 7256167253113745480U);
  EXPECT_EQ(sum(Shape::moons), 6218779948227361038U);
}

/// Distinct rows of the table.
std::size_t distinct(const Generated& made) {
  std::set<std::vector<double>> rows;
  for (auto row = made.points.begin(); row != made.points.end(); row += made.cols) rows.emplace(row, row + made.cols);
  return rows.size();
}

std::int64_t count_of(const Generated& made, std::int64_t label) {
  return std::count(made.labels.begin(), made.labels.end(), label);
}

// Of the 494,021 rows of KDD's 10 percent file, 280,790 are smurf and 97,278 normal; smurf has 641 distinct rows.
TEST(Generate, KddHasTheClassesAndTheEqualRowsOfTheDataSet) {
  const Generated kdd = made({.shape = Shape::kdd, .rows = 20000, .seed = 3});
  EXPECT_EQ(kdd.cols, 41);
  EXPECT_TRUE(kdd.parameters.empty());
  expect_near(static_cast<double>(count_of(kdd, 1)), 11368, 5 * 70);  // five deviations of the binomial
  expect_near(static_cast<double>(count_of(kdd, 0)), 3938, 5 * 56);
  EXPECT_LE(distinct(kdd), 20000U - 11368 + 350 + 641);
  for (const double value : kdd.points) {
    const double hundredth = std::round(100 * value) / 100;
    ASSERT_TRUE(value >= 0 && value == hundredth) << value;
  }
}

TEST(Generate, PokerDealsCardsAndNamesTheHand) {
  const Generated hands = made({.shape = Shape::poker, .rows = 20000, .seed = 3});
  ASSERT_EQ(hands.cols, 10);
  for (std::int64_t i = 0; i < hands.rows; ++i) {
    std::set<std::pair<double, double>> cards;
    for (std::int64_t c = 0; c < 5; ++c) {
      const double suit = hands.points[i * 10 + 2 * c];
      const double rank = hands.points[i * 10 + 2 * c + 1];
      ASSERT_TRUE(suit >= 1 && suit <= 4 && rank >= 1 && rank <= 13);
      cards.emplace(suit, rank);
    }
    ASSERT_EQ(cards.size(), 5U);
  }
  // Of 2,598,960 hands 1,098,240 are a pair and 54,912 three of a kind.
  expect_near(static_cast<double>(count_of(hands, 1)), 8451, 5 * 70);
  expect_near(static_cast<double>(count_of(hands, 3)), 423, 5 * 21);
}

TEST(Generate, CovertypeHasWholeNumbersAndSevenClasses) {
  const Generated cover = made({.shape = Shape::covertype, .rows = 20000, .seed = 3});
  ASSERT_EQ(cover.cols, 10);
  for (const double value : cover.points) ASSERT_EQ(value, std::floor(value));
  expect_near(static_cast<double>(count_of(cover, 2)), 9752, 5 * 71);
  expect_near(static_cast<double>(count_of(cover, 4)), 95, 5 * 10);
  EXPECT_EQ(count_of(cover, 0) + count_of(cover, 8), 0);
}

TEST(Generate, OptionsOutsideTheirDomainAreRefusedByName) {
  const auto refused = [](const GenerateOptions& options, const char* name) {
    try {
      made(options);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  };
  refused({.rows = 0}, "rows = 0");
  refused({.rows = -5}, "rows = -5");
  refused({.cols = 0}, "cols = 0");
  refused({.centers = 0}, "centers = 0");
  refused({.noise = -1}, "noise = -1");
  refused({.noise = std::numeric_limits<double>::infinity()}, "noise = inf");
  refused({.noise = std::numeric_limits<double>::quiet_NaN()}, "noise = nan");
}

TEST(Generate, ATableBeyondTheMemoryLimitIsRefusedBeforeItStarts) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const GenerateOptions& options :
       {GenerateOptions{.rows = kMost, .cols = kMost}, {.rows = 1, .cols = 1, .centers = kMost}, {.rows = 1000}}) {
    try {
      generate(Context::cpu({.threads = 1, .memory_limit = 1000}), options);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::over_memory);
    }
  }
}

TEST(Generate, OneRowIsEnough) {
  for (const Shape shape : kShapes) {
    const Generated one = made({.shape = shape, .rows = 1});
    for (const double value : one.points) EXPECT_TRUE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace vicinal

// Synthetic tables (contract clauses 8 and 19): every draw is a Philox number by (seed, stream, counter), the counter
// is the row's, and sines and logarithms are our own, so the bits depend on nothing but the options. O(rows * cols).
#include "vicinal/generate.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <string>

#include "core/elementary.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/philox.hpp"
#include "ops/common/twins.hpp"

namespace vicinal {
namespace {

/// What a draw is for: one stream each, so that none depends on how many others are made.
enum Stream : std::uint64_t { kCenters = 0, kPlace = 1, kNoise = 2 };

constexpr double kPi = std::numbers::pi;
constexpr double kMaxNoise = 1e300;  // a normal draw stays below 9, so nothing overflows
constexpr std::int64_t kElementsPerTask = 1 << 15;

[[noreturn]] void refuse_option(const char* option, const std::string& value, const char* domain) {
  throw Error(ErrorCode::invalid_argument, std::string("generate: ") + option + " = " + value + ": must be " + domain);
}

/// Two numbers of one counter: the first 53 bits in [0, 1), and the second.
std::array<double, 2> uniform_pair(std::uint64_t seed, Stream stream, std::uint64_t counter) {
  const auto x = core::philox(seed, stream, counter);
  const auto to_double = [](std::uint32_t high, std::uint32_t low) {
    return static_cast<double>((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
  };
  return {to_double(x[0], x[1]), to_double(x[2], x[3])};
}

/// Two standard normal numbers of one counter (Box and Muller 1958).
std::array<double, 2> normal_pair(std::uint64_t seed, std::uint64_t counter) {
  const auto [u, v] = uniform_pair(seed, kNoise, counter);
  const double length = std::sqrt(-2 * core::natural_log(u + 0x1p-53));  // (0, 1]: no logarithm of zero
  const auto [sin, cos] = core::sin_cos(2 * kPi * v);
  return {length * cos, length * sin};
}

void add_noise(std::uint64_t seed, std::int64_t row, double deviation, std::span<double> point) {
  if (deviation == 0) return;
  const std::uint64_t pairs = (point.size() + 1) / 2;
  for (std::size_t j = 0; j < point.size(); j += 2) {
    const auto normal = normal_pair(seed, static_cast<std::uint64_t>(row) * pairs + j / 2);
    point[j] += deviation * normal[0];
    if (j + 1 < point.size()) point[j + 1] += deviation * normal[1];
  }
}

/// The i-th of n evenly spaced angles from 0 to pi.
double spaced_angle(std::int64_t i, std::int64_t n) {
  if (n == 1) return 0;
  return i == n - 1 ? kPi : static_cast<double>(i) * (kPi / static_cast<double>(n - 1));
}

void check(const GenerateOptions& options) {
  if (options.rows < 1) refuse_option("rows", std::to_string(options.rows), "at least 1");
  if (!(options.noise >= 0 && options.noise <= kMaxNoise)) {
    refuse_option("noise", fmt::format("{}", options.noise), "between 0 and 1e300");
  }
  if (options.shape != Shape::blobs) return;
  if (options.cols < 1) refuse_option("cols", std::to_string(options.cols), "at least 1");
  if (options.centers < 1) refuse_option("centers", std::to_string(options.centers), "at least 1");
}

std::int64_t cols_of(const GenerateOptions& options) {
  switch (options.shape) {
    case Shape::swiss_roll:
    case Shape::s_curve:
      return 3;
    case Shape::moons:
      return 2;
    case Shape::blobs:
      return options.cols;
    case Shape::kdd:
      return ops::kKddColumns;
    case Shape::poker:
      return ops::kPokerColumns;
    case Shape::covertype:
      return ops::kCovertypeColumns;
  }
  throw Error(ErrorCode::invalid_argument, "generate: unknown shape");
}

/// Allocates the result, after asking whether it may be that large.
Generated allocate(const Context& ctx, const GenerateOptions& options) {
  const bool blobs = options.shape == Shape::blobs;
  const bool labels = blobs || options.shape == Shape::moons || ops::is_twin(options.shape);
  const bool parameters = !blobs && !ops::is_twin(options.shape);
  Generated made;
  made.rows = options.rows;
  made.cols = cols_of(options);
  const double row_numbers = static_cast<double>(made.cols) + (parameters ? 2 : 0) + (labels ? 1 : 0);
  const double center_numbers = blobs ? static_cast<double>(options.centers) * static_cast<double>(made.cols) : 0;
  const double bytes = 8 * (static_cast<double>(made.rows) * row_numbers + center_numbers);
  core::require_memory(ctx, bytes < 0x1p62 ? static_cast<std::uint64_t>(bytes) : std::uint64_t{1} << 62, "generate");
  made.points.resize(static_cast<std::size_t>(made.rows * made.cols));
  if (parameters) made.parameters.resize(static_cast<std::size_t>(made.rows * 2));
  if (labels) made.labels.resize(static_cast<std::size_t>(made.rows));
  return made;
}

/// Row by row: where it lies before noise.
class Placer {
 public:
  Placer(const GenerateOptions& options, std::int64_t cols) : options_(options), cols_(cols) {
    if (options.shape != Shape::blobs) return;
    centers_.resize(static_cast<std::size_t>(options.centers * cols));
    for (std::size_t i = 0; i < centers_.size(); ++i) {
      centers_[i] = -10 + 20 * core::philox_uniform(options.seed, kCenters, i);
    }
  }

  void place(std::int64_t row, Generated& made) const {
    double* point = made.points.data() + row * cols_;
    double* const parameters = made.parameters.data() + (made.parameters.empty() ? 0 : row * 2);
    switch (options_.shape) {
      case Shape::swiss_roll:
        return place_swiss_roll(row, point, parameters);
      case Shape::s_curve:
        return place_s_curve(row, point, parameters);
      case Shape::moons:
        return place_moon(row, point, parameters, made.labels[static_cast<std::size_t>(row)]);
      case Shape::blobs:
        made.labels[static_cast<std::size_t>(row)] = row % options_.centers;
        std::copy_n(centers_.data() + row % options_.centers * cols_, cols_, point);
        return;
      case Shape::kdd:
      case Shape::poker:
      case Shape::covertype:
        made.labels[static_cast<std::size_t>(row)] =
            ops::place_twin(options_.shape, options_.seed, row, {point, static_cast<std::size_t>(cols_)});
        return;
    }
  }

 private:
  void place_swiss_roll(std::int64_t row, double* point, double* parameters) const {
    const auto [u, v] = uniform_pair(options_.seed, kPlace, static_cast<std::uint64_t>(row));
    const double t = 1.5 * kPi * (1 + 2 * u);
    const auto [sin, cos] = core::sin_cos(t);
    parameters[0] = t;
    parameters[1] = 21 * v;
    point[0] = t * cos;
    point[1] = parameters[1];
    point[2] = t * sin;
  }
  void place_s_curve(std::int64_t row, double* point, double* parameters) const {
    const auto [u, v] = uniform_pair(options_.seed, kPlace, static_cast<std::uint64_t>(row));
    const double t = 3 * kPi * (u - 0.5);
    const auto [sin, cos] = core::sin_cos(t);
    parameters[0] = t;
    parameters[1] = 2 * v;
    point[0] = sin;
    point[1] = parameters[1];
    point[2] = t < 0 ? 1 - cos : cos - 1;
  }
  void place_moon(std::int64_t row, double* point, double* parameters, std::int64_t& label) const {
    const std::int64_t outer = options_.rows / 2;
    label = row < outer ? 0 : 1;
    const double t = label == 0 ? spaced_angle(row, outer) : spaced_angle(row - outer, options_.rows - outer);
    const auto [sin, cos] = core::sin_cos(t);
    parameters[0] = t;
    point[0] = label == 0 ? cos : 1 - cos;
    point[1] = label == 0 ? sin : 0.5 - sin;
  }

  const GenerateOptions& options_;
  std::int64_t cols_;
  std::vector<double> centers_;  // [centers, cols]
};

}  // namespace

Generated generate(const Context& ctx, const GenerateOptions& options) try {
  const core::Entry entry;
  check(options);
  Generated made = allocate(ctx, options);
  const Placer placer(options, made.cols);
  const double deviation = options.shape == Shape::blobs && options.noise == 0 ? 1 : options.noise;
  const std::int64_t rows_per_task = std::max<std::int64_t>(1, kElementsPerTask / made.cols);
  const std::int64_t tasks = (made.rows + rows_per_task - 1) / rows_per_task;
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int) {
    ctx.report("generate", static_cast<double>(task) / static_cast<double>(tasks));
    const std::int64_t end = std::min(made.rows, (task + 1) * rows_per_task);
    for (std::int64_t row = task * rows_per_task; row < end; ++row) {
      placer.place(row, made);
      add_noise(options.seed, row, deviation,
                {made.points.data() + row * made.cols, static_cast<std::size_t>(made.cols)});
    }
  });
  ctx.report("generate", 1);
  return made;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

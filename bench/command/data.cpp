// See data.hpp.
#include "command/data.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <thread>

#include "core/philox.hpp"
#include "vicinal/generate.hpp"

namespace vicinal::cli {
namespace {

/// Streams of draws: the table's and the queries' own values, what the two share, and each row's choice.
enum Stream : std::uint64_t { kTable = 0, kQueries = 1, kShared = 2, kPhase = 3, kTableChoice = 4, kQueriesChoice = 5 };

struct Draws {
  std::uint64_t seed;
  std::uint64_t stream;

  [[nodiscard]] double uniform(std::int64_t i) const { return core::philox_uniform(seed, stream, std::uint64_t(i)); }
  /// Box and Muller; 1 - u is never 0.
  [[nodiscard]] double normal(std::int64_t i) const {
    return std::sqrt(-2 * std::log(1 - uniform(2 * i))) * std::cos(2 * std::numbers::pi * uniform(2 * i + 1));
  }
  /// One of 0 to n - 1.
  [[nodiscard]] std::int64_t below(std::int64_t n, std::int64_t i) const {
    return static_cast<std::int64_t>(uniform(i) * static_cast<double>(n));
  }
};

/// rows x cols values of `value(row, column)`.
template <class Value>
std::vector<double> fill(const Context& ctx, std::int64_t rows, std::int64_t cols, Value value) {
  std::vector<double> values(static_cast<std::size_t>(rows * cols));
  for (std::int64_t row = 0; row < rows; ++row) {
    if (row % 4096 == 0) ctx.check_cancelled();
    for (std::int64_t col = 0; col < cols; ++col) values[row * cols + col] = value(row, col);
  }
  return values;
}

/// Table and queries are the two ends of one table, so that they share their centers.
std::vector<double> blobs(const Context& ctx, const BenchData& data, bool queries) {
  GenerateOptions options;
  options.rows = data.rows + data.queries;
  options.cols = data.cols;
  options.centers = 16;
  options.seed = data.seed;
  const std::vector<double> all = generate(ctx, options).points;
  const auto split = all.begin() + data.rows * data.cols;
  return queries ? std::vector<double>(split, all.end()) : std::vector<double>(all.begin(), split);
}

/// Normal columns of standard deviations `deviation(column)`, turned by reflections that table and queries share.
template <class Deviation>
std::vector<double> spectrum(const Context& ctx, std::int64_t rows, std::int64_t cols, const Draws& own,
                             const Draws& shared, Deviation deviation) {
  constexpr std::int64_t kReflections = 4;
  std::vector<double> mirrors(static_cast<std::size_t>(kReflections * cols));
  for (std::int64_t r = 0; r < kReflections; ++r) {
    double square = 0;
    for (std::int64_t j = 0; j < cols; ++j) {
      double& value = mirrors[r * cols + j];
      value = shared.normal(r * cols + j);
      square += value * value;
    }
    for (std::int64_t j = 0; j < cols; ++j) mirrors[r * cols + j] /= std::sqrt(square);
  }
  std::vector<double> values(static_cast<std::size_t>(rows * cols));
  const std::int64_t threads = ctx.threads();
  const auto make_rows = [&](std::int64_t worker) {
    for (std::int64_t i = worker * rows / threads; i < (worker + 1) * rows / threads; ++i) {
      double* const row = values.data() + i * cols;
      for (std::int64_t j = 0; j < cols; ++j) row[j] = deviation(j) * own.normal(i * cols + j);
      for (std::int64_t r = 0; r < kReflections; ++r) {
        const double* const mirror = mirrors.data() + r * cols;
        double along = 0;
        for (std::int64_t j = 0; j < cols; ++j) along += row[j] * mirror[j];
        for (std::int64_t j = 0; j < cols; ++j) row[j] -= 2 * along * mirror[j];
      }
    }
  };
  std::vector<std::thread> workers;
  for (std::int64_t worker = 0; worker < threads; ++worker) workers.emplace_back(make_rows, worker);
  for (std::thread& worker : workers) worker.join();
  return values;
}

std::vector<double> make(const Context& ctx, const BenchData& data, bool queries) {
  if (data.kind == "blobs") return blobs(ctx, data, queries);
  const std::int64_t rows = queries ? data.queries : data.rows;
  const std::int64_t cols = data.cols;
  const Draws own{data.seed, queries ? kQueries : kTable};
  const Draws choice{data.seed, queries ? kQueriesChoice : kTableChoice};
  const Draws shared{data.seed, kShared};
  const Draws phase{data.seed, kPhase};
  const auto at = [cols](std::int64_t row, std::int64_t col) { return row * cols + col; };
  if (data.kind == "uniform") {
    return fill(ctx, rows, cols, [&](auto row, auto col) { return own.uniform(at(row, col)); });
  }
  if (data.kind == "clusters") {
    constexpr std::int64_t kCenters = 1000;
    return fill(ctx, rows, cols, [&](auto row, auto col) {
      return shared.uniform(at(choice.below(kCenters, row), col)) + data.sigma * own.normal(at(row, col));
    });
  }
  if (data.kind == "duplicates") {
    constexpr std::int64_t kOneNewOf = 10;
    const Draws table{data.seed, kTable};
    const std::int64_t distinct = (data.rows + kOneNewOf - 1) / kOneNewOf;
    return fill(ctx, rows, cols, [&](auto row, auto col) {
      return row % kOneNewOf == 0 ? own.uniform(at(row / kOneNewOf, col))
                                  : table.uniform(at(choice.below(distinct, row), col));
    });
  }
  if (data.kind == "gist") {
    return spectrum(ctx, rows, cols, own, shared, [](std::int64_t j) { return 1 / static_cast<double>(j + 1); });
  }
  if (data.kind == "sift") {
    const auto deviation = [](std::int64_t j) { return 60 / (1 + static_cast<double>(j) / 4); };
    std::vector<double> values = spectrum(ctx, rows, cols, own, shared, deviation);
    for (double& value : values) value = std::clamp(std::nearbyint(value + 30), 0.0, 255.0);
    return values;
  }
  if (data.kind == "embedded") {
    constexpr std::int64_t kSheet = 4;
    return fill(ctx, rows, cols, [&](auto row, auto col) {
      double angle = 2 * std::numbers::pi * phase.uniform(col);
      for (std::int64_t i = 0; i < kSheet; ++i) {
        angle += shared.normal(col * kSheet + i) * own.uniform(row * kSheet + i);
      }
      return std::cos(angle);
    });
  }
  return fill(ctx, rows, cols, [&](auto row, auto col) { return own.normal(at(row, col)); });
}

}  // namespace

const std::vector<std::string>& bench_data_kinds() {
  static const std::vector<std::string> kinds = {"gaussian",   "uniform",  "blobs", "clusters",
                                                 "duplicates", "embedded", "gist",  "sift"};
  return kinds;
}

std::string describe_bench_data() {
  return "What to make: gaussian: normal columns; uniform: columns from [0, 1); blobs: 16 wide clusters; clusters: "
         "1,000 "
         "tight ones (--sigma) about uniform centers; duplicates: 9 of 10 rows repeat another; embedded: a curved "
         "sheet "
         "of 4 dimensions; gist: rotated columns of standard deviations 1, 1/2, 1/3, ..; sift: whole numbers from 0 to "
         "255, whose standard deviations before the rotation are 60 / (1 + j / 4)";
}

std::vector<double> make_bench_table(const Context& ctx, const BenchData& data) {
  return make(ctx, data, false);
}
std::vector<double> make_bench_queries(const Context& ctx, const BenchData& data) {
  return make(ctx, data, true);
}

}  // namespace vicinal::cli

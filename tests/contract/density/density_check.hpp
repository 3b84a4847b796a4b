// What the tests of density clustering have in common: tables with the keys of all their pairs, and contexts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "contexts.hpp"
#include "data.hpp"
#include "reference/density.hpp"
#include "refused.hpp"

namespace vicinal::contract {

/// As `contexts`, without the device: optics runs on the CPU only so far.
inline std::vector<Context> cpu_contexts(std::uint64_t turn) {
  std::vector<Context> made = contexts(turn);
  std::erase_if(made, [](const Context& ctx) { return ctx.device() != "cpu"; });
  return made;
}

/// Where an operation is asked.
enum class Where : std::uint8_t { cpu, everywhere };
inline std::vector<Context> contexts_of(Where where, std::uint64_t turn) {
  return where == Where::cpu ? cpu_contexts(turn) : contexts(turn);
}

/// Whether an operation runs as `plan` plans it: on a device two methods serve some widths and lengths of lists only,
/// and plans say which.
template <class Plan>
bool runs(const Context& ctx, const Plan& plan) {
  if (ctx.device() == "cpu") return true;
  try {
    (void)plan(ctx);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    return false;
  }
}

/// A table as the library and the reference get it.
struct PairTable {
  Stored table;
  Metric metric;
  double p;
  std::vector<double> keys;  ///< [n * n]

  PairTable(const std::vector<double>& rows, std::int64_t d, Metric by = Metric::euclidean, double exponent = 2,
            DType dtype = DType::float64, Layout layout = Layout::contiguous)
      : table(rows, d, dtype, layout),
        metric(by),
        p(exponent),
        keys(reference::pair_keys(table.view(), by, exponent)) {}
  [[nodiscard]] bool overflows() const {
    return !std::all_of(keys.begin(), keys.end(), [](double key) { return std::isfinite(key); });
  }
};

struct MetricAndP {
  Metric metric;
  double p = 2;
};
inline constexpr MetricAndP kAllMetrics[] = {{Metric::euclidean},    {Metric::sqeuclidean}, {Metric::inner_product},
                                             {Metric::cosine},       {Metric::manhattan},   {Metric::chebyshev},
                                             {Metric::minkowski, 3}, {Metric::hamming}};
inline constexpr DType kAllDTypes[] = {DType::uint8, DType::float16, DType::bfloat16, DType::float32, DType::float64};

inline std::vector<Family> all_families() {
  std::vector<Family> all;
  for (int i = 0; i < kFamilies; ++i) all.push_back(static_cast<Family>(i));
  return all;
}

/// Calls check(table, what, turn) with rows of a family by every metric, of different types and layouts, until a check
/// fails. Tables with distances that overflow are left out. `rows`: how many, of minkowski fewer.
template <class Check>
void check_each_metric(Family family, std::int64_t rows, const Check& check) {
  auto turn = static_cast<std::uint64_t>(family);
  for (const auto& [metric, p] : kAllMetrics) {
    const Shape shape = {metric == Metric::minkowski ? rows * 2 / 5 : rows, turn % 3 == 0 ? 2 : 5, 1};
    const DType dtype = kAllDTypes[turn % 5];
    const auto layout = static_cast<Layout>(turn % static_cast<std::uint64_t>(Layout::blocks));
    const PairTable data(make_rows(family, shape, 3).table, shape.d, metric, p, dtype, layout);
    ++turn;
    if (data.overflows()) continue;
    check(data, std::string(name_of(family)) + " " + std::string(name_of(dtype)), turn);
    if (::testing::Test::HasFailure()) return;
  }
}

/// Calls check(table, what, turn) with tables of few rows and columns, until a check fails.
template <class Check>
void check_each_size(const Check& check) {
  std::uint64_t turn = 0;
  for (const auto& [n, d] : {std::pair<std::int64_t, std::int64_t>{2, 1}, {3, 2}, {9, 1}, {65, 17}, {300, 2}}) {
    for (const Family family : {Family::gaussian, Family::integer_ties, Family::duplicates, Family::constant}) {
      const PairTable data(make_rows(family, {n, d, 1}, ++turn).table, d);
      check(data, std::string(name_of(family)) + std::to_string(n), turn);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

/// The distances of all pairs of rows, ascending.
inline std::vector<double> pair_distances(const PairTable& data) {
  std::vector<double> distances;
  const auto n = static_cast<std::size_t>(data.table.view().rows());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      distances.push_back(reference::distance_of(data.metric, data.p, data.keys[i * n + j]));
    }
  }
  std::sort(distances.begin(), distances.end());
  return distances;
}
/// The distance below which a share of them is.
inline double at_share(const std::vector<double>& distances, double share) {
  return distances[static_cast<std::size_t>(share * static_cast<double>(distances.size() - 1))];
}

/// A call on a table of 3,000 rows ends with `cancelled` if it is cancelled when a stage begins. On one thread, so that
/// a task always follows the report that cancels.
inline void expect_stops(const std::string& stage,
                         const std::function<void(const Context& ctx, const TableView& table)>& call) {
  const std::vector<double> rows = make_rows(Family::gaussian, {3000, 3, 1}, 1).table;
  const TableView table(rows.data(), 3000, 3);
  CancelToken token;
  const Context ctx = Context::cpu({.threads = 1,
                                    .progress =
                                        [&](std::string_view now, double) {
                                          if (now == stage) token.cancel();
                                        },
                                    .cancel = token});
  refused([&] { call(ctx, table); }, ErrorCode::cancelled, "");
}

/// The methods that serve a metric, `automatic` first.
inline std::vector<Method> methods_of(Metric metric) {
  std::vector<Method> methods = {Method::automatic, Method::direct};
  for (const Method method : {Method::fused, Method::kdtree}) {
    if (serves(method, metric)) methods.push_back(method);
  }
  return methods;
}

/// Calls check(ctx, method) for every method that serves a metric, in all contexts or in one, which `turn` varies,
/// until a check fails. Calls nothing if all contexts are those of a device.
template <class Check>
void check_each_way(Metric metric, std::uint64_t turn, bool in_all, const Check& check, Where where = Where::cpu) {
  std::vector<Context> made = contexts_of(where, turn);
  if (made.empty()) return;
  if (!in_all) made = {made[turn % made.size()]};
  for (const Method method : methods_of(metric)) {
    for (const Context& ctx : made) {
      check(ctx, method);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace vicinal::contract

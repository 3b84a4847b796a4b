// What the tests of density clustering have in common: tables with the keys of all their pairs, and contexts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "contexts.hpp"
#include "data.hpp"
#include "reference/density.hpp"

namespace vicinal::contract {

/// As `contexts`, without the device: density clustering runs on the CPU only so far.
inline std::vector<Context> cpu_contexts(std::uint64_t turn) {
  std::vector<Context> made = contexts(turn);
  std::erase_if(made, [](const Context& ctx) { return ctx.device() != "cpu"; });
  return made;
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
void check_each_way(Metric metric, std::uint64_t turn, bool in_all, const Check& check) {
  std::vector<Context> made = cpu_contexts(turn);
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

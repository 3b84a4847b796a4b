// What each metric does with a column of a pair, how accumulators are joined, how their sum becomes a key, and what is
// reported for a key (contract clauses 1 and 2): once for every kernel that forms keys from float64 rows. Compiled
// without contraction (-fmad=false).
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/distance.hpp"
#include "cuda/base/device.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::cuda {

/// Not inlined: it is long, takes the compiler a minute, and a thread's pairs would each have a copy.
__device__ __noinline__ inline double power_of(double t, double p) {
  return core::power(t, p);
}

// `add` of three numbers takes a difference (of two rows, or the gap to a box); of four, a column of both rows.
struct Sums {
  __device__ static double join(double a, double b) { return a + b; }
  __device__ static double key(double sum, std::int64_t /*d*/) { return sum; }
  __device__ static double report(Metric /*metric*/, double key, double /*p*/) { return key; }
};
struct Squares : Sums {
  __device__ static void add(double& a, double t, double /*p*/) { a = fma(t, t, a); }
  __device__ static void add(double& a, double x, double y, double p) { add(a, x - y, p); }
  __device__ static double report(Metric metric, double key, double /*p*/) {
    return metric == Metric::euclidean ? sqrt(key) : key;
  }
};
struct Angle : Squares {
  __device__ static double key(double sum, std::int64_t /*d*/) { return 0.5 * sum; }
};
struct Products : Sums {
  __device__ static void add(double& a, double x, double y, double /*p*/) { a = fma(x, y, a); }
  __device__ static double key(double sum, std::int64_t /*d*/) { return 0.0 - sum; }
};
struct Absolutes : Sums {
  __device__ static void add(double& a, double t, double /*p*/) { a += fabs(t); }
  __device__ static void add(double& a, double x, double y, double p) { add(a, x - y, p); }
};
struct Largest : Sums {
  __device__ static void add(double& a, double t, double /*p*/) { a = fabs(t) > a ? fabs(t) : a; }
  __device__ static void add(double& a, double x, double y, double p) { add(a, x - y, p); }
  __device__ static double join(double a, double b) { return b > a ? b : a; }
};
struct Powers : Sums {
  __device__ static void add(double& a, double t, double p) { a += power_of(fabs(t), p); }
  __device__ static void add(double& a, double x, double y, double p) { add(a, x - y, p); }
  __device__ static double report(Metric /*metric*/, double key, double p) { return power_of(key, 1.0 / p); }
};
struct Differing : Sums {
  __device__ static void add(double& a, double x, double y, double /*p*/) { a += x != y ? 1.0 : 0.0; }
  __device__ static double key(double sum, std::int64_t d) { return sum / static_cast<double>(d); }
};

/// The contract's tree over a thread's eight accumulators.
template <class Op>
__device__ __forceinline__ double join_lanes(const double* a) {
  return Op::join(Op::join(Op::join(a[0], a[4]), Op::join(a[2], a[6])),
                  Op::join(Op::join(a[1], a[5]), Op::join(a[3], a[7])));
}

/// Operations that a kernel is compiled for.
template <class... Ops>
struct OpSet {
  template <class Op>
  static constexpr bool has = (std::is_same_v<Op, Ops> || ...);
};
using AllOps = OpSet<Squares, Angle, Products, Absolutes, Largest, Powers, Differing>;
/// Those whose key of a box is that of the gaps to it.
using BoxOps = OpSet<Squares, Absolutes, Largest, Powers>;

/// Calls body(Op) for the metric, whose operation must be one of the set.
template <class Set, class Body>
void with_metric(Metric metric, const Body& body) {
  const auto call = [&](auto op) {
    if constexpr (Set::template has<decltype(op)>) {
      body(op);
    } else {
      throw Failure{ErrorCode::internal, "a metric that no kernel of this method serves"};
    }
  };
  switch (metric) {
    case Metric::euclidean:
    case Metric::sqeuclidean:
      return call(Squares{});
    case Metric::inner_product:
      return call(Products{});
    case Metric::cosine:
      return call(Angle{});
    case Metric::manhattan:
      return call(Absolutes{});
    case Metric::chebyshev:
      return call(Largest{});
    case Metric::minkowski:
      return call(Powers{});
    case Metric::hamming:
      return call(Differing{});
  }
}

}  // namespace vicinal::cuda

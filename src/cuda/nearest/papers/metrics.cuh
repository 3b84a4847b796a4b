// What each metric does with a column of a pair, and what becomes of its eight accumulators (contract clause 1).
// Compiled without contraction (-fmad=false).
#pragma once

#include <cmath>
#include <cstdint>

#include "core/distance.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::cuda::papers {

struct Squares {
  __device__ static void add(double& a, double x, double y, double /*p*/) {
    const double t = x - y;
    a = fma(t, t, a);
  }
  __device__ static double join(const double* a) { return core::sum_of_lanes(a); }
  __device__ static double key(double sum, std::int64_t /*d*/) { return sum; }
};
struct Angle : Squares {
  __device__ static double key(double sum, std::int64_t /*d*/) { return 0.5 * sum; }
};
struct Products : Squares {
  __device__ static void add(double& a, double x, double y, double /*p*/) { a = fma(x, y, a); }
  __device__ static double key(double sum, std::int64_t /*d*/) { return 0.0 - sum; }
};
struct Absolutes : Squares {
  __device__ static void add(double& a, double x, double y, double /*p*/) { a += fabs(x - y); }
};
struct Largest : Squares {
  __device__ static void add(double& a, double x, double y, double /*p*/) {
    const double t = fabs(x - y);
    a = t > a ? t : a;
  }
  __device__ static double join(const double* a) {
    double most = a[0];
    for (int lane = 1; lane < core::kLanes; ++lane) most = a[lane] > most ? a[lane] : most;
    return most;
  }
};
/// Not inlined: it is long.
__device__ __noinline__ inline double power_of(double t, double p) {
  return core::power(t, p);
}
struct Powers : Squares {
  __device__ static void add(double& a, double x, double y, double p) { a += power_of(fabs(x - y), p); }
};
struct Differing : Squares {
  __device__ static void add(double& a, double x, double y, double /*p*/) { a += x != y ? 1.0 : 0.0; }
  __device__ static double key(double sum, std::int64_t d) { return sum / static_cast<double>(d); }
};

/// Calls body with the metric's type.
template <class Body>
void with_metric(Metric metric, Body body) {
  switch (metric) {
    case Metric::euclidean:
    case Metric::sqeuclidean:
      return body(Squares{});
    case Metric::inner_product:
      return body(Products{});
    case Metric::cosine:
      return body(Angle{});
    case Metric::manhattan:
      return body(Absolutes{});
    case Metric::chebyshev:
      return body(Largest{});
    case Metric::minkowski:
      return body(Powers{});
    case Metric::hamming:
      return body(Differing{});
  }
}

}  // namespace vicinal::cuda::papers

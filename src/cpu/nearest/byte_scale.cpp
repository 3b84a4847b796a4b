// See byte_scale.hpp.
#include "cpu/nearest/byte_scale.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace vicinal::cpu {
namespace {

constexpr int kSteps = 12;
constexpr double kStep = 1.25;

double mean_error(std::span<const double> sample, std::span<const double> centre, double scale) {
  const std::size_t d = centre.size();
  double total = 0;
  for (std::size_t begin = 0; begin < sample.size(); begin += d) {
    double error = 0;
    for (std::size_t j = 0; j < d; ++j) {
      const double value = (sample[begin + j] - centre[j]) * scale;
      const double rest = value - std::nearbyint(std::clamp(value, -128.0, 127.0));
      error += rest * rest;
    }
    total += std::sqrt(error);
  }
  return total / scale;
}

}  // namespace

ByteScale byte_scale(const Context& ctx, std::span<const double> sample, std::span<const double> centre) {
  ByteScale best;
  const auto attempt = [&](double scale) {
    ctx.check_cancelled();
    const double error = mean_error(sample, centre, scale);
    if (error < best.error) best = {scale, error};
  };
  const std::size_t d = centre.size();
  double largest = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) largest = std::max(largest, std::fabs(sample[i] - centre[i % d]));
  if (!(largest > 0x1p-900 && largest < 0x1p900)) return best;
  const bool whole = std::all_of(sample.begin(), sample.end(), [](double x) { return x == std::nearbyint(x); });
  if (whole && largest <= 128) attempt(1.0);
  double scale = 127 / largest;
  for (int step = 0; step < kSteps && best.error > 0; ++step, scale *= kStep) attempt(scale);
  return best;
}

}  // namespace vicinal::cpu

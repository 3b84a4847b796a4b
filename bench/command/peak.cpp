// See peak.hpp. Every kernel keeps 16 chains of dependent multiply-adds going, more than any core's latency times
// its ports, in as many registers.
#include "command/peak.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace vicinal::cli {
namespace {

/// Some thousand steps; returns the operations done.
using Kernel = double (*)();

constexpr int kSteps = 4096;
constexpr int kChains = 16;
/// What the sums flow into, so that no compiler drops them.
thread_local volatile float sink;

#if defined(__x86_64__)

#define VICINAL_PEAK_KERNEL(NAME, TARGET, VECTOR, ZERO, STEP, OPERATIONS) \
  __attribute__((target(TARGET))) double NAME() {                         \
    VECTOR sum[kChains];                                                  \
    for (auto& chain : sum) chain = ZERO;                                 \
    for (int step = 0; step < kSteps; ++step) {                           \
      for (auto& chain : sum) chain = STEP;                               \
    }                                                                     \
    float any = 0;                                                        \
    for (auto& chain : sum) {                                             \
      float first = 0;                                                    \
      std::memcpy(&first, &chain, sizeof first);                          \
      any += first;                                                       \
    }                                                                     \
    sink = any;                                                           \
    return double{OPERATIONS} * kChains * kSteps;                         \
  }

VICINAL_PEAK_KERNEL(fma256, "avx2,fma", __m256, _mm256_set1_ps(1.0F),
                    _mm256_fmadd_ps(chain, _mm256_set1_ps(0.5F), _mm256_set1_ps(0.5F)), 16)
VICINAL_PEAK_KERNEL(fma512, "avx512f", __m512, _mm512_set1_ps(1.0F),
                    _mm512_fmadd_ps(chain, _mm512_set1_ps(0.5F), _mm512_set1_ps(0.5F)), 32)
VICINAL_PEAK_KERNEL(dot_bf16, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(),
                    _mm512_dpbf16_ps(chain, __m512bh(_mm512_set1_epi32(0x3F803F80)),
                                     __m512bh(_mm512_set1_epi32(0x3F803F80))),
                    64)
VICINAL_PEAK_KERNEL(dot_int8, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(),
                    _mm512_dpbusd_epi32(chain, _mm512_set1_epi8(1), _mm512_set1_epi8(1)), 128)

Kernel float32_kernel() {
  if (__builtin_cpu_supports("avx512f")) return fma512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? fma256 : nullptr;
}
Kernel bfloat16_kernel() {
  return __builtin_cpu_supports("avx512bf16") ? dot_bf16 : nullptr;
}
Kernel int8_kernel() {
  return __builtin_cpu_supports("avx512vnni") ? dot_int8 : nullptr;
}

#else

Kernel float32_kernel() {
  return nullptr;
}
Kernel bfloat16_kernel() {
  return nullptr;
}
Kernel int8_kernel() {
  return nullptr;
}

#endif

/// Operations a nanosecond, of one thread.
double rate(Kernel kernel) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  double operations = 0;
  std::chrono::duration<double, std::nano> elapsed{};
  do {
    operations += kernel();
    elapsed = Clock::now() - start;
  } while (elapsed.count() < 50e6);
  return operations / elapsed.count();
}

double best_rate(const Context& ctx, Kernel kernel) {
  if (kernel == nullptr) return 0;
  double best = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    ctx.check_cancelled();
    std::vector<double> rates(static_cast<std::size_t>(ctx.threads()));
    std::vector<std::jthread> threads;
    threads.reserve(rates.size());
    for (double& mine : rates) threads.emplace_back([&mine, kernel] { mine = rate(kernel); });
    threads.clear();
    best = std::max(best, std::accumulate(rates.begin(), rates.end(), 0.0));
  }
  return best;
}

}  // namespace

Peak measure_peak(const Context& ctx) {
  return {best_rate(ctx, float32_kernel()), best_rate(ctx, bfloat16_kernel()), best_rate(ctx, int8_kernel())};
}

Json to_json(const Peak& peak) {
  const auto or_null = [](double rate) { return rate > 0 ? Json(rate) : Json(nullptr); };
  return {{"float32_gflops", or_null(peak.float32)},
          {"bfloat16_gflops", or_null(peak.bfloat16)},
          {"int8_gops", or_null(peak.int8)}};
}

std::string format_peak(const Peak& peak) {
  const auto shown = [](double rate) { return rate > 0 ? fmt::format("{:.0f}", rate) : std::string("not there"); };
  return fmt::format("peak GFLOP/s  float32 {}, bfloat16 {}, int8 {} (GOP/s)\n", shown(peak.float32),
                     shown(peak.bfloat16), shown(peak.int8));
}

}  // namespace vicinal::cli

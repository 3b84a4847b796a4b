#include "counted_polls.hpp"

#include <atomic>
#include <random>

#include "core/parallel.hpp"

namespace {
std::atomic<std::int64_t> polls{0};
}  // namespace

extern "C" {
void __real__ZNK7vicinal7Context15check_cancelledEv(const vicinal::Context* ctx);
void __wrap__ZNK7vicinal7Context15check_cancelledEv(const vicinal::Context* ctx);
void __wrap__ZNK7vicinal7Context15check_cancelledEv(const vicinal::Context* ctx) {
  ++polls;
  __real__ZNK7vicinal7Context15check_cancelledEv(ctx);
}
}

namespace vicinal {

std::int64_t polls_so_far() noexcept {
  return polls;
}

std::int64_t of_tasks(const Context& ctx, std::int64_t count) {
  return polls_of([&] { core::parallel_for(ctx, count, [](std::int64_t, int) {}); });
}

Context polled_context() {
  return Context::cpu({.threads = 1});
}

std::vector<float> polled_rows(std::int64_t n, std::int64_t d) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform;
  std::vector<float> rows(static_cast<std::size_t>(n * d));
  for (float& value : rows) value = uniform(random);
  return rows;
}

std::vector<double> polled_values(std::int64_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform;
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = uniform(random);
  return values;
}

}  // namespace vicinal

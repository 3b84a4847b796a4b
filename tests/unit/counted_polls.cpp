#include "counted_polls.hpp"

#include <atomic>
#include <random>

#include "vicinal/context.hpp"

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

std::vector<float> polled_rows(std::int64_t n, std::int64_t d) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform;
  std::vector<float> rows(static_cast<std::size_t>(n * d));
  for (float& value : rows) value = uniform(random);
  return rows;
}

}  // namespace vicinal

#include "counted_polls.hpp"

#include <atomic>

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

}  // namespace vicinal

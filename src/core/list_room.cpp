// See list_room.hpp. All threads touch the pages, which are large where the system has such; then one thread for each
// vector writes the zeros.
#include "core/list_room.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "core/in_steps.hpp"
#include "core/parallel.hpp"

namespace vicinal::core {
namespace {

constexpr std::size_t kRange = std::size_t{4} << 20;  // bytes that one task touches
#ifdef MADV_HUGEPAGE
constexpr std::size_t kLarge = std::size_t{64} << 20;  // from here on malloc maps memory for itself
#endif
#ifdef MADV_POPULATE_WRITE
constexpr int kPopulate = MADV_POPULATE_WRITE;
#else
constexpr int kPopulate = 23;  // of Linux 5.14; older ones refuse it, and the pages come when they are written
#endif

}  // namespace

void touch_pages(const Context& ctx, void* data, std::size_t bytes) {
  if (bytes < 2 * kRange) return;  // a few are not worth it
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t before = (page - reinterpret_cast<std::uintptr_t>(data) % page) % page;
  std::byte* const begin = static_cast<std::byte*>(data) + before;
  const std::size_t whole = (bytes - before) / page * page;
#ifdef MADV_HUGEPAGE
  // Where it is refused, pages stay small. So much is no part of the heap, whose pages others get later.
  if (bytes >= kLarge) static_cast<void>(madvise(begin, whole, MADV_HUGEPAGE));
#endif
  parallel_for(ctx, static_cast<std::int64_t>((whole + kRange - 1) / kRange), [&](std::int64_t task, int /*worker*/) {
    const std::size_t first = static_cast<std::size_t>(task) * kRange;
    // What fails here fails again, or not, where the memory is written.
    static_cast<void>(madvise(begin + first, std::min(kRange, whole - first), kPopulate));
  });
}

void resize_lists(const Context& ctx, std::vector<std::int64_t>& ids, std::vector<double>& distances,
                  std::int64_t size) {
  ids.reserve(static_cast<std::size_t>(size));
  distances.reserve(static_cast<std::size_t>(size));
  touch_pages(ctx, ids.data(), ids.capacity() * sizeof(std::int64_t));
  touch_pages(ctx, distances.data(), distances.capacity() * sizeof(double));
  parallel_for(ctx, 2, [&](std::int64_t task, int /*worker*/) {
    task == 0 ? resize_in_steps(ctx, ids, size) : resize_in_steps(ctx, distances, size);
  });
}

}  // namespace vicinal::core

// Most edges of a tree differ in the upper half of their key: they are ordered by it, digit by digit, and only edges
// that are equal there are compared.
#include "cpu/density/sort_edges.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "core/raw_vector.hpp"
#include "core/sort_on_threads.hpp"
#include "cpu/density/components.hpp"

namespace vicinal::cpu {
namespace {

using kernels::TreeEdge;

struct Half {
  std::uint32_t upper;
  std::uint32_t edge;
};

/// The upper half of a number that has the order of doubles.
std::uint32_t upper_half(double key) {
  const auto bits = std::bit_cast<std::uint64_t>(key == 0 ? 0.0 : key);  // -0 is 0
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  return static_cast<std::uint32_t>(((bits & kSign) != 0 ? ~bits : bits | kSign) >> 32);
}

/// Stable, by 11 bits at a time.
void sort_by_upper_half(const Context& ctx, core::RawVector<Half>& halves) {
  constexpr int kDigit = 11;
  constexpr std::size_t kValues = std::size_t{1} << kDigit;
  core::RawVector<Half> other(halves.size());
  core::Poll poll(ctx);
  for (int shift = 0; shift < 32; shift += kDigit) {
    const auto digit_of = [&](const Half& half) { return half.upper >> shift & (kValues - 1); };
    std::array<std::size_t, kValues> place{};
    for (const Half& half : halves) {
      poll.step();
      ++place[digit_of(half)];
    }
    std::size_t begin = 0;
    for (std::size_t& value : place) begin += std::exchange(value, begin);
    for (const Half& half : halves) {
      poll.step();
      other[place[digit_of(half)]++] = half;
    }
    halves.swap(other);
  }
}

/// Sorts the edges of each run of equal halves, unless one is long. Returns whether none is.
bool sort_runs(const Context& ctx, const core::RawVector<Half>& halves, std::vector<TreeEdge>& edges) {
  constexpr std::int64_t kPerTask = 1 << 14;
  constexpr std::int64_t kLong = 1 << 12;
  const std::int64_t size = std::ssize(edges);
  const auto upper = [&](std::int64_t i) { return halves[static_cast<std::size_t>(i)].upper; };
  std::atomic<bool> any_long{false};
  core::parallel_for(ctx, (size + kPerTask - 1) / kPerTask, [&](std::int64_t task, int /*worker*/) {
    const std::int64_t end = std::min(size, (task + 1) * kPerTask);
    std::int64_t begin = task * kPerTask;  // a run that began before is that of another task
    while (begin > 0 && begin < end && upper(begin) == upper(begin - 1)) ++begin;
    while (begin < end) {
      std::int64_t next = begin + 1;
      while (next < size && next - begin <= kLong && upper(next) == upper(begin)) ++next;
      if (next - begin > kLong) {
        any_long = true;
        return;
      }
      if (next - begin > 1) std::sort(edges.begin() + begin, edges.begin() + next, lighter);
      begin = next;
    }
  });
  return !any_long;
}

}  // namespace

void sort_edges(const Context& ctx, std::vector<TreeEdge>& edges) {
  const auto order = [](const TreeEdge& x, const TreeEdge& y) { return lighter(x, y); };
  constexpr std::int64_t kFew = 4096;
  const std::int64_t size = std::ssize(edges);
  if (size < kFew || size > std::numeric_limits<std::uint32_t>::max()) {
    core::sort_on_threads(ctx, edges, order);
    return;
  }
  core::RawVector<Half> halves(edges.size());
  for_each_row(ctx, size, [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    halves[at] = {upper_half(edges[at].key), static_cast<std::uint32_t>(i)};
  });
  sort_by_upper_half(ctx, halves);
  std::vector<TreeEdge> sorted(edges.size());
  for_each_row(ctx, size, [&](std::int64_t i) {
    sorted[static_cast<std::size_t>(i)] = edges[halves[static_cast<std::size_t>(i)].edge];
  });
  edges.swap(sorted);
  if (!sort_runs(ctx, halves, edges)) core::sort_on_threads(ctx, edges, order);
}

}  // namespace vicinal::cpu

// Counts looks at the cancel token: the linker puts a counter between the library and Context::check_cancelled.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "vicinal/context.hpp"

namespace vicinal {

inline constexpr std::int64_t kBetweenLooks = std::int64_t{1} << 16;  // between two looks of a core::Poll
inline constexpr std::int64_t kManyRows = 2 * kBetweenLooks;          // each loop over them looks twice

/// Looks since the program began, by all threads.
std::int64_t polls_so_far() noexcept;

/// Looks that body() causes.
template <class Body>
std::int64_t polls_of(const Body& body) {
  const std::int64_t before = polls_so_far();
  body();
  return polls_so_far() - before;
}

/// Looks of a parallel loop itself.
std::int64_t of_tasks(const Context& ctx, std::int64_t count);

/// Comparisons of std::sort.
template <class T, class Less>
std::int64_t steps_of_sort(std::vector<T> values, const Less& less) {
  std::int64_t steps = 0;
  std::sort(values.begin(), values.end(), [&](const T& a, const T& b) {
    ++steps;
    return less(a, b);
  });
  return steps;
}

/// Of one thread.
Context polled_context();

/// A table [n, d] of numbers from 0 to 1, the same in each call.
std::vector<float> polled_rows(std::int64_t n, std::int64_t d);

/// Numbers from 0 to 1, the same for the same seed.
std::vector<double> polled_values(std::int64_t count, unsigned seed);

}  // namespace vicinal

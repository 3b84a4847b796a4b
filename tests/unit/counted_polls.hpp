// Counts looks at the cancel token: the linker puts a counter between the library and Context::check_cancelled.
#pragma once

#include <cstdint>
#include <vector>

namespace vicinal {

/// Looks since the program began, by all threads.
std::int64_t polls_so_far() noexcept;

/// Looks that body() causes.
template <class Body>
std::int64_t polls_of(const Body& body) {
  const std::int64_t before = polls_so_far();
  body();
  return polls_so_far() - before;
}

/// A table [n, d] of numbers from 0 to 1, the same in each call.
std::vector<float> polled_rows(std::int64_t n, std::int64_t d);

}  // namespace vicinal

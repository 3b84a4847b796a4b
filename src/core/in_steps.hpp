// Work on large arrays that one thread does in a go, in steps of some milliseconds, so that a cancel is noticed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "vicinal/context.hpp"

namespace vicinal::core {

inline constexpr std::int64_t kElementsPerStep = std::int64_t{1} << 22;

/// Resizes `values`; the elements that are new are zero. Throws `cancelled`.
template <class T>
void resize_in_steps(const Context& ctx, std::vector<T>& values, std::int64_t size) {
  values.reserve(static_cast<std::size_t>(size));
  for (auto i = static_cast<std::int64_t>(values.size()); i < size; i += kElementsPerStep) {
    ctx.check_cancelled();
    values.resize(static_cast<std::size_t>(std::min(size, i + kElementsPerStep)));
  }
  values.resize(static_cast<std::size_t>(size));
}

/// Resizes `values` to 0, 1, ..., size - 1. Throws `cancelled`.
inline void number_in_steps(const Context& ctx, std::vector<std::int64_t>& values, std::int64_t size) {
  values.clear();
  values.reserve(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) {
    if (i % kElementsPerStep == 0) ctx.check_cancelled();
    values.push_back(i);
  }
}

/// Copies all values to `to`, which has room for them. Throws `cancelled`.
template <class T>
void copy_in_steps(const Context& ctx, const std::vector<T>& values, T* to) {
  const auto size = static_cast<std::int64_t>(values.size());
  for (std::int64_t i = 0; i < size; i += kElementsPerStep) {
    ctx.check_cancelled();
    std::memcpy(to + i, values.data() + i, static_cast<std::size_t>(std::min(kElementsPerStep, size - i)) * sizeof(T));
  }
}

}  // namespace vicinal::core

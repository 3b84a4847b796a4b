// A std::vector that leaves new elements unwritten, for large arrays that all threads fill: written by one thread
// first, as std::vector does, each page would be had by that thread, one after the other, before work begins.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/large_pages.hpp"

namespace vicinal::core {

template <class T>
struct RawAllocator {
  static_assert(std::is_trivially_copyable_v<T>);
  using value_type = T;

  RawAllocator() = default;
  template <class Other>
  RawAllocator(const RawAllocator<Other>& /*other*/) noexcept {}  // NOLINT(google-explicit-constructor): an allocator's

  T* allocate(std::size_t count) {
    if (count * sizeof(T) < 2 * kLargePage) return std::allocator<T>().allocate(count);
    void* const data = ::operator new (count * sizeof(T), std::align_val_t{kLargePage});
    prefer_large_pages(data, count * sizeof(T));
    return static_cast<T*>(data);
  }
  void deallocate(T* data, std::size_t count) noexcept {
    if (count * sizeof(T) < 2 * kLargePage) return std::allocator<T>().deallocate(data, count);
    ::operator delete (data, std::align_val_t{kLargePage});
  }
  /// As `T x;`: nothing is written.
  template <class U>
  void construct(U* place) noexcept {
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class... Arguments>
  void construct(U* place, Arguments&&... arguments) {
    ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
  }
  friend bool operator==(const RawAllocator& /*a*/, const RawAllocator& /*b*/) noexcept { return true; }
};

/// `resize` leaves what it adds unwritten; `assign` and `push_back` write as ever.
template <class T>
using RawVector = std::vector<T, RawAllocator<T>>;

}  // namespace vicinal::core

// A vector whose numbers are not cleared when they are made: for arrays that all threads fill, whose pages one thread
// would else make, and write, first.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace vicinal::core {

template <class T>
struct UnclearedAllocator : std::allocator<T> {
  static_assert(std::is_trivially_copyable_v<T>);
  template <class U>
  struct rebind {
    using other = UnclearedAllocator<U>;
  };

  template <class U, class... Values>
  void construct(U* at, Values&&... values) {
    if constexpr (sizeof...(Values) == 0) {
      ::new (static_cast<void*>(at)) U;
    } else {
      ::new (static_cast<void*>(at)) U(std::forward<Values>(values)...);
    }
  }
};

/// What `resize` adds has no value until it is written.
template <class T>
using Uncleared = std::vector<T, UnclearedAllocator<T>>;

}  // namespace vicinal::core

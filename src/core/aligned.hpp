// A plain array whose first element starts a cache line, so that no vector load of a packed panel straddles two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#include "core/large_pages.hpp"

namespace vicinal::core {

/// Uninitialized storage of `size` trivial elements, in large pages if it is large; `reserve` keeps what is large
/// enough and forgets the contents.
template <class T>
class AlignedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedArray() = default;
  explicit AlignedArray(std::int64_t size) { reserve(size); }

  void reserve(std::int64_t size) {
    if (size <= size_) return;
    const std::size_t bytes = (static_cast<std::size_t>(size) * sizeof(T) + 63) / 64 * 64;
    data_.reset(static_cast<T*>(std::aligned_alloc(64, bytes)));
    size_ = data_ ? size : 0;
    if (!data_) throw std::bad_alloc();
    if (bytes >= 2 * kLargePage) prefer_large_pages(data_.get(), bytes);
  }
  [[nodiscard]] T* data() noexcept { return data_.get(); }
  [[nodiscard]] const T* data() const noexcept { return data_.get(); }
  T& operator[](std::int64_t i) noexcept { return data_.get()[i]; }
  const T& operator[](std::int64_t i) const noexcept { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* p) const noexcept { std::free(p); }
  };
  std::unique_ptr<T, Free> data_;
  std::int64_t size_ = 0;
};

}  // namespace vicinal::core

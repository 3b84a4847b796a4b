// The structs of the Arrow C data and stream interfaces, as their specification lays them out, and an owner for each.
// Whoever holds a struct calls its `release` once; a struct without one is empty.
#pragma once

#include <cstdint>

namespace vicinal::python::arrow {

struct Schema {
  const char* format;    ///< "f": float32, "+s": a struct, ..
  const char* name;      ///< may be null
  const char* metadata;  ///< may be null
  std::int64_t flags;
  std::int64_t n_children;
  Schema** children;
  Schema* dictionary;  ///< null where values are not codes
  void (*release)(Schema*);
  void* private_data;
};

struct Array {
  std::int64_t length;
  std::int64_t null_count;  ///< -1: not counted
  std::int64_t offset;      ///< elements, which children have beside their own
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;  ///< of numbers: bits of those that are there (null: all), then the numbers
  Array** children;
  Array* dictionary;
  void (*release)(Array*);
  void* private_data;
};

struct Stream {
  int (*get_schema)(Stream*, Schema*);  ///< 0, or an errno
  int (*get_next)(Stream*, Array*);     ///< an array without `release` ends the stream
  const char* (*get_last_error)(Stream*);
  void (*release)(Stream*);
  void* private_data;
};

template <class Struct>
class Owned {
 public:
  Owned() = default;
  /// Takes it over: the producer's own is empty afterwards.
  explicit Owned(Struct* given) : value_(*given) { given->release = nullptr; }
  ~Owned() { clear(); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  void clear() {
    if (value_.release != nullptr) value_.release(&value_);
    value_ = {};
  }
  [[nodiscard]] bool is_empty() const noexcept { return value_.release == nullptr; }
  Struct* get() noexcept { return &value_; }
  const Struct* operator->() const noexcept { return &value_; }
  const Struct& operator*() const noexcept { return value_; }

 private:
  Struct value_{};
};

}  // namespace vicinal::python::arrow

// What the functions of density clustering take: rows in host memory, and arrays that are copied.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "searched.hpp"

namespace vicinal::python {

/// What `work(ctx, rows)` finds of rows to cluster, in host memory: an index, or a table, of which one that comes in
/// blocks is copied.
template <class Found, class Work>
std::shared_ptr<Found> found_in(Call& call, nanobind::handle rows, const Work& work) {
  const auto index = call.native<HeldIndex>(rows);
  call.on_host();
  Input table;
  if (index == nullptr) table = call.host_table("table", rows);
  auto found = std::make_shared<Found>();
  call.run([&](const Context& ctx) {
    *found = index != nullptr ? work(ctx, index->index) : work(ctx, in_memory(ctx, table).view);
  });
  return found;
}

/// Copies arrays of int64 or float64.
template <class T>
void copy_to(Call& call, const char* name, nanobind::handle value, std::vector<T>& to) {
  const auto copy = [&](auto from) {
    to.assign(from.begin(), from.end());
    call.count_copied(static_cast<std::int64_t>(from.size_bytes()));
  };
  if constexpr (std::is_same_v<T, double>) {
    copy(call.numbers(name, value));
  } else {
    copy(call.integers(name, value));
  }
}

}  // namespace vicinal::python

// What the functions of density clustering take: rows, in host memory where a device has no work, and arrays that are
// copied.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "searched.hpp"

namespace vicinal::python {

/// Where a function computes unless it is told.
enum class Computes : std::uint8_t { on_host, on_device };

/// What `work(ctx, rows)` finds of rows to cluster: an index, or a table, of which one that comes in blocks is copied.
template <class Found, class Work>
std::shared_ptr<Found> found_in(Call& call, nanobind::handle rows, const Work& work,
                                Computes computes = Computes::on_host) {
  const auto index = call.native<HeldIndex>(rows);
  if (computes == Computes::on_host) call.on_host();
  Input table;
  if (index == nullptr)
    table = computes == Computes::on_host ? call.host_table("table", rows) : call.table("table", rows);
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

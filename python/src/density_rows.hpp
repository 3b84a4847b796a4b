// What the functions of density clustering take: rows in host memory, and arrays that are copied.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "searched.hpp"

namespace vicinal::python {

/// Rows to cluster, in host memory: an index, or a table, of which one that comes in blocks is copied.
class HostRows {
 public:
  HostRows(Call& call, nanobind::handle value) : index_(call.native<HeldIndex>(value)) {
    call.on_host();
    if (index_ == nullptr) table_ = call.host_table("table", value);
  }
  template <class Work>
  void visit(const Context& ctx, const Work& work) const {
    if (index_ != nullptr) {
      work(index_->index);
    } else {
      work(in_memory(ctx, table_).view);
    }
  }

 private:
  std::shared_ptr<const HeldIndex> index_;
  Input table_;
};

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

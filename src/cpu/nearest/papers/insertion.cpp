// Selection by insertion, of `insertion` and `tiled_insertion`. See selection.hpp.
#include <limits>

#include "core/order.hpp"
#include "cpu/nearest/papers/selection.hpp"

namespace vicinal::cpu::papers {

void SortedList::insert(std::span<const double> keys, std::int64_t first) {
  for (std::size_t j = 0; j < keys.size(); ++j) {
    const double key = keys[j];
    const std::int64_t id = first + static_cast<std::int64_t>(j);
    if (!(key < std::numeric_limits<double>::infinity())) continue;
    if (size_ == list_.k && !core::nearer(key, id, list_.keys[size_ - 1], list_.ids[size_ - 1])) continue;
    std::int64_t at = size_ < list_.k ? size_++ : size_ - 1;
    for (; at > 0 && core::nearer(key, id, list_.keys[at - 1], list_.ids[at - 1]); --at) {
      list_.keys[at] = list_.keys[at - 1];
      list_.ids[at] = list_.ids[at - 1];
    }
    list_.keys[at] = key;
    list_.ids[at] = id;
  }
}

}  // namespace vicinal::cpu::papers

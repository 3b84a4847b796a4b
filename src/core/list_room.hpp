// Room for large results. The system clears memory when it is first touched: for gigabytes one thread would take as
// long as several devices for a search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vicinal/context.hpp"

namespace vicinal::core {

/// Touches memory whose contents are of no use yet, by the context's threads. Throws `cancelled`.
void touch_pages(const Context& ctx, void* data, std::size_t bytes);

/// Resizes both to so many elements, all zero, by the context's threads. Throws `cancelled`.
void resize_lists(const Context& ctx, std::vector<std::int64_t>& ids, std::vector<double>& distances,
                  std::int64_t size);

}  // namespace vicinal::core

// Room for the lists of a search. They may take gigabytes, which the system clears when they are first touched: one
// thread would take as long for that as several devices for the search.
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/context.hpp"

namespace vicinal::core {

/// Resizes both to so many elements, all zero, by the context's threads. Throws `cancelled`.
void resize_lists(const Context& ctx, std::vector<std::int64_t>& ids, std::vector<double>& distances,
                  std::int64_t size);

}  // namespace vicinal::core

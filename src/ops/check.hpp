// Checks that more than one operation makes at the door (contract clause 6).
#pragma once

#include <string_view>

#include "vicinal/table.hpp"

namespace vicinal {

/// Throws `invalid_argument` for a table without rows or columns, `device_unavailable` for one in device memory.
void check_table(const TableView& table, std::string_view name);

}  // namespace vicinal

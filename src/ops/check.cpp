// Checks that more than one operation makes at the door.
#include "ops/check.hpp"

#include <string>

namespace vicinal {

void check_table(const TableView& table, std::string_view name) {
  const std::string argument(name);
  if (table.rows() < 1) throw Error(ErrorCode::invalid_argument, argument + ": is empty, it has no rows");
  if (table.cols() < 1) throw Error(ErrorCode::invalid_argument, argument + ": is empty, it has no columns");
  if (table.memory() == Memory::cuda) {
    throw Error(ErrorCode::device_unavailable, argument + ": lies in device memory, which this build cannot read");
  }
}

}  // namespace vicinal

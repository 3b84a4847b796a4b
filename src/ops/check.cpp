// Checks that more than one operation makes at the door.
#include "ops/check.hpp"

#include <string>

#include "kernels.hpp"

namespace vicinal {

void check_memory(const Context& ctx, const TableView& table, std::string_view name) {
  if (kernels::backend_of(ctx).reaches(table.memory())) return;
  throw Error(ErrorCode::device_unavailable, std::string(name) + ": lies in CUDA memory, which " + ctx.device() +
                                                 " cannot read; make the context with Context::cuda");
}

void check_table(const Context& ctx, const TableView& table, std::string_view name) {
  const std::string argument(name);
  if (table.rows() < 1) throw Error(ErrorCode::invalid_argument, argument + ": is empty, it has no rows");
  if (table.cols() < 1) throw Error(ErrorCode::invalid_argument, argument + ": is empty, it has no columns");
  check_memory(ctx, table, name);
}

}  // namespace vicinal

// sample_rows (contract clause 22).
#include "vicinal/sample.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/philox.hpp"
#include "core/poll.hpp"
#include "core/sampling.hpp"
#include "core/table_access.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/kmeans/clustered_rows.hpp"

namespace vicinal {
namespace {

constexpr std::uint64_t kStream = 0x73696c68;
constexpr std::uint64_t kDrawBytes = 64;  // of a drawn row in the set of those taken

}  // namespace

TableSample sample_rows(const Context& ctx, const TableView& table, std::int64_t count, std::uint64_t seed) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  if (count < 1) refuse(fmt::format("count: is {}, must be at least 1", count));
  const std::int64_t n = table.rows();
  const std::int64_t kept = std::min(n, count);
  const std::uint64_t row_bytes = static_cast<std::uint64_t>(table.cols()) * sizeof(double);
  core::require_memory(
      ctx,
      static_cast<std::uint64_t>(kept) * (row_bytes + sizeof(std::int64_t) + kDrawBytes) + ops::bytes_on_host(table),
      "sample_rows");
  core::Poll poll(ctx);
  TableSample sample;
  sample.cols = table.cols();
  if (kept == n) {
    sample.ids.resize(static_cast<std::size_t>(n));
    std::iota(sample.ids.begin(), sample.ids.end(), 0);
  } else {
    sample.ids = core::rows_without_replacement(n, kept, [&, i = std::uint64_t{0}]() mutable {
      poll.step();
      return core::philox_uniform(seed, kStream, i++);
    });
    std::sort(sample.ids.begin(), sample.ids.end());
  }
  const ops::RowCopy rows = ops::rows_on_host(ctx, table);
  sample.values.resize(static_cast<std::size_t>(kept * table.cols()));
  for (std::int64_t i = 0; i < kept; ++i) {
    if (i % 256 == 0) ctx.check_cancelled();
    const std::int64_t id = sample.ids[static_cast<std::size_t>(i)];
    core::widen_rows(rows.table, id, id + 1, sample.values.data() + i * table.cols());
  }
  return sample;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

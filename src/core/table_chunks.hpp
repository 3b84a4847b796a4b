// A table in chunks of rows in float64, and the first of its values that is not finite.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal::core {

/// Rows of a chunk: widened, it fits the L2 cache.
inline std::int64_t rows_of_chunk(std::int64_t d) {
  return std::clamp<std::int64_t>((std::int64_t{1} << 15) / d, 1, 65536);
}

/// Calls body(begin, rows as float64 [count, d], count) for every chunk of the table; chunks in order for a block
/// source (it may be called by one thread at a time), in parallel otherwise. Memory: a chunk for each thread.
template <class Body>
void for_each_chunk(const Context& ctx, const TableView& table, const Body& body) {
  const std::int64_t d = table.cols();
  const std::int64_t step = rows_of_chunk(d);
  const std::int64_t tasks = (table.rows() + step - 1) / step;
  const bool serial = table.is_block_source();
  std::vector<std::vector<double>> scratch(serial ? 1 : static_cast<std::size_t>(ctx.threads()));
  const auto run = [&](std::int64_t task, int worker) {
    const std::int64_t begin = task * step;
    const std::int64_t end = std::min(table.rows(), begin + step);
    auto& rows = scratch[serial ? 0 : static_cast<std::size_t>(worker)];
    rows.resize(static_cast<std::size_t>((end - begin) * d));
    widen_rows(table, begin, end, rows.data());
    body(begin, rows.data(), end - begin);
  };
  if (serial) {
    for (std::int64_t task = 0; task < tasks; ++task) {
      ctx.check_cancelled();
      run(task, 0);
    }
  } else {
    parallel_for(ctx, tasks, run);
  }
}

/// Position of the first value that is not finite, or -1.
std::int64_t first_non_finite(const double* values, std::int64_t count);

/// Row and column of the first one of a table, or -1 and -1. Throws `cancelled`.
std::pair<std::int64_t, std::int64_t> find_non_finite(const Context& ctx, const TableView& table);

}  // namespace vicinal::core

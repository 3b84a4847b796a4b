// See index_check.hpp. The center needs no check: every finite one is sound (cpu/nearest/ladder.cpp). Neither do the
// tree, whose boxes are made from the table, and the k-distances, of which any are sound.
#include "ops/nearest/index_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>

#include "core/parallel.hpp"
#include "core/table_access.hpp"

namespace vicinal::ops {
namespace {

constexpr std::int64_t kElementsChecked = std::int64_t{1} << 15;  // of a task: widened, they fit the L2 cache
constexpr std::int64_t kGroupsChecked = 4096;                     // of a task

/// Of rows [first, first + count), widened: the first value that must not be there, as a sentence; or none.
std::string wrong_value(const kernels::Prepared& index, const double* rows, std::int64_t first, std::int64_t count) {
  const std::int64_t d = index.table.cols();
  // A deviation beyond float64 is saved as the largest number.
  const double largest =
      index.largest < std::numeric_limits<double>::max() ? index.largest : std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < d; ++j) {
      const double value = rows[i * d + j];
      const bool near = std::fabs(value - index.centre[static_cast<std::size_t>(j)]) <= largest;
      if (near && std::isfinite(value)) continue;
      return "row " + std::to_string(first + i) + ", column " + std::to_string(j) +
             (std::isfinite(value) ? " is farther from the center than 'largest'" : " is not finite");
    }
  }
  return {};
}

/// Whether all values are finite and within `largest`; false, too, where `wrong_value` alone can tell. NaN is not.
bool values_fit(const kernels::Prepared& index, const double* rows, std::int64_t count) {
  const std::int64_t d = index.table.cols();
  const double* const centre = index.centre.data();
  std::uint64_t wrong = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double* const row = rows + i * d;
    for (std::int64_t j = 0; j < d; ++j) {
      wrong |= static_cast<std::uint64_t>(!(std::fabs(row[j] - centre[j]) <= index.largest));
    }
  }
  return wrong == 0;
}

void check_values(const Context& ctx, const FileKind& kind, const std::filesystem::path& path,
                  const kernels::Prepared& index) {
  const TableView& table = index.table;
  const std::int64_t d = table.cols();
  const std::int64_t step = std::clamp<std::int64_t>(kElementsChecked / d, 1, 65536);
  const std::int64_t tasks = (table.rows() + step - 1) / step;
  std::vector<std::vector<double>> scratch(static_cast<std::size_t>(ctx.threads()));
  std::mutex mutex;
  std::int64_t wrong_row = table.rows();
  std::string wrong;
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int worker) {
    const std::int64_t first = task * step;
    const std::int64_t count = std::min(step, table.rows() - first);
    std::vector<double>& rows = scratch[static_cast<std::size_t>(worker)];
    rows.resize(static_cast<std::size_t>(count * d));
    core::widen_rows(table, first, first + count, rows.data());
    if (values_fit(index, rows.data(), count)) return;
    const std::string why = wrong_value(index, rows.data(), first, count);
    const std::scoped_lock lock(mutex);
    if (why.empty() || first >= wrong_row) return;
    wrong_row = first;
    wrong = why;
  });
  if (!wrong.empty()) refuse_file(kind, path, wrong);
}

/// The table of a file lies in host memory without gaps.
void check_members(const Context& ctx, const FileKind& kind, const std::filesystem::path& path,
                   const kernels::Prepared& index) {
  const auto* const bytes = static_cast<const unsigned char*>(index.table.data());
  const std::int64_t row_bytes = index.table.cols() * size_of(index.table.dtype());
  const auto groups = static_cast<std::int64_t>(index.distinct.size());
  core::parallel_for(ctx, (groups + kGroupsChecked - 1) / kGroupsChecked, [&](std::int64_t task, int /*worker*/) {
    const std::int64_t end = std::min(groups, (task + 1) * kGroupsChecked);
    for (std::int64_t g = task * kGroupsChecked; g < end; ++g) {
      const auto group = static_cast<std::size_t>(g);
      const std::int64_t first = index.distinct[group];
      for (std::int64_t i = index.member_offsets[group] + 1; i < index.member_offsets[group + 1]; ++i) {
        if (i % kGroupsChecked == 0) ctx.check_cancelled();
        const std::int64_t row = index.members[static_cast<std::size_t>(i)];
        if (std::memcmp(bytes + first * row_bytes, bytes + row * row_bytes, static_cast<std::size_t>(row_bytes)) != 0) {
          refuse_file(kind, path,
                      "rows " + std::to_string(first) + " and " + std::to_string(row) +
                          " differ, but it has them in one group of equal rows");
        }
      }
    }
  });
}

}  // namespace

void check_groups(const FileKind& kind, const std::filesystem::path& path, const kernels::Prepared& index) {
  const auto refuse = [&](const char* why) { refuse_file(kind, path, why); };
  const std::int64_t n = index.table.rows();
  const auto& offsets = index.member_offsets;
  if (offsets.front() != 0 || offsets.back() != n) refuse("its groups do not cover the rows");
  std::vector<bool> seen(static_cast<std::size_t>(n));
  for (std::size_t g = 0; g < index.distinct.size(); ++g) {
    if (offsets[g + 1] <= offsets[g] || offsets[g + 1] > n) refuse("its group offsets do not ascend");
    if (index.members[static_cast<std::size_t>(offsets[g])] != index.distinct[g] ||
        (g > 0 && index.distinct[g] <= index.distinct[g - 1])) {
      refuse("its groups are not in the order of their first rows");
    }
    std::int64_t before = -1;
    for (std::int64_t i = offsets[g]; i < offsets[g + 1]; ++i) {
      const std::int64_t row = index.members[static_cast<std::size_t>(i)];
      if (row <= before || row >= n || seen[static_cast<std::size_t>(row)]) {
        refuse("its groups are not a partition of the rows");
      }
      seen[static_cast<std::size_t>(row)] = true;
      before = row;
    }
  }
}

void check_rows(const Context& ctx, const FileKind& kind, const std::filesystem::path& path,
                const kernels::Prepared& index) {
  check_values(ctx, kind, path, index);
  check_members(ctx, kind, path, index);
}

}  // namespace vicinal::ops

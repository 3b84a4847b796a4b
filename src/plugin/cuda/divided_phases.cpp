// Phases of a search on several devices. One device looks at all queries before it compares them with rows, and of
// pairs whose keys overflow it names the first query, with its first row. Several devices say the same (contract clause
// 4).
#include <exception>

#include "backend/backend.hpp"
#include "plugin/cuda/divided_nearest.hpp"

namespace vicinal::plugin {
namespace {

using kernels::NearestTask;

/// Of queries that are not finite the first.
void refuse_queries(const Context& ctx, const NearestTask& task) {
  kernels::cpu_backend().nearest().check_queries(ctx, task);
}

}  // namespace

void DividedNearest::find_by_queries(
    const Context& ctx, const NearestTask& task,
    const std::function<void(std::int64_t member, const SearchPart& part)>& find) const {
  const std::vector<std::int64_t> cuts = query_cuts(task);
  try {
    crew_->run("queries", ctx, std::ssize(cuts) - 1, [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      SearchPart part;
      take_queries(task, cuts[at], cuts[at + 1], i, part);
      find(i, part);
    });
  } catch (const Error& error) {
    if (error.code() == ErrorCode::bad_data) refuse_queries(ctx, task);
    throw;
  }
}

// A device names the first of its own pairs, and others may have the one of an earlier query. That query is found by
// halving, which takes at most as long as the search itself; of one query the lowest device has the first row.
void DividedNearest::find_by_rows(const Context& ctx, const NearestTask& whole, const NearestTask& task,
                                  const std::function<void(const NearestTask& task)>& find) const {
  const auto error_of = [&](std::int64_t begin, std::int64_t end) -> std::exception_ptr {
    SearchPart part;
    take_queries(task, begin, end, 0, part);
    try {
      find(part.task);
      return nullptr;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      return std::current_exception();
    }
  };
  std::int64_t begin = 0;
  std::int64_t end = task.queries.rows();
  const std::exception_ptr error = error_of(begin, end);
  if (!error) return;
  refuse_queries(ctx, whole);
  while (end - begin > 1) {
    const std::int64_t middle = begin + (end - begin) / 2;
    (error_of(begin, middle) ? end : begin) = middle;
  }
  const std::exception_ptr first = error_of(begin, end);
  std::rethrow_exception(first ? first : error);
}

}  // namespace vicinal::plugin

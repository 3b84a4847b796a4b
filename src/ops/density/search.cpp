// See search.hpp.
#include "ops/density/search.hpp"

#include <algorithm>
#include <cmath>
#include <exception>

#include "core/in_steps.hpp"
#include "core/large_pages.hpp"
#include "core/parallel.hpp"
#include "formulas/nearest/method_kind.hpp"
#include "ops/common/refuse.hpp"

namespace vicinal::ops {

const kernels::DensityBackend& density_backend(const Context& ctx, kernels::DensityWork work,
                                               const std::string& operation) {
  const kernels::DensityBackend* const backend = kernels::backend_of(ctx).density();
  if (backend == nullptr) {
    throw Error(ErrorCode::device_unavailable, operation + ": does not run on several devices as one, such as " +
                                                   ctx.device() + "; use a context of one device or of the CPU");
  }
  if (backend->serves(work)) return *backend;
  throw Error(ErrorCode::device_unavailable,
              operation + ": runs on the CPU only so far, not on " + ctx.device() + "; use a context of the CPU");
}

void check_density_search(const TableView& table, Metric metric, double p, Method method,
                          const std::string& operation) {
  if (metric == Metric::minkowski && !(p >= 1 && std::isfinite(p))) {
    refuse("p: must be finite and at least 1 for the minkowski metric");
  }
  if (kernels::is_of_a_paper(method)) {
    refuse("method: " + std::string(name_of(method)) + " finds the k nearest neighbors only; " + operation +
           " takes automatic, fused, direct or kdtree");
  }
  if (table.is_block_source()) refuse("table: comes in blocks; " + operation + " needs it in memory");
}

std::int64_t listed_neighbors(std::int64_t rows, std::int64_t rank) {
  constexpr std::int64_t kBeyondCore = 5;
  return std::min(rows - 1, std::max<std::int64_t>(rank, 1) + kBeyondCore);
}

namespace {

/// Writes to each page that is reserved, on all threads, so that the system provides the pages in parallel. There is no
/// value yet.
template <class T>
void touch_pages(const Context& ctx, std::vector<T>& values) {
  auto* const memory = reinterpret_cast<unsigned char*>(values.data());
  const auto bytes = static_cast<std::int64_t>(values.capacity() * sizeof(T));
  constexpr std::int64_t kPage = 4096;
  constexpr std::int64_t kPerTask = static_cast<std::int64_t>(core::kLargePage);
  core::parallel_for(ctx, (bytes + kPerTask - 1) / kPerTask, [&](std::int64_t task, int /*worker*/) {
    for (std::int64_t at = task * kPerTask; at < std::min(bytes, (task + 1) * kPerTask); at += kPage) memory[at] = 0;
  });
}

}  // namespace

KeyLists::KeyLists(const Context& ctx, std::int64_t rows, std::int64_t k) {
  ids.reserve(static_cast<std::size_t>(rows * k));
  keys.reserve(static_cast<std::size_t>(rows * k));
  core::prefer_large_pages(ids.data(), ids.capacity() * sizeof(std::int64_t));
  core::prefer_large_pages(keys.data(), keys.capacity() * sizeof(double));
  touch_pages(ctx, ids);
  touch_pages(ctx, keys);
  core::resize_in_steps(ctx, ids, rows * k);
  core::resize_in_steps(ctx, keys, rows * k);
}

void KeyLists::find(const Context& ctx, const kernels::NearestTask& task, SearchStats& stats) {
  std::vector<std::int64_t> unused;
  kernels::NearestResult result{ids, keys, unused, unused, stats};
  kernels::backend_of(ctx).nearest().search(ctx, task, result);
  in_tree_order = result.in_tree_order;
}

std::uint64_t most_bytes(const Context& ctx, kernels::NearestTask search,
                         const std::function<std::uint64_t(const kernels::NearestTask& by)>& bytes) {
  const kernels::NearestBackend& nearest = kernels::backend_of(ctx).nearest();
  std::uint64_t most = 0;
  std::exception_ptr no_room;
  bool fits = false;
  for (const Method method : {Method::fused, Method::direct, Method::kdtree}) {
    search.method = method;
    if (method == Method::fused && !nearest.can_fuse(search)) continue;
    if (method == Method::kdtree && !nearest.can_use_tree(search)) continue;
    try {
      most = std::max(most, bytes(search));
      fits = true;
    } catch (const Error& error) {  // a device has room for some methods only
      if (error.code() != ErrorCode::over_memory) throw;
      no_room = std::current_exception();
    }
  }
  if (!fits && no_room) std::rethrow_exception(no_room);
  return most;
}

kernels::Prepared unread_index(const TableView& table) {
  kernels::Prepared unread;
  unread.table = table;
  unread.centre.assign(static_cast<std::size_t>(table.cols()), 0);
  return unread;
}

Plan plan_of_one_row(const Context& ctx) {
  Plan plan;
  plan.method = Method::direct;
  plan.device = ctx.device();
  plan.isa = std::string(name_of(ctx.isa()));
  plan.threads = ctx.threads();
  plan.reason = "one row has no neighbors";
  return plan;
}

}  // namespace vicinal::ops

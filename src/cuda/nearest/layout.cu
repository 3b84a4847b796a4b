// See layout.hpp. A quarter of what is left goes to queries and answers (half, where the table stays on the device),
// half of the rest to two tiles of a table that is streamed, and the remainder to the passes.
#include <algorithm>

#include "cuda/nearest/direct.hpp"
#include "cuda/nearest/layout.hpp"
#include "cuda/nearest/merge.hpp"
#include "cuda/nearest/papers/papers.hpp"
#include "cuda/nearest/tree/tree.hpp"
#include "cuda/nearest/vote.hpp"
#include "formulas/nearest/half_screen.hpp"
#include "formulas/nearest/method_kind.hpp"

namespace vicinal::cuda {
namespace {

constexpr std::int64_t kMaxGroup = std::int64_t{1} << 22;  // queries
constexpr std::int64_t kMaxTile = std::int64_t{1} << 30;   // bytes
constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;   // of device memory for anything

}  // namespace

Layout::Layout(const Session& session, const plugin::Search& call) {
  const Engine& engine = session.engine;
  const auto n = static_cast<std::uint64_t>(call.table.rows);
  const bool resident = call.resident != nullptr || call.stays != 0;
  const bool merges = static_cast<Method>(call.method) == Method::fused && !resident;
  std::uint64_t held = session.resident_bytes + call.held;
  if (call.stays != 0) held += copy_bytes(call.table);
  if (static_cast<Method>(call.method) == Method::kdtree && call.tree == nullptr) {
    held += tree_bytes(call.table.rows, call.table.cols, static_cast<DType>(call.table.dtype));
  }
  left = engine.memory_limit - std::min(engine.memory_limit, held);
  if (call.filter != nullptr) fixed += (n + 63) / 64 * 8;
  fixed += static_cast<std::uint64_t>(call.k_distance_count) * 8;
  const auto on_device = [](std::int32_t memory) { return static_cast<Memory>(memory) == Memory::cuda; };
  const bool contiguous = call.queries.col_stride == 1 && call.queries.row_stride == call.queries.cols;
  const bool borrowed = on_device(call.queries.memory) && contiguous;
  if (!borrowed && !(call.self != 0 && resident)) {
    query += static_cast<std::uint64_t>(row_bytes(call.queries));
  }
  if (call.exclude != nullptr) query += 8;
  query += 16;  // size and limit of a list, or a count
  if (call.collect == plugin::kKList && (call.output_count > 0 || !on_device(call.memory))) {
    query += static_cast<std::uint64_t>(call.k) * 16;
  }
  if (merges && call.collect == plugin::kKList) {
    query += static_cast<std::uint64_t>(call.k) * TileLists::kEntry + TileLists::kQuery;
  }
  for (std::int64_t o = 0; o < call.output_count; ++o) {
    const plugin::VoteOutput& output = call.outputs[o];
    fixed += n * sizeof(std::int32_t) + vote_bytes(engine, output.classes);
    query += sizeof(std::int32_t);
    if (output.probabilities != nullptr) query += static_cast<std::uint64_t>(output.classes) * sizeof(double);
  }
  const std::uint64_t row = static_cast<std::uint64_t>(row_bytes(call.table));
  const std::uint64_t least = fixed + query + (resident ? 0 : 2 * row) + kLeast;
  if (left < least) refuse_memory(least, left);
  // A quarter for queries and answers, half of the rest for tiles, the remainder for the passes.
  const std::uint64_t free = left - fixed;
  const std::uint64_t share = resident ? free / 2 : free / 4;
  const auto fitting = static_cast<std::int64_t>(
      std::clamp<std::uint64_t>(share / query, 1, static_cast<std::uint64_t>(call.queries.rows)));
  group = std::min(fitting, kMaxGroup);
  // A tree takes its own rows in its own order, so all at once where there is room for their answers.
  whole = static_cast<Method>(call.method) == Method::kdtree && call.self != 0 && resident &&
          call.collect == plugin::kKList && call.output_count == 0 && fitting == call.table.rows &&
          call.queries.rows == call.table.rows;
  std::uint64_t taken = fixed + static_cast<std::uint64_t>(whole ? call.queries.rows : group) * query;
  if (taken > left) refuse_memory(taken, left);
  if (!resident) {
    // Packed for the screen, rows may take more than as they are.
    const std::uint64_t wide =
        merges ? static_cast<std::uint64_t>(core::half_columns(call.table.cols)) * sizeof(std::uint16_t) : row;
    const std::uint64_t room = std::min<std::uint64_t>((left - taken) / (merges ? 8 : 4), kMaxTile);
    tile = static_cast<std::int64_t>(std::clamp<std::uint64_t>(room / std::max(row, wide), 1, n));
    taken += 2 * static_cast<std::uint64_t>(tile) * row;
    if (taken > left) refuse_memory(taken, left);
  }
  scratch = left - taken;
}

/// Half of what there is where neighbors within a radius are kept beside.
static std::uint64_t for_the_screen(const plugin::Search& call, const Layout& layout) {
  return call.collect == plugin::kKList ? layout.scratch : layout.scratch / 2;
}

std::uint64_t nearest_bytes(const Session& session, const plugin::Search& call) {
  const bool in_tree = static_cast<Method>(call.method) == Method::kdtree;
  if (in_tree && !has_room_for_tree(session, call)) {
    refuse_memory(tree_bytes(call.table.rows, call.table.cols, static_cast<DType>(call.table.dtype)) +
                      tree_build_bytes(call.table.rows),
                  left_of_limit(session));
  }
  const Layout layout(session, call);
  Search search;
  search.metric = static_cast<Metric>(call.metric);
  const std::int64_t rows = layout.tile > 0 ? layout.tile : call.table.rows;
  search.table = {nullptr, static_cast<DType>(call.table.dtype), rows, call.table.cols};
  search.queries = {nullptr, static_cast<DType>(call.queries.dtype), layout.group, call.queries.cols};
  if (static_cast<Method>(call.method) == Method::fused) {
    return layout.taken() + fused_bytes(session.engine, search, layout.group, call.k, for_the_screen(call, layout));
  }
  if (kernels::is_of_a_paper(static_cast<Method>(call.method))) {
    const PaperTask paper{&search, static_cast<Method>(call.method), {call.k, nullptr, nullptr}};
    return layout.taken() + paper_bytes(paper, layout.group, layout.scratch);
  }
  DirectTask task;
  task.search = &search;
  task.lists.k = call.collect == plugin::kKList ? call.k : 0;
  // Fewer queries have longer blocks, and of a shorter tile a block may be longer: one that fits is not halved.
  std::uint64_t direct = 0;
  for (const std::int64_t m : {layout.group, call.queries.rows % layout.group}) {
    for (const std::int64_t n : {rows, call.table.rows % rows}) {
      if (m > 0 && n > 0) direct = std::max(direct, direct_bytes(task, n, m, layout.scratch));
    }
  }
  if (!in_tree) return layout.taken() + direct;
  // Whatever a tree cannot decide is computed in full.
  return layout.taken() +
         std::max(direct,
                  tree_search_bytes(call.table.cols, layout.whole ? call.queries.rows : layout.group, layout.scratch));
}

bool can_fuse(const Session& session, const plugin::Search& call) {
  try {
    const Layout layout(session, call);
    Engine engine = session.engine;
    engine.memory_limit = for_the_screen(call, layout);
    const std::int64_t rows = layout.tile > 0 ? layout.tile : call.table.rows;
    if (!fused_serves(engine, static_cast<Metric>(call.metric), rows, call.table.cols, call.k)) return false;
    static_cast<void>(nearest_bytes(session, call));
    return true;
  } catch (const Failure&) {
    return false;  // there is no room for it
  }
}

}  // namespace vicinal::cuda

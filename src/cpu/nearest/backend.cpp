// See backend.hpp.
#include "cpu/nearest/backend.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/table_chunks.hpp"
#include "cpu/nearest/cost.hpp"
#include "cpu/nearest/ladder.hpp"
#include "cpu/nearest/nearest.hpp"
#include "cpu/nearest/papers/papers.hpp"
#include "cpu/nearest/prepare.hpp"
#include "cpu/nearest/pruned.hpp"
#include "cpu/nearest/tree/left_rows.hpp"
#include "cpu/nearest/tree/search.hpp"
#include "cpu/nearest/tree/self.hpp"
#include "cpu/nearest/tree/tree.hpp"
#include "cpu/nearest/vote.hpp"

namespace vicinal {

namespace kernels {
namespace {

/// Whether the index has all rows packed for some screen of a task: a coarser one is then packed once.
bool is_packed(const Context& ctx, const NearestTask& task) {
  const std::vector<PackedNeed> needs = cpu::packed_needs(ctx, task);
  return std::any_of(needs.begin(), needs.end(), [&](const PackedNeed& need) {
    const auto packed = task.index->packed.get(need.kind);
    return packed && packed->is_complete();
  });
}

class CpuNearest final : public NearestBackend {
 public:
  void prepare(const Context& ctx, Prepared& index) const override { cpu::prepare(ctx, index); }
  std::uint64_t prepare_bytes(const Context& ctx, const TableView& table) const override {
    return cpu::prepare_scratch(ctx, table);
  }
  void check_queries(const Context& ctx, const NearestTask& task) const override {
    if (task.self) return;  // the table was checked when it was prepared
    const auto [row, col] = core::find_non_finite(ctx, task.queries);
    if (row < 0) return;
    cpu::refuse_query(task.first_query + row, col);
  }
  bool can_fuse(const NearestTask& task) const override {
    return cpu::screen_serves(task.metric, task.screen, task.queries.cols());
  }
  Choice choose(const Context& ctx, const NearestTask& task) const override {
    NearestTask fused = task;
    fused.method = Method::fused;
    const bool fuses = can_fuse(task);
    return cpu::choose(task, fuses, fuses && task.kept_screens > 0 && (task.pruned || is_packed(ctx, fused)));
  }
  std::vector<PackedNeed> packed_needs(const Context& ctx, const NearestTask& task) const override {
    return cpu::packed_needs(ctx, task);
  }
  bool prunes(const Context& ctx, const NearestTask& task) const override { return cpu::prunes(ctx, task); }
  std::uint64_t pruning_bytes(const NearestTask& task) const override { return cpu::pruning_bytes(task); }
  void pack(const Context& ctx, const NearestTask& task) const override { cpu::pack_rows(ctx, task); }
  Costs costs(const Context& ctx, const NearestTask& task) const override {
    const cpu::SimdKernels& simd = cpu::simd_kernels(ctx.isa());
    const bool quick = simd.quick[cpu::screen_index(ScreenType::int8)];
    const bool bytes = quick && screens(ctx, task).rfind("int8", 0) == 0;
    Costs costs = cpu::costs(ctx, task, bytes);
    if (cpu::self_lists_may_serve(ctx, task)) costs.left_to_screens = cpu::LeftRows::costs(ctx, task);
    return costs;
  }
  std::string screens(const Context& ctx, const NearestTask& task) const override {
    std::string names;
    const std::vector<ScreenType> types = cpu::screen_types(task, cpu::simd_kernels(ctx.isa()));
    for (std::size_t level = 0; level < types.size(); ++level) {
      names += names.empty() ? "" : ", ";
      names += name_of(types[level]);
      const PackedKind kind = cpu::packed_kind(task, types, level, cpu::simd_kernels(ctx.isa()));
      if (kind.pruned) {
        const auto pruning = task.index->packed.pruning(kind.metric);
        names += " of " + std::to_string(pruning->columns) + " rotated columns";
        if (pruning->finer_columns > 0) {
          names += " (";
          names += std::to_string(pruning->finer_columns);
          names += " of the rows that they leave)";
        }
      }
    }
    return names;
  }
  bool can_use_tree(const NearestTask& task) const override { return cpu::tree_serves(task.metric); }
  bool has_room_for_tree(const Context& ctx, const NearestTask& task) const override {
    return tree_bytes(*task.index) < ctx.memory_limit();
  }
  bool can_use_paper(Method method, Metric metric, std::int64_t d) const override {
    return cpu::paper_serves(method, metric, d);
  }
  std::shared_ptr<const Tree> build_tree(const Context& ctx, const Prepared& index) const override {
    return cpu::Tree::build(ctx, index);
  }
  std::uint64_t tree_bytes(const Prepared& index) const override { return cpu::Tree::bytes(index); }
  void search(const Context& ctx, const NearestTask& task, NearestResult& result) const override {
    if (task.method == Method::kdtree) return cpu::nearest_in_tree(ctx, task, result);
    if (is_of_a_paper(task.method)) return cpu::nearest_by_paper(ctx, task, result);
    cpu::nearest(ctx, task, result);
  }
  std::unique_ptr<RepeatedSearch> repeat(const Context& ctx, const NearestTask& task) const override {
    const bool by_blocks = task.method == Method::fused || task.method == Method::direct;
    return by_blocks && !task.index->table.is_block_source() ? cpu::repeated_search(ctx, task) : nullptr;
  }
  std::uint64_t host_bytes(const Context& ctx, const NearestTask& task) const override {
    if (task.method == Method::kdtree) return cpu::nearest_in_tree_scratch(ctx, task);
    if (is_of_a_paper(task.method)) return cpu::nearest_by_paper_scratch(ctx, task);
    return cpu::nearest_scratch(ctx, task);
  }
  void vote(const Context& ctx, const VoteTask& task, std::span<Vote> result) const override {
    cpu::cpu_vote(ctx, task, result);
  }
};

}  // namespace

std::shared_ptr<const Tree> restore_tree(const Context& ctx, const Prepared& index, TreeShape shape) {
  return cpu::Tree::restore(ctx, index, std::move(shape));
}

}  // namespace kernels

namespace cpu {

const kernels::NearestBackend& nearest_backend() {
  static const kernels::CpuNearest kBackend;
  return kBackend;
}

}  // namespace cpu
}  // namespace vicinal

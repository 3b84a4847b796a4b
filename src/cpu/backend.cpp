// The CPU backend: one object behind the waist (src/kernels.hpp).
#include "cpu/ladder.hpp"
#include "cpu/nearest.hpp"
#include "cpu/prepare.hpp"
#include "cpu/vote.hpp"
#include "kernels.hpp"

namespace vicinal::kernels {
namespace {

class CpuBackend final : public Backend {
 public:
  void prepare(const Context& ctx, Prepared& index) const override { cpu::prepare(ctx, index); }
  std::uint64_t prepare_scratch(const Context& ctx, const TableView& table) const override {
    return cpu::prepare_scratch(ctx, table);
  }
  std::pair<std::int64_t, std::int64_t> find_non_finite(const Context& ctx, const TableView& table) const override {
    return cpu::find_non_finite(ctx, table);
  }
  bool can_fuse(Metric metric, ScreenType screen, std::int64_t d) const override {
    return cpu::screen_serves(metric, screen, d);
  }
  std::string screens(const Context& ctx, const NearestTask& task) const override {
    std::string names;
    for (const ScreenType type : cpu::screen_types(task, cpu::simd_kernels(ctx.isa()))) {
      names += names.empty() ? "" : ", ";
      names += name_of(type);
    }
    return names;
  }
  void nearest(const Context& ctx, const NearestTask& task, NearestResult& result) const override {
    cpu::nearest(ctx, task, result);
  }
  std::uint64_t nearest_scratch(const Context& ctx, const NearestTask& task) const override {
    return cpu::nearest_scratch(ctx, task);
  }
  void vote(const Context& ctx, const VoteTask& task, std::span<Vote> result) const override {
    cpu::cpu_vote(ctx, task, result);
  }
};

}  // namespace

const Backend& cpu_backend() {
  static const CpuBackend kBackend;
  return kBackend;
}

const Backend& backend_of(const Context& /*ctx*/) {
  return cpu_backend();
}

}  // namespace vicinal::kernels

// The CPU backend: one object behind the interface (backend/backend.hpp).
#include "backend/backend.hpp"

#include "backend/density.hpp"
#include "backend/krylov.hpp"
#include "backend/lle.hpp"
#include "cpu/density/dbscan.hpp"
#include "cpu/density/optics.hpp"
#include "cpu/density/spanning_tree.hpp"
#include "cpu/graph/graphs.hpp"
#include "cpu/kmeans/lloyd.hpp"
#include "cpu/kmeans/seeding.hpp"
#include "cpu/kmeans/table_scan.hpp"
#include "cpu/lle/krylov.hpp"
#include "cpu/lof/lof.hpp"
#include "cpu/nearest/backend.hpp"
#include "cpu/nearest/donors.hpp"
#include "cpu/overlap/join.hpp"

namespace vicinal::kernels {
namespace {

class CpuKMeans final : public KMeansBackend {
 public:
  std::unique_ptr<Lloyd> lloyd(const Context& ctx, const ClusterTask& task) const override {
    return cpu::make_lloyd(ctx, task);
  }
  TableRanges ranges(const Context& ctx, const ClusterTask& task) const override {
    return cpu::scan_table(ctx, task.table, task.weights, task.first_row);
  }
  std::unique_ptr<ShardLloyd> shard(const Context& ctx, const ClusterTask& task,
                                    const TableRanges& whole) const override {
    return cpu::make_shard(ctx, task, whole);
  }
  ClusterPlan plan(const Context& ctx, const ClusterTask& task, std::int64_t trials) const override {
    ClusterPlan plan;
    plan.bytes.host = cpu::lloyd_scratch(ctx, task);
    plan.screens.labels = cpu::label_screen_bytes(ctx, task);
    if (trials == kNoSeeding) return plan;
    plan.bytes.host += cpu::seeding_scratch(ctx, task, trials);
    plan.screens.draws = cpu::seeding_screen_bytes(ctx, task, trials);
    return plan;
  }
};

class CpuLof final : public LofBackend {
 public:
  void score(const Context& ctx, const LofTask& task, LofResult& result) const override { cpu::lof(ctx, task, result); }
  MemoryNeed bytes(const Context& ctx, const LofTask& task) const override { return {cpu::lof_scratch(ctx, task), 0}; }
  void search_and_score(const Context& ctx, const NearestTask& search, const LofTask& task, LofResult& result,
                        SearchStats& stats) const override {
    search_then_score(ctx, cpu_backend().nearest(), *this, search, task, result, stats);
  }
};

class CpuDensity final : public DensityBackend {
 public:
  void spanning_tree(const Context& ctx, const SpanningTask& task, SpanningResult& result) const override {
    cpu::spanning_tree(ctx, task, result);
  }
  MemoryNeed spanning_tree_bytes(const Context& ctx, const SpanningTask& task) const override {
    return {cpu::spanning_tree_bytes(ctx, task), 0};
  }
  void dbscan(const Context& ctx, const DbscanTask& task, DbscanResult& result) const override {
    cpu::dbscan(ctx, task, result);
  }
  MemoryNeed dbscan_bytes(const Context& ctx, const DbscanTask& task) const override {
    return {cpu::dbscan_bytes(ctx, task), 0};
  }
  void optics(const Context& ctx, const OpticsTask& task, OpticsResult& result) const override {
    cpu::optics(ctx, task, result);
  }
  MemoryNeed optics_bytes(const Context& ctx, const OpticsTask& task) const override {
    return {cpu::optics_bytes(ctx, task), 0};
  }
};

class CpuBackend final : public Backend {
 public:
  int device() const override { return kHost; }
  bool reaches(Memory memory) const override { return memory != Memory::cuda; }
  std::string isa(const Context& ctx) const override { return std::string(name_of(ctx.isa())); }

  const NearestBackend& nearest() const override { return cpu::nearest_backend(); }
  const DonorBackend& donors() const override { return donors_; }
  const KMeansBackend& kmeans() const override { return kmeans_; }
  const LofBackend& lof() const override { return lof_; }
  const LleBackend& lle() const override { return lle_; }
  const KrylovBackend& krylov() const override { return krylov_; }
  const GraphBackend& graph() const override { return graph_; }
  const OverlapBackend& overlap() const override { return overlap_; }
  const DensityBackend* density() const override { return &density_; }

 private:
  cpu::CpuDonors donors_;
  CpuKMeans kmeans_;
  CpuLof lof_;
  LleBackend lle_;
  cpu::HostSpaces krylov_;
  cpu::CpuGraphs graph_;
  cpu::CpuJoins overlap_;
  CpuDensity density_;
};

}  // namespace

const Backend& cpu_backend() {
  static const CpuBackend kBackend;
  return kBackend;
}

}  // namespace vicinal::kernels

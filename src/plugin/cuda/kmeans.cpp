// See cluster.hpp. Every function is one call of the plug-in's.
#include "plugin/cuda/kmeans.hpp"

#include "backend/backend.hpp"
#include "plugin/cuda/staging.hpp"

namespace vicinal::plugin {
namespace {

/// A clustering on a device; shared by what iterates and what draws.
class Clustered {
 public:
  Clustered(std::shared_ptr<Device> device, const Context& ctx, const kernels::ClusterTask& task, bool is_shard)
      : device_(std::move(device)), ctx_(ctx), table_(task.table) {
    void* made = nullptr;
    device_->use(ctx, [&](void* engine, Call& call, Status& status) {
      const BorrowedTable table(call, table_);
      const Clustering asked = clustering_of(task, table.table(), is_shard);
      const HostCalls host = call.host();
      device_->functions().cluster(engine, &host, &asked, &made, &status);
    });
    made_ = device_->own(made, device_->functions().release_clustering);
  }

  /// Calls work(functions, clustering, status).
  template <class Work>
  void use(const Work& work) const {
    device_->use(ctx_, [&](void* /*engine*/, Call& /*call*/, Status& status) {
      work(device_->functions(), made_.get(), &status);
    });
  }
  /// Calls work(functions, clustering, host, table, status).
  template <class Work>
  void use_rows(const Work& work) const {
    device_->use(ctx_, [&](void* /*engine*/, Call& call, Status& status) {
      const BorrowedTable table(call, table_);
      const HostCalls host = call.host();
      work(device_->functions(), made_.get(), &host, &table.table(), &status);
    });
  }

 private:
  std::shared_ptr<Device> device_;
  Context ctx_;
  TableView table_;
  std::shared_ptr<void> made_;  // let go of before the device
};

class DeviceSeeding final : public kernels::Seeding {
 public:
  DeviceSeeding(std::shared_ptr<const Clustered> clustered, std::int64_t trials) : clustered_(std::move(clustered)) {
    clustered_->use([&](const Functions& f, void* made, Status* status) { f.seed(made, trials, status); });
  }
  ~DeviceSeeding() override {
    try {
      clustered_->use(
          [&](const Functions& f, void* made, Status* status) { f.seed(made, kernels::kNoSeeding, status); });
    } catch (...) {  // cancelled, or the device is lost: its memory goes with the clustering
    }
  }
  DeviceSeeding(const DeviceSeeding&) = delete;
  DeviceSeeding& operator=(const DeviceSeeding&) = delete;

  void draw(std::span<const double> draws, std::span<std::int64_t> rows) override {
    clustered_->use([&](const Functions& f, void* made, Status* status) {
      f.seed_draw(made, draws.data(), static_cast<std::int64_t>(rows.size()), rows.data(), status);
    });
  }
  void choose(std::span<const double> draws, std::span<std::int64_t> rows) override {
    const auto count = static_cast<std::int64_t>(rows.size());
    clustered_->use([&](const Functions& f, void* made, Status* status) {
      f.seed_choose(made, draws.data(), static_cast<std::int64_t>(draws.size()) / count, count, rows.data(), status);
    });
  }
  void meet(std::span<const std::int64_t> rows) override {
    clustered_->use([&](const Functions& f, void* made, Status* status) {
      f.seed_meet(made, rows.data(), static_cast<std::int64_t>(rows.size()), status);
    });
  }
  double total() const override {
    double total = 0;
    clustered_->use(
        [&](const Functions& f, void* made, Status* status) { f.seed_state(made, &total, nullptr, status); });
    return total;
  }
  void winners(std::span<std::int32_t> winners) const override {
    double total = 0;
    clustered_->use(
        [&](const Functions& f, void* made, Status* status) { f.seed_state(made, &total, winners.data(), status); });
  }

 private:
  std::shared_ptr<const Clustered> clustered_;
};

class DeviceLloyd final : public CudaLloyd {
 public:
  DeviceLloyd(std::shared_ptr<Device> device, const Context& ctx, const kernels::ClusterTask& task, bool is_shard)
      : ctx_(ctx), task_(task), clustered_(std::make_shared<const Clustered>(std::move(device), ctx, task, is_shard)) {}

  void start(std::span<const double> centres) override {
    clustered_->use([&](const Functions& f, void* made, Status* status) {
      f.cluster_start(made, centres.data(), static_cast<std::int64_t>(centres.size()) / task_.table.cols(), status);
    });
  }
  void recentre(std::span<const double> centres) override {
    clustered_->use(
        [&](const Functions& f, void* made, Status* status) { f.cluster_recentre(made, centres.data(), status); });
  }
  kernels::LloydStep assign() override { return run(kAssign); }
  kernels::LloydStep step(bool wait) override { return run(kAssign | (wait ? kMeansUnlessEmpty : kMeans)); }
  double means() override { return run(kMeans).shift; }
  void move(std::int64_t row, std::int32_t cluster) override {
    clustered_->use_rows([&](const Functions& f, void* made, const HostCalls* /*host*/, const Table* table,
                             Status* status) { f.cluster_move(made, table, row, cluster, status); });
  }
  void centres(std::span<double> centres) const override {
    ClusterState state;
    state.centres = centres.data();
    fetch(state);
  }
  void sizes(std::span<std::int64_t> sizes) const override {
    ClusterState state;
    state.sizes = sizes.data();
    fetch(state);
  }
  void labels(std::span<std::int32_t> labels) const override {
    ClusterState state;
    state.labels = labels.data();
    fetch(state);
  }
  void keys(std::span<double> keys) override {
    ClusterState state;
    state.keys = keys.data();
    fetch(state);
  }
  double inertia() override {
    double inertia = 0;
    ClusterState state;
    state.inertia = &inertia;
    fetch(state);
    return inertia;
  }
  void rows(std::span<const std::int64_t> rows, std::span<double> values) const override {
    clustered_->use_rows(
        [&](const Functions& f, void* made, const HostCalls* /*host*/, const Table* table, Status* status) {
          f.cluster_rows(made, table, rows.data(), static_cast<std::int64_t>(rows.size()), values.data(), status);
        });
  }
  std::unique_ptr<kernels::Seeding> seeding(std::int64_t trials) override {
    bool on_device = false;
    clustered_->use([&](const Functions& f, void* made, Status*) { on_device = f.seeds(made, trials) != 0; });
    if (on_device) return std::make_unique<DeviceSeeding>(clustered_, trials);
    // No room: the host draws the same rows.
    if (!on_host_)
      on_host_ = kernels::cpu_backend().kmeans().lloyd(ctx_, {task_.table, task_.weights, task_.clusters, false});
    return on_host_->seeding(trials);
  }
  kernels::AssignCounts counts() const override { return counts_; }

  std::vector<TermRange> ranges() const override {
    std::vector<TermRange> columns(static_cast<std::size_t>(task_.table.cols() + (task_.weights.empty() ? 0 : 1)));
    clustered_->use(
        [&](const Functions& f, void* made, Status* status) { f.cluster_ranges(made, columns.data(), status); });
    return columns;
  }
  void share(const SumLayout& layout) override {
    clustered_->use([&](const Functions& f, void* made, Status* status) { f.cluster_share(made, &layout, status); });
  }
  std::int64_t* parts() override {
    std::int64_t* parts = nullptr;
    clustered_->use([&](const Functions& f, void* made, Status* status) { f.cluster_parts(made, &parts, status); });
    return parts;
  }
  double means_of(const std::int64_t* parts) override {
    double shift = 0;
    clustered_->use(
        [&](const Functions& f, void* made, Status* status) { f.cluster_means(made, parts, &shift, status); });
    return shift;
  }
  void inertia_limbs(std::span<std::int64_t> limbs) override {
    ClusterState state;
    state.inertia_limbs = limbs.data();
    fetch(state);
  }

 private:
  kernels::LloydStep run(std::int32_t work) {
    ClusterStep step;
    clustered_->use_rows([&](const Functions& f, void* made, const HostCalls* host, const Table* table,
                             Status* status) { f.cluster_step(made, host, table, work, &step, status); });
    if ((work & kAssign) != 0) counts_.rows += task_.table.rows();
    counts_.rechecked += step.rechecked;
    return {step.changed, step.empty, step.moved != 0, step.shift};
  }
  void fetch(const ClusterState& state) const {
    clustered_->use_rows([&](const Functions& f, void* made, const HostCalls* host, const Table* table,
                             Status* status) { f.cluster_state(made, host, table, &state, status); });
  }

  Context ctx_;
  kernels::ClusterTask task_;
  std::shared_ptr<const Clustered> clustered_;
  std::unique_ptr<kernels::Lloyd> on_host_;  // for a seeding that the device has no room for
  kernels::AssignCounts counts_;
};

}  // namespace

Clustering clustering_of(const kernels::ClusterTask& task, const Table& table, bool is_shard) {
  Clustering asked;
  asked.table = table;
  asked.weights = task.weights.empty() ? nullptr : task.weights.data();
  asked.clusters = task.clusters;
  asked.sums = !task.sums ? 0 : is_shard ? kSumsOfShard : 1;
  asked.first_row = task.first_row;
  return asked;
}

std::unique_ptr<CudaLloyd> make_lloyd(std::shared_ptr<Device> device, const Context& ctx,
                                      const kernels::ClusterTask& task, bool is_shard) {
  return std::make_unique<DeviceLloyd>(std::move(device), ctx, task, is_shard);
}

std::string CudaKMeans::screens(const kernels::ClusterTask& task) const {
  const Clustering asked = clustering_of(task, BorrowedTable::shape_of(task.table));
  return device_->functions().cluster_screens(device_->engine(), &asked);
}

std::unique_ptr<kernels::Lloyd> CudaKMeans::lloyd(const Context& ctx, const kernels::ClusterTask& task) const {
  return make_lloyd(device_, ctx, task);
}

kernels::ClusterPlan CudaKMeans::plan_of(const Context& ctx, const kernels::ClusterTask& task, std::int64_t trials,
                                         bool is_shard) const {
  Clustering asked = clustering_of(task, BorrowedTable::shape_of(task.table), is_shard);
  asked.trials = trials;
  ClusterRoom room;
  Status status;
  device_->functions().cluster_bytes(device_->engine(), &asked, &room, &status);
  device_->check(status);
  kernels::ClusterPlan plan;
  plan.bytes = {staging_bytes(task.table), room.bytes};
  plan.part = room.part < task.table.rows() ? room.part : 0;
  plan.seeds_on_host = trials >= 0 && room.seeds == 0;
  if (plan.seeds_on_host) {
    const kernels::ClusterTask drawn = {task.table, task.weights, task.clusters, false};
    plan.bytes.host += kernels::cpu_backend().kmeans().plan(ctx, drawn, trials).bytes.host;
  }
  return plan;
}

}  // namespace vicinal::plugin

// See lof.hpp.
#include "plugin/cuda/lof.hpp"

#include "plugin/cuda/staging.hpp"

namespace vicinal::plugin {
namespace {

/// A task as the plug-in takes it.
Outliers outliers_of(const kernels::LofTask& task, const Table& table) {
  Outliers asked;
  asked.score = static_cast<std::int32_t>(task.score);
  asked.duplicates = static_cast<std::int32_t>(task.duplicates);
  asked.across = static_cast<std::int32_t>(task.across);
  asked.ids = task.near.ids;
  asked.distances = task.near.distances;
  asked.offsets = task.near.offsets;
  asked.weights = task.near.weights;
  asked.rows = task.near.rows;
  asked.k = task.near.k;
  asked.stride = task.near.stride;
  asked.entries = task.near.offsets != nullptr ? task.near.offsets[task.near.rows] : task.near.rows * task.near.stride;
  asked.k_from = task.k_from;
  asked.ks = task.ks();
  asked.table = table;
  asked.metric = static_cast<std::int32_t>(task.metric);
  asked.p = task.p;
  if (task.model == nullptr) return asked;
  asked.known_rows = static_cast<std::int64_t>(task.model->k_distances.size()) / asked.ks;
  asked.known_k_distances = task.model->k_distances.data();
  asked.known_densities = task.model->densities.empty() ? nullptr : task.model->densities.data();
  asked.known_caps = task.model->caps.empty() ? nullptr : task.model->caps.data();
  return asked;
}

/// Where the plug-in puts what is asked of a task.
class OutlierRoom {
 public:
  OutlierRoom(const kernels::LofTask& task, kernels::LofResult& result, Outliers& asked) : result_(result) {
    const auto size = static_cast<std::size_t>(asked.rows * asked.ks);
    asked.scores = result.scores.data();
    if (task.keep) {
      result.k_distances.resize(size);
      if (core::compares_neighbors(task.score)) result.densities.resize(size);
    }
    const bool caps = task.duplicates == Duplicates::cap && task.model == nullptr && core::has_densities(task.score);
    if (caps) result.caps.resize(static_cast<std::size_t>(asked.ks));
    asked.k_distances = result.k_distances.empty() ? nullptr : result.k_distances.data();
    asked.densities = result.densities.empty() ? nullptr : result.densities.data();
    asked.caps = result.caps.empty() ? nullptr : result.caps.data();
  }
  void hand_over(const Outliers& asked) {
    result_.copied = asked.copied;
    result_.seconds = asked.seconds;
  }

 private:
  kernels::LofResult& result_;
};

}  // namespace

CudaLofRows::CudaLofRows(std::shared_ptr<Device> device, const Context& ctx, void* made)
    : device_(std::move(device)), ctx_(ctx), made_(device_->own(made, device_->functions().release_lof_rows)) {}

void CudaLofRows::densities(const double* k_distances, double* densities) const {
  device_->use(ctx_, [&](void* /*engine*/, Call& /*call*/, Status& status) {
    device_->functions().lof_densities(made_.get(), k_distances, densities, &status);
  });
}

void CudaLofRows::scores(const double* densities, std::int64_t first_row, double* scores) const {
  device_->use(ctx_, [&](void* /*engine*/, Call& /*call*/, Status& status) {
    device_->functions().lof_scores(made_.get(), densities, first_row, scores, &status);
  });
}

std::unique_ptr<CudaLofRows> CudaLof::find_rows(const Context& ctx, const kernels::NearestTask& search,
                                                const kernels::LofTask& task, std::int64_t rows, double* k_distances,
                                                std::int64_t& copied, SearchStats& stats) const {
  void* made = nullptr;
  nearest_.run_search(ctx, search, stats, [&](Call& call, Search& asked, Counters& counters, Status& status) {
    Outliers outliers = outliers_of(task, {});
    outliers.known_rows = rows;
    outliers.k_distances = k_distances;
    const HostCalls host = call.host();
    device_->functions().lof_rows(device_->engine(), &host, &asked, &outliers, &counters, &made, &status);
    copied += outliers.copied;
  });
  return std::make_unique<CudaLofRows>(device_, ctx, made);
}

std::uint64_t CudaLof::rows_bytes(const kernels::LofTask& task, std::int64_t rows) const {
  Outliers asked = outliers_of(task, {});
  asked.known_rows = rows;
  std::uint64_t bytes = 0;
  Status status;
  device_->functions().lof_bytes(device_->engine(), &asked, &bytes, &status);
  device_->check(status);
  return bytes;
}

void CudaLof::score(const Context& ctx, const kernels::LofTask& task, kernels::LofResult& result) const {
  device_->use(ctx, [&](void* engine, Call& call, Status& status) {
    const BorrowedTable table(call, task.table);
    Outliers asked = outliers_of(task, table.table());
    OutlierRoom room(task, result, asked);
    Counters counters;
    const HostCalls host = call.host();
    device_->functions().lof(engine, &host, nullptr, &asked, &counters, &status);
    room.hand_over(asked);
  });
}

kernels::MemoryNeed CudaLof::bytes(const Context& /*ctx*/, const kernels::LofTask& task) const {
  const Outliers asked = outliers_of(task, BorrowedTable::shape_of(task.table));
  kernels::MemoryNeed bytes;
  bytes.host = staging_bytes(task.table);
  Status status;
  device_->functions().lof_bytes(device_->engine(), &asked, &bytes.device, &status);
  device_->check(status);
  return bytes;
}

void CudaLof::search_and_score(const Context& ctx, const kernels::NearestTask& task, const kernels::LofTask& scores,
                               kernels::LofResult& result, SearchStats& stats) const {
  nearest_.run_search(ctx, task, stats, [&](Call& call, Search& asked, Counters& counters, Status& status) {
    Outliers outliers = outliers_of(scores, asked.table);
    if (scores.table.rows() == 0) outliers.table = {};
    OutlierRoom room(scores, result, outliers);
    const HostCalls host = call.host();
    device_->functions().lof(device_->engine(), &host, &asked, &outliers, &counters, &status);
    room.hand_over(outliers);
  });
}

}  // namespace vicinal::plugin

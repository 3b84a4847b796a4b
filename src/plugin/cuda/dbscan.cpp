// DBSCAN on a device: see density.hpp.
#include "plugin/abi/dbscan.hpp"

#include <cstdint>
#include <memory>

#include "plugin/cuda/density.hpp"
#include "plugin/cuda/staging.hpp"
#include "plugin/cuda/tree.hpp"

namespace vicinal::plugin {
namespace {

constexpr std::uint64_t kHostRowBytes = 24;  // counts, and numbers of rows that search again

DbscanTask clusters_of(const kernels::DbscanTask& task) {
  DbscanTask asked;
  asked.limit = task.limit;
  asked.min_samples = task.min_samples;
  asked.has_weights = task.weights.empty() ? 0 : 1;
  asked.weights = task.weights.empty() ? nullptr : task.weights.data();
  return asked;
}

}  // namespace

void CudaDensity::dbscan(const Context& ctx, const kernels::DbscanTask& task, kernels::DbscanResult& result) const {
  DbscanTask asked = clusters_of(task);
  asked.core = result.core.data();
  asked.labels = result.labels.data();
  SearchStats unused;
  nearest_.run_search(ctx, task.search, unused, [&](Call& call, Search& search, Counters& counters, Status& status) {
    const HostCalls host = call.host();
    device_->functions().dbscan(device_->engine(), &host, &search, &asked, &counters, &status);
  });
  result.clusters = asked.clusters;
}

kernels::MemoryNeed CudaDensity::dbscan_bytes(const Context& /*ctx*/, const kernels::DbscanTask& task) const {
  Search search = nearest_.looked_at(task.search);
  const std::shared_ptr<const kernels::Tree> tree = task.search.index->tree.get(device_->number());
  if (task.search.method == Method::kdtree && tree != nullptr) {
    search.tree = static_cast<const DeviceTree&>(*tree).on_device();
  }
  const DbscanTask asked = clusters_of(task);
  const auto rows = static_cast<std::uint64_t>(task.search.queries.rows());
  kernels::MemoryNeed bytes;
  bytes.host = staging_bytes(task.search.index->table) + static_cast<std::uint64_t>(kStagingBytes);
  if (task.search.method != Method::kdtree) bytes.host += rows * kHostRowBytes;
  Status status;
  device_->functions().dbscan_bytes(device_->engine(), &search, &asked, &bytes.device, &status);
  device_->check(status);
  return bytes;
}

}  // namespace vicinal::plugin

// See density.hpp. What the device does not serve is refused before anything is planned (ops/density/search.cpp).
#include "plugin/cuda/density.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/in_steps.hpp"
#include "plugin/abi/density.hpp"
#include "plugin/cuda/tree.hpp"

namespace vicinal::plugin {
namespace {

static_assert(sizeof(TreeEdge) == sizeof(kernels::TreeEdge) &&
              offsetof(TreeEdge, a) == offsetof(kernels::TreeEdge, a) &&
              offsetof(TreeEdge, b) == offsetof(kernels::TreeEdge, b));

[[noreturn]] void refuse(const char* work) {
  throw Error(ErrorCode::internal, std::string(work) + ": does not run on a device");
}

SpanningTask task_of(const kernels::SpanningTask& task) {
  SpanningTask asked;
  asked.rank = task.rank;
  asked.divisor = task.divisor;
  return asked;
}

}  // namespace

bool CudaDensity::serves(kernels::DensityWork work) const {
  if (work == kernels::DensityWork::dbscan) return device_->functions().dbscan != nullptr;
  return work == kernels::DensityWork::spanning_tree && device_->functions().spanning_tree != nullptr;
}

void CudaDensity::spanning_tree(const Context& ctx, const kernels::SpanningTask& task,
                                kernels::SpanningResult& result) const {
  const std::int64_t n = task.search.queries.rows();
  core::resize_in_steps(ctx, result.edges, n - 1);
  core::resize_in_steps(ctx, result.core_keys, task.rank > 0 ? n : 0);
  SpanningTask asked = task_of(task);
  asked.edges = reinterpret_cast<TreeEdge*>(result.edges.data());
  asked.core_keys = task.rank > 0 ? result.core_keys.data() : nullptr;
  nearest_.run_search(
      ctx, task.search, result.stats, [&](Call& call, Search& search, Counters& counters, Status& status) {
        const HostCalls host = call.host();
        device_->functions().spanning_tree(device_->engine(), &host, &search, &asked, &counters, &status);
      });
  result.seconds = asked.seconds;
}

kernels::MemoryNeed CudaDensity::spanning_tree_bytes(const Context& /*ctx*/, const kernels::SpanningTask& task) const {
  Search search = nearest_.looked_at(task.search);
  const std::shared_ptr<const kernels::Tree> tree = task.search.index->tree.get(device_->number());
  if (task.search.method == Method::kdtree && tree != nullptr) {
    search.tree = static_cast<const DeviceTree&>(*tree).on_device();
  }
  const SpanningTask asked = task_of(task);
  kernels::MemoryNeed bytes;
  Status status;
  device_->functions().spanning_bytes(device_->engine(), &search, &asked, &bytes.device, &status);
  device_->check(status);
  return bytes;
}

void CudaDensity::optics(const Context& /*ctx*/, const kernels::OpticsTask& /*task*/,
                         kernels::OpticsResult& /*result*/) const {
  refuse("optics");
}
kernels::MemoryNeed CudaDensity::optics_bytes(const Context& /*ctx*/, const kernels::OpticsTask& /*task*/) const {
  refuse("optics");
}

}  // namespace vicinal::plugin

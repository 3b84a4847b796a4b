// Searches on a device, in terms of the plug-in's functions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/nearest.hpp"
#include "plugin/cuda/device.hpp"

namespace vicinal::plugin {

inline constexpr std::uint64_t kNeighborBytes = 16;  ///< an id and a distance

class CudaNearest : public kernels::NearestBackend {
 public:
  /// Calls the plug-in for a search that is ready, and has set where its answers go.
  using Place = std::function<void(Call& call, Search& asked, Counters& counters, Status& status)>;
  /// Runs a search whose answers `place` takes.
  virtual void run_search(const Context& ctx, const kernels::NearestTask& task, SearchStats& stats,
                          const Place& place) const = 0;
  /// As `classify` with weights that the device knows; votes go where the outputs say.
  virtual void vote_in_search(const Context& ctx, const kernels::NearestTask& task, const VoteOptions& options,
                              const std::vector<VoteOutput>& outputs, SearchStats& stats) const = 0;
  /// A search for functions that only look: of what is resident, that it is.
  [[nodiscard]] virtual Search looked_at(const kernels::NearestTask& task) const = 0;
  /// Whether the table is on the device, or will be when it is searched.
  [[nodiscard]] virtual bool stays(const kernels::Prepared& index) const = 0;
};

/// Where votes go: to those of the queries from `first` on.
std::vector<VoteOutput> outputs_of(const kernels::VoteTask& votes, std::span<Vote> result, std::int64_t first);

std::unique_ptr<const CudaNearest> make_nearest(std::shared_ptr<Device> device);

}  // namespace vicinal::plugin

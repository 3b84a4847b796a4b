// Outlier scores on several devices. Each finds the lists of a range of the rows, which stay there; what rows say of
// themselves (k-distances, then densities: 8 bytes a row each) is gathered on the host for all of them. Scores that
// compare no neighbors, and those of new rows against a model, need no second phase. cof and inflo, whose rows need
// more of each other, are made of the lists on the first device.
#pragma once

#include <deque>
#include <memory>

#include "plugin/cuda/divided_nearest.hpp"
#include "plugin/cuda/lof.hpp"

namespace vicinal::plugin {

class DividedLof final : public kernels::LofBackend {
 public:
  /// `nearest` must outlive it.
  DividedLof(std::shared_ptr<Crew> crew, const DividedNearest& nearest);

  void score(const Context& ctx, const kernels::LofTask& task, kernels::LofResult& result) const override;
  bool lists_stay(const kernels::LofTask& task) const override;
  kernels::MemoryNeed bytes(const Context& ctx, const kernels::LofTask& task) const override;
  void search_and_score(const Context& ctx, const kernels::NearestTask& search, const kernels::LofTask& task,
                        kernels::LofResult& result, SearchStats& stats) const override;

 private:
  [[nodiscard]] const CudaLof& of(std::int64_t member) const { return members_[static_cast<std::size_t>(member)]; }
  void score_alone(const Context& ctx, const kernels::NearestTask& search, const kernels::LofTask& task,
                   kernels::LofResult& result, SearchStats& stats) const;
  void score_in_phases(const Context& ctx, const kernels::NearestTask& search, const kernels::LofTask& task,
                       kernels::LofResult& result, SearchStats& stats) const;

  std::shared_ptr<Crew> crew_;
  const DividedNearest& nearest_;
  std::deque<CudaLof> members_;
};

}  // namespace vicinal::plugin

// See divided.hpp.
#include "plugin/cuda/divided.hpp"

#include "plugin/cuda/backend.hpp"
#include "plugin/cuda/divided_kmeans.hpp"
#include "plugin/cuda/divided_lof.hpp"
#include "plugin/cuda/divided_nearest.hpp"

namespace vicinal::plugin {
namespace {

class DividedBackend final : public kernels::Backend {
 public:
  explicit DividedBackend(const std::shared_ptr<Crew>& crew)
      : crew_(crew), first_(make_backend(crew->device(0))), nearest_(crew), kmeans_(crew), lof_(crew, nearest_) {}

  int device() const override { return crew_->number(); }
  bool reaches(Memory memory) const override { return memory != Memory::cuda; }
  std::string isa(const Context& ctx) const override { return first_->isa(ctx); }
  TensorCoreSums tensor_core_sums() const override { return first_->tensor_core_sums(); }

  const kernels::NearestBackend& nearest() const override { return nearest_; }
  const kernels::DonorBackend& donors() const override { return first_->donors(); }
  const kernels::KMeansBackend& kmeans() const override { return kmeans_; }
  const kernels::LofBackend& lof() const override { return lof_; }
  const kernels::LleBackend& lle() const override { return first_->lle(); }
  const kernels::KrylovBackend& krylov() const override { return first_->krylov(); }
  const kernels::GraphBackend& graph() const override { return first_->graph(); }
  const kernels::OverlapBackend& overlap() const override { return first_->overlap(); }

 private:
  std::shared_ptr<Crew> crew_;
  std::shared_ptr<const kernels::Backend> first_;
  DividedNearest nearest_;
  DividedKMeans kmeans_;
  DividedLof lof_;
};

}  // namespace

std::shared_ptr<const kernels::Backend> make_divided_backend(const std::shared_ptr<Crew>& crew) {
  return std::make_shared<DividedBackend>(crew);
}

}  // namespace vicinal::plugin

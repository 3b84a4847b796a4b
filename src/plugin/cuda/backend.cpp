// See backend.hpp.
#include "plugin/cuda/backend.hpp"

#include <string>

#include "plugin/cuda/density.hpp"
#include "plugin/cuda/donors.hpp"
#include "plugin/cuda/graph.hpp"
#include "plugin/cuda/kmeans.hpp"
#include "plugin/cuda/krylov.hpp"
#include "plugin/cuda/lle.hpp"
#include "plugin/cuda/lof.hpp"
#include "plugin/cuda/nearest.hpp"
#include "plugin/cuda/overlap.hpp"

namespace vicinal::plugin {
namespace {

class CudaBackend final : public kernels::Backend {
 public:
  explicit CudaBackend(const std::shared_ptr<Device>& device)
      : device_(device),
        nearest_(make_nearest(device)),
        donors_(device),
        kmeans_(device),
        lof_(device, *nearest_),
        lle_(device),
        krylov_(device),
        graph_(device),
        overlap_(device),
        density_(device, *nearest_) {}

  int device() const override { return device_->number(); }
  bool reaches(Memory /*memory*/) const override { return true; }
  std::string isa(const Context& /*ctx*/) const override {
    return "sm_" + std::to_string(device_->facts().compute_capability);
  }
  TensorCoreSums tensor_core_sums() const override {
    const EngineFacts& facts = device_->facts();
    return {facts.matrix_instruction, facts.accumulation, facts.largest_error};
  }

  const kernels::NearestBackend& nearest() const override { return *nearest_; }
  const kernels::DonorBackend& donors() const override { return donors_; }
  const kernels::KMeansBackend& kmeans() const override { return kmeans_; }
  const kernels::LofBackend& lof() const override { return lof_; }
  const kernels::LleBackend& lle() const override { return lle_; }
  const kernels::KrylovBackend& krylov() const override { return krylov_; }
  const kernels::GraphBackend& graph() const override { return graph_; }
  const kernels::OverlapBackend& overlap() const override { return overlap_; }
  const kernels::DensityBackend* density() const override { return &density_; }

 private:
  std::shared_ptr<Device> device_;
  std::unique_ptr<const CudaNearest> nearest_;
  CudaDonors donors_;
  CudaKMeans kmeans_;
  CudaLof lof_;
  CudaLleBackend lle_;
  CudaKrylov krylov_;
  CudaGraphs graph_;
  CudaJoins overlap_;
  CudaDensity density_;
};

}  // namespace

std::shared_ptr<const kernels::Backend> make_backend(const std::shared_ptr<Device>& device) {
  return std::make_shared<CudaBackend>(device);
}

}  // namespace vicinal::plugin

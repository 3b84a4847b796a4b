// The interface of backends: one object, with an interface for each subject. Above it (src/ops) nothing knows which
// device runs; below it nothing knows about options, defaults or files.
#pragma once

#include <string>

#include "vicinal/context.hpp"
#include "vicinal/device.hpp"
#include "vicinal/table.hpp"

namespace vicinal::kernels {

class DensityBackend;
class DonorBackend;
class GraphBackend;
class KMeansBackend;
class KrylovBackend;
class LleBackend;
class LofBackend;
class NearestBackend;
class OverlapBackend;

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// The number of the device that it computes on, or kHost.
  [[nodiscard]] virtual int device() const = 0;
  /// Whether tables, and the memory for answers, may lie there.
  [[nodiscard]] virtual bool reaches(Memory memory) const = 0;
  /// The kernels' instruction set, for people.
  [[nodiscard]] virtual std::string isa(const Context& ctx) const = 0;
  /// How its tensor cores add; all empty without them.
  [[nodiscard]] virtual TensorCoreSums tensor_core_sums() const { return {}; }

  [[nodiscard]] virtual const NearestBackend& nearest() const = 0;
  [[nodiscard]] virtual const DonorBackend& donors() const = 0;
  [[nodiscard]] virtual const KMeansBackend& kmeans() const = 0;
  [[nodiscard]] virtual const LofBackend& lof() const = 0;
  [[nodiscard]] virtual const LleBackend& lle() const = 0;
  [[nodiscard]] virtual const KrylovBackend& krylov() const = 0;
  [[nodiscard]] virtual const GraphBackend& graph() const = 0;
  [[nodiscard]] virtual const OverlapBackend& overlap() const = 0;
  /// Null: the device does not cluster by density.
  [[nodiscard]] virtual const DensityBackend* density() const { return nullptr; }
};

const Backend& cpu_backend();

/// The backend that a context runs on.
const Backend& backend_of(const Context& ctx);

}  // namespace vicinal::kernels

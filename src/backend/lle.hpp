// Locally linear embedding (contract clause 17): what a backend provides beside the host, which makes weights, factors
// and solves where no device does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/memory_need.hpp"
#include "core/raw_vector.hpp"
#include "solver/ordering.hpp"
#include "solver/rows.hpp"
#include "solver/space.hpp"
#include "solver/symbolic.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lle.hpp"

namespace vicinal::kernels {

/// What `automatic` goes by on the host.
inline constexpr std::int64_t kDenseRows = 150;  ///< up to here a dense decomposition is as quick as a sparse one
inline constexpr double kCheapFlops = 1e12;      ///< of a factor, half a minute of one core: products are not tried

/// A checked task: neighbors [n, k] of the rows of a table in host memory, none its own.
struct LleTask {
  TableView table;
  core::RawVector<solver::Point> ids;
  std::int64_t k = 0;
  LleOptions options;          ///< the solver may be `automatic`
  std::optional<Index> index;  ///< of the same rows, which a device may hold already
};

/// An embedding on a device: the blocks of all rows, and of one piece at a time what is made of them.
class DeviceLle {
 public:
  DeviceLle() = default;
  DeviceLle(const DeviceLle&) = delete;
  DeviceLle& operator=(const DeviceLle&) = delete;
  virtual ~DeviceLle() = default;

  /// Of standard.
  [[nodiscard]] virtual double largest_weight() const = 0;
  /// Takes the rows of a piece, numbered in that order; its M's norm is at most what comes back.
  virtual double take(const std::vector<solver::Point>& rows) = 0;
  /// The blocks of the piece at hand, in host memory.
  virtual solver::LocalRows blocks() = 0;
  /// Dissects small parts of the piece at hand, as solver::DissectOnDevice says.
  virtual void dissect(const solver::SmallParts& parts, solver::Point* order, solver::Splits& splits) = 0;
  /// Factors M of the piece at hand, whose points were taken in the dissection's order, grounded at the last one. Gives
  /// the bytes of device memory that it takes.
  virtual std::uint64_t factor(const solver::Symbolic& symbolic) = 0;
  /// Eigenvalues of M below a shift, by another factor, which takes the first one's place.
  virtual std::int64_t count(double shift) = 0;
  /// With the factor.
  virtual solver::Space& space() = 0;
};

/// Where eigenvectors are found.
struct LlePlace {
  bool on_device = false;
  std::string why_not;  ///< empty where there is no device
};

/// As it stands, that of a backend without a device: embeddings are the host's.
class LleBackend {
 public:
  LleBackend() = default;
  LleBackend(const LleBackend&) = delete;
  LleBackend& operator=(const LleBackend&) = delete;
  virtual ~LleBackend() = default;

  /// Throws `invalid_argument` where the device has not room for so many columns.
  [[nodiscard]] virtual LlePlace place(const LleOptions& /*options*/) const { return {}; }
  /// A task whose place is the device.
  [[nodiscard]] virtual std::unique_ptr<DeviceLle> begin(const Context& /*ctx*/, const LleTask& /*task*/) const {
    return nullptr;
  }
  /// What a session takes until a factor is known, beyond the driver's host memory. Throws `over_memory` where a device
  /// has no room.
  [[nodiscard]] virtual MemoryNeed bytes(const Context& /*ctx*/, const TableView& /*table*/,
                                         const LleOptions& /*options*/) const {
    return {};
  }
};

}  // namespace vicinal::kernels

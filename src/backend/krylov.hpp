// Krylov methods (solver/krylov.hpp) and sparse products: where the basis lies and products are made.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "backend/memory_need.hpp"
#include "solver/krylov.hpp"
#include "solver/operator.hpp"
#include "vicinal/context.hpp"
#include "vicinal/sparse.hpp"

namespace vicinal::kernels {

/// A and its transpose, which must outlive the space, and its shape.
struct KrylovTask {
  const solver::Csr& a;
  const solver::Csr& transpose;
  solver::KrylovShape shape;
};

struct ProductTask {
  const SparseView& a;
  std::span<const double> x;
  SpmvMethod method;
  std::int64_t repeat;
};

class KrylovBackend {
 public:
  KrylovBackend() = default;
  KrylovBackend(const KrylovBackend&) = delete;
  KrylovBackend& operator=(const KrylovBackend&) = delete;
  virtual ~KrylovBackend() = default;

  /// What a space of that shape takes, its device memory not counted: `space` finds out whether that is there.
  [[nodiscard]] virtual MemoryNeed bytes(const Context& ctx, const solver::LocalRows& a,
                                         const solver::KrylovShape& shape) const = 0;
  /// Throws `over_memory` where a device has no room.
  [[nodiscard]] virtual std::unique_ptr<solver::KrylovSpace> space(const Context& ctx,
                                                                   const KrylovTask& task) const = 0;
  /// Fills the product and its seconds; false: it is the host's to make.
  virtual bool product(const Context& ctx, const ProductTask& task, Spmv& found) const = 0;
};

}  // namespace vicinal::kernels

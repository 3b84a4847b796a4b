// A Krylov space in device memory: A, its transpose and a basis, and what solver::KrylovSpace asks of them (contract
// clause 17). Blocks of the basis are [n, block], row by row. Only matrices of a few columns go to the host, and blocks
// that are asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/base/session.hpp"
#include "cuda/lle/krylov/sparse.hpp"

namespace vicinal::cuda::lle {

class DeviceKrylov {
 public:
  /// Throws `over_memory` where there is no room.
  DeviceKrylov(Session& session, const plugin::KrylovTask& task);
  void step(const Host& host, const plugin::KrylovStep& step);
  [[nodiscard]] Session& session() const { return session_; }

 private:
  void filter(const Host& host, const plugin::KrylovStep& step);
  void remove_means(double* x) const;
  /// sums_ = the products of the first `count` blocks with x.
  void products(std::int64_t count, const double* x) const;
  void subtract(std::int64_t count, double* x) const;
  void rotate(const plugin::KrylovStep& step);
  void fetch_sums(std::int64_t count, double* to) const;

  Session& session_;
  const Engine& engine_;
  std::int64_t n_;
  std::int64_t block_;
  DeviceCsr a_;
  DeviceCsr transpose_;
  std::vector<Buffer<double>> basis_;
  Buffer<double> image_;      ///< [rows of A, block]
  Buffer<double> spare_;      ///< [n, block]
  Buffer<double> sums_;       ///< [blocks * block, block]
  Buffer<double> partial_;    ///< [parts, blocks * block, block]
  Buffer<double> small_;      ///< [blocks * block, blocks * block]
  Buffer<double*> pointers_;  ///< [blocks] of the basis
  std::vector<double*> host_pointers_;
};

/// Bytes of device memory that takes. Throws `over_memory` where they are not to be had.
std::uint64_t krylov_bytes(const Session& session, const plugin::KrylovTask& task);

/// papers/spmv.cu: times one form of a product on the device.
void time_spmv(Session& session, const Host& host, plugin::SpmvTask& task);

}  // namespace vicinal::cuda::lle

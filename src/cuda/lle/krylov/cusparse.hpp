// cuSPARSE's product of a sparse matrix with a vector, found when it is first asked for: the plug-in does not depend on
// it.
#pragma once

#include <memory>

#include "cuda/lle/krylov/sparse.hpp"

namespace vicinal::cuda::lle::papers {

/// A product that is ready to be made again and again.
class LibraryProduct {
 public:
  /// a, x and y must outlive it. Throws `device_unavailable` naming the library where it is not there,
  /// `invalid_argument` for 2^31 entries and more.
  LibraryProduct(const Engine& engine, const DeviceCsr& a, const double* x, double* y);
  ~LibraryProduct();
  LibraryProduct(const LibraryProduct&) = delete;
  LibraryProduct& operator=(const LibraryProduct&) = delete;

  void run() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vicinal::cuda::lle::papers

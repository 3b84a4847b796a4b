// Krylov spaces of the CPU, and which ones a context has: see backend/krylov.hpp.
#include "backend/krylov.hpp"

#include "backend/backend.hpp"

namespace vicinal::kernels {
namespace {

class HostSpaces : public KrylovSpaces {
 public:
  [[nodiscard]] std::uint64_t krylov_bytes(const Context& /*ctx*/, const solver::LocalRows& a,
                                           const solver::KrylovShape& shape) const override {
    return solver::space_bytes(a.rows(), a.points, shape.block, shape.blocks);
  }
  [[nodiscard]] std::unique_ptr<solver::KrylovSpace> krylov_space(const Context& /*ctx*/,
                                                                  const KrylovTask& task) const override {
    return solver::host_space(task.a, task.transpose, task.shape.block, task.shape.blocks);
  }
  bool product(const Context& /*ctx*/, const ProductTask& /*task*/, Spmv& /*found*/) const override { return false; }
};

}  // namespace

const KrylovSpaces& krylov_spaces_of(const Context& ctx) {
  static const HostSpaces kOfHost;
  const auto* const own = dynamic_cast<const KrylovSpaces*>(ctx.backend());
  return own != nullptr ? *own : kOfHost;
}

}  // namespace vicinal::kernels

// See krylov.hpp.
#include "cpu/lle/krylov.hpp"

namespace vicinal::cpu {

kernels::MemoryNeed HostSpaces::bytes(const Context& /*ctx*/, const solver::LocalRows& a,
                                      const solver::KrylovShape& shape) const {
  return {solver::space_bytes(a.rows(), a.points, shape.block, shape.blocks), 0};
}

std::unique_ptr<solver::KrylovSpace> HostSpaces::space(const Context& /*ctx*/, const kernels::KrylovTask& task) const {
  return solver::host_space(task.a, task.transpose, task.shape.block, task.shape.blocks);
}

}  // namespace vicinal::cpu

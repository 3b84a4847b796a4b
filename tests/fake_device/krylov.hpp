// The Krylov half of the fake plug-in (plugin.cpp): the CPU's space and products, behind the plug-in's
// functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "plugin/abi/krylov.hpp"
#include "small.hpp"
#include "solver/csr.hpp"
#include "solver/operator.hpp"

namespace vicinal::plugin {

inline solver::Csr copied(const CsrMatrix& from) {
  solver::Csr to;
  to.cols = from.cols;
  to.first.assign(from.first, from.first + from.rows + 1);
  to.index.assign(from.index, from.index + from.first[from.rows]);
  to.values.assign(from.values, from.values + from.first[from.rows]);
  return to;
}

class FakeKrylov {
 public:
  explicit FakeKrylov(const KrylovTask& task)
      : a_(copied(task.a)),
        transpose_(copied(task.transpose)),
        space_(solver::host_space(a_, transpose_, task.block, task.blocks)) {}

  void step(const KrylovStep& step) {
    const std::int64_t block = space_->block();
    switch (step.work) {
      case kKrylovStore: {
        solver::Vectors x(space_->points(), block);
        std::copy_n(step.vectors, x.rows * block, x.values.data());
        return space_->store(ctx_, step.to, x);
      }
      case kKrylovLoad: {
        const solver::Vectors x = space_->load(ctx_, step.from);
        std::copy_n(x.values.data(), x.rows * block, step.vectors);
        return;
      }
      case kKrylovFilter:
        return space_->filter(ctx_, {step.degree, step.low, step.high}, step.from, step.to);
      case kKrylovProject:
        return give(space_->project(ctx_, step.count, step.to), step.small);
      case kKrylovGram:
        return give(space_->gram(ctx_, step.to), step.small);
      case kKrylovScale:
        return space_->scale(ctx_, step.to, taken(step.small, block, block));
      case kKrylovRotate:
        return space_->rotate(ctx_, step.count, taken(step.small, step.count * block, step.columns));
      case kKrylovMove:
        return space_->move(ctx_, step.from, step.to);
      default:
        throw std::runtime_error("a step that there is none of");
    }
  }

 private:
  Context ctx_ = Context::cpu({.threads = 1});
  solver::Csr a_;
  solver::Csr transpose_;
  std::unique_ptr<solver::KrylovSpace> space_;
};

/// All forms are one here.
inline void fake_product(SpmvTask& task) {
  for (std::int64_t i = 0; i < task.a.rows; ++i) {
    double sum = 0;
    for (std::int64_t e = task.a.first[i]; e < task.a.first[i + 1]; ++e) {
      sum += task.a.values[e] * task.x[task.a.index[e]];
    }
    task.y[i] = sum;
  }
  task.seconds = 1e-6;
}

}  // namespace vicinal::plugin

// See krylov.hpp.
#include "plugin/cuda/krylov.hpp"

#include <algorithm>

#include "plugin/abi/krylov.hpp"

namespace vicinal::plugin {
namespace {

CsrMatrix matrix_of(const solver::Csr& a) {
  return {a.rows(), a.cols, a.first.data(), a.index.data(), a.values.data()};
}

class CudaKrylovSpace final : public solver::KrylovSpace {
 public:
  CudaKrylovSpace(const Context& ctx, std::shared_ptr<Device> device, const kernels::KrylovTask& task)
      : KrylovSpace(task.a.cols, task.shape.block, task.shape.blocks), device_(std::move(device)) {
    const KrylovTask asked{matrix_of(task.a), matrix_of(task.transpose), block(), blocks()};
    void* made = nullptr;
    device_->use(ctx, [&](void* engine, Call& /*call*/, Status& status) {
      device_->functions().krylov(engine, &asked, &made, &status);
    });
    space_ = device_->own(made, device_->functions().release_krylov);
  }

  void store(const Context& ctx, std::int64_t at, const solver::Vectors& x) override {
    solver::Vectors copy(points(), block());
    std::copy_n(x.values.data(), points() * block(), copy.values.data());
    KrylovStep step = step_of(kKrylovStore, at, at);
    step.vectors = copy.values.data();
    run(ctx, step);
  }
  solver::Vectors load(const Context& ctx, std::int64_t at) override {
    solver::Vectors x(points(), block());
    KrylovStep step = step_of(kKrylovLoad, at, at);
    step.vectors = x.values.data();
    run(ctx, step);
    return x;
  }
  void filter(const Context& ctx, const solver::Filter& filter, std::int64_t from, std::int64_t to) override {
    KrylovStep step = step_of(kKrylovFilter, from, to);
    step.degree = filter.degree;
    step.low = filter.low;
    step.high = filter.high;
    run(ctx, step);
  }
  solver::Small project(const Context& ctx, std::int64_t count, std::int64_t at) override {
    solver::Small found(count * block(), block());
    KrylovStep step = step_of(kKrylovProject, at, at);
    step.count = count;
    step.small = found.values.data();
    run(ctx, step);
    return found;
  }
  solver::Small gram(const Context& ctx, std::int64_t at) override {
    solver::Small found(block(), block());
    KrylovStep step = step_of(kKrylovGram, at, at);
    step.small = found.values.data();
    run(ctx, step);
    return found;
  }
  void scale(const Context& ctx, std::int64_t at, const solver::Small& c) override {
    solver::Small small = c;
    KrylovStep step = step_of(kKrylovScale, at, at);
    step.small = small.values.data();
    run(ctx, step);
  }
  void rotate(const Context& ctx, std::int64_t count, const solver::Small& c) override {
    solver::Small small = c;
    KrylovStep step = step_of(kKrylovRotate, 0, 0);
    step.count = count;
    step.columns = c.cols;
    step.small = small.values.data();
    run(ctx, step);
  }
  void move(const Context& ctx, std::int64_t from, std::int64_t to) override {
    if (from != to) run(ctx, step_of(kKrylovMove, from, to));
  }

 private:
  static KrylovStep step_of(KrylovWork work, std::int64_t from, std::int64_t to) {
    KrylovStep step;
    step.work = work;
    step.from = from;
    step.to = to;
    return step;
  }
  void run(const Context& ctx, const KrylovStep& step) {
    device_->use(ctx, [&](void* /*engine*/, Call& call, Status& status) {
      const HostCalls host = call.host();
      device_->functions().krylov_step(space_.get(), &host, &step, &status);
    });
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<void> space_;
};

SpmvForm form_of(SpmvMethod method) {
  switch (method) {
    case SpmvMethod::rows:
      return kSpmvThreadRow;
    case SpmvMethod::block_row:
      return kSpmvBlockRow;
    case SpmvMethod::warp_row:
      return kSpmvWarpRow;
    case SpmvMethod::padded_row:
      return kSpmvPaddedRow;
    case SpmvMethod::eight:
      return kSpmvEight;
    case SpmvMethod::library:
      return kSpmvLibrary;
    default:
      return kSpmvSliced;
  }
}

}  // namespace

kernels::MemoryNeed CudaKrylov::bytes(const Context& /*ctx*/, const solver::LocalRows& a,
                                      const solver::KrylovShape& shape) const {
  // A store's.
  return {static_cast<std::uint64_t>(a.points) * static_cast<std::uint64_t>(shape.block) * sizeof(double), 0};
}

std::unique_ptr<solver::KrylovSpace> CudaKrylov::space(const Context& ctx, const kernels::KrylovTask& task) const {
  return std::make_unique<CudaKrylovSpace>(ctx, device_, task);
}

bool CudaKrylov::product(const Context& ctx, const kernels::ProductTask& task, Spmv& found) const {
  found.product.resize(static_cast<std::size_t>(task.a.rows()));
  SpmvTask asked;
  asked.a = {task.a.rows(), task.a.cols, task.a.offsets.data(), task.a.index.data(), task.a.values.data()};
  asked.form = form_of(task.method);
  asked.repeat = task.repeat;
  asked.x = task.x.data();
  asked.y = found.product.data();
  device_->use(ctx, [&](void* engine, Call& call, Status& status) {
    const HostCalls host = call.host();
    device_->functions().spmv(engine, &host, &asked, &status);
  });
  found.seconds = asked.seconds;
  return true;
}

}  // namespace vicinal::plugin

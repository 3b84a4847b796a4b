// See lle.hpp.
#include "plugin/cuda/lle.hpp"

#include <algorithm>

#include "backend/index_access.hpp"
#include "core/raw_vector.hpp"
#include "plugin/abi/lle.hpp"
#include "solver/ritz.hpp"
#include "solver/small_parts.hpp"

namespace vicinal::plugin {
namespace {

LleTask task_of(const LleOptions& options, const Table& table) {
  LleTask asked;
  asked.table = table;
  asked.k = options.k;
  asked.dim = options.dim;
  asked.variant = static_cast<std::int32_t>(options.variant);
  asked.reg = options.reg;
  return asked;
}

/// The sets of vectors of an embedding on a device.
class CudaSpace final : public solver::Space {
 public:
  CudaSpace(const Context& ctx, Device& device) : ctx_(ctx), device_(device) {}

  void begin(void* lle, std::int64_t points) {
    lle_ = lle;
    points_ = points;
  }
  [[nodiscard]] std::int64_t points() const override { return points_; }
  [[nodiscard]] std::int64_t width(solver::Set set) const override { return widths_[static_cast<int>(set)]; }
  void start(std::int64_t width) override {
    run(kLleStart, solver::Set::best, width);
    widths_[0] = width;
  }
  void solve(solver::Set set) override { run(kLleSolve, set); }
  void gradient(const std::vector<double>& values) override {
    std::vector<double> small = values;
    run(kLleGradient, solver::Set::best, 0, small.data());
    widths_[1] = widths_[0];
  }
  solver::Small inner_with_next(solver::Set x) override {
    solver::Small found(width(x), widths_[1]);
    run(kLleInner, x, 0, found.values.data());
    return found;
  }
  void subtract(const solver::Small& c) override {
    solver::Small small = c;
    run(kLleSubtract, solver::Set::next, 0, small.values.data());
  }
  void multiply(solver::Set set, const solver::Small& c) override {
    solver::Small small = c;
    run(kLleMultiply, set, c.cols, small.values.data());
    widths_[static_cast<int>(set)] = c.cols;
  }
  solver::Small triangle(solver::Set set) override { return triangle(kLleTriangles, set); }
  solver::Small triangle_of_rows() override { return triangle(kLleRowTriangles, solver::Set::best); }
  void join() override {
    run(kLleJoin, solver::Set::best);
    widths_[0] += widths_[1];
  }
  solver::Vectors fetch(std::int64_t width) override {
    solver::Vectors found(points_, width);
    run(kLleFetch, solver::Set::best, width, found.values.data());
    return found;
  }
  double norm_bound() override { return norm_; }
  void set_norm(double norm) { norm_ = norm; }

 private:
  solver::Small triangle(LleWork work, solver::Set set) {
    solver::Small stacked(kLleStacked * width(set), width(set));
    run(work, set, 0, stacked.values.data());
    return solver::triangle_of(std::move(stacked));
  }
  void run(LleWork work, solver::Set set, std::int64_t width = 0, double* small = nullptr) {
    const LleStep step{work, static_cast<std::int32_t>(set), width, small};
    device_.use(ctx_, [&](void* /*engine*/, Call& call, Status& status) {
      const HostCalls host = call.host();
      device_.functions().lle_step(lle_, &host, &step, &status);
    });
  }

  const Context& ctx_;
  Device& device_;
  void* lle_ = nullptr;
  std::int64_t points_ = 0;
  std::int64_t widths_[2] = {0, 0};
  double norm_ = 0;
};

class CudaLle final : public kernels::DeviceLle {
 public:
  CudaLle(const Context& ctx, std::shared_ptr<Device> device, const kernels::LleTask& task)
      : ctx_(ctx), device_(std::move(device)), space_(ctx, *device_) {
    void* made = nullptr;
    LleTask asked;
    device_->use(ctx, [&](void* engine, Call& call, Status& status) {
      const BorrowedTable table(call, task.index ? task.index->table() : task.table);
      asked = task_of(task.options, table.table());
      const auto resident =
          task.index ? kernels::prepared_of(*task.index).device.get(device_->number()) : std::shared_ptr<void>();
      asked.resident = resident.get();
      asked.k = task.k;
      asked.ids = task.ids.data();
      const HostCalls host = call.host();
      device_->functions().lle(engine, &host, &asked, &made, &status);
    });
    largest_weight_ = asked.largest_weight;
    lle_ = device_->own(made, device_->functions().release_lle);
  }

  [[nodiscard]] double largest_weight() const override { return largest_weight_; }

  double take(const std::vector<solver::Point>& rows) override {
    taken_ = {};
    taken_.rows = rows.data();
    taken_.n = static_cast<std::int64_t>(rows.size());
    device_->use(ctx_, [&](void* /*engine*/, Call& /*call*/, Status& status) {
      device_->functions().lle_take(lle_.get(), &taken_, &status);
    });
    taken_.rows = nullptr;
    space_.begin(lle_.get(), taken_.n);
    space_.set_norm(taken_.norm);
    return taken_.norm;
  }

  solver::LocalRows blocks() override {
    solver::LocalRows a;
    a.points = static_cast<solver::Point>(taken_.n);
    a.width = taken_.width;
    a.cols.resize(static_cast<std::size_t>(taken_.n * taken_.width));
    a.first.resize(static_cast<std::size_t>(taken_.n) + 1);
    a.values.resize(static_cast<std::size_t>(taken_.block_rows * taken_.width));
    const LleBlocks to{a.cols.data(), a.first.data(), a.values.data()};
    device_->use(ctx_, [&](void* /*engine*/, Call& /*call*/, Status& status) {
      device_->functions().lle_fetch(lle_.get(), &to, &status);
    });
    return a;
  }

  void dissect(const solver::SmallParts& parts, solver::Point* order, solver::Splits& splits) override {
    std::vector<std::int32_t> begin;
    std::vector<std::int32_t> end;
    for (const solver::Part& part : parts.parts) {
      begin.push_back(part.begin);
      end.push_back(part.end);
    }
    LleParts asked;
    asked.count = std::ssize(parts.parts);
    asked.begin = begin.data();
    asked.end = end.data();
    asked.first_cell = parts.first_cell.data();
    asked.cells = parts.cells.data();
    asked.first = parts.first.data();
    asked.neighbors = parts.neighbors.data();
    asked.places = parts.places.data();
    asked.entries = parts.entries.data();
    asked.cell_of = parts.cell_of;
    asked.order = order;
    asked.left = splits.left.data();
    asked.right = splits.right.data();
    asked.done = splits.done.data();
    device_->use(ctx_, [&](void* /*engine*/, Call& call, Status& status) {
      const HostCalls host = call.host();
      device_->functions().lle_dissect(lle_.get(), &host, &asked, &status);
    });
  }

  std::uint64_t factor(const solver::Symbolic& symbolic) override {
    std::vector<LleNode> nodes;
    std::vector<std::int64_t> first_row = {0};
    for (const solver::Dissection::Node& node : symbolic.nodes) {
      const auto t = static_cast<std::int32_t>(nodes.size());
      nodes.push_back({node.begin, node.end, node.parent});
      first_row.push_back(first_row.back() + symbolic.below(t));
    }
    core::RawVector<std::int32_t> rows(static_cast<std::size_t>(first_row.back()));
    solver::for_each_point(ctx_, static_cast<std::int64_t>(nodes.size()), [&](std::int64_t t) {
      std::copy(symbolic.rows[t].begin(), symbolic.rows[t].end(), rows.begin() + first_row[t]);
    });
    LleFactor task;
    task.tree = {static_cast<std::int64_t>(nodes.size()), nodes.data(), first_row.data(), rows.data()};
    task.ground = 1;
    run(task);
    return task.bytes;
  }

  std::int64_t count(double shift) override {
    LleFactor task;
    task.shift = shift;
    run(task);
    return task.negative;
  }

  solver::Space& space() override { return space_; }

 private:
  void run(LleFactor& task) {
    device_->use(ctx_, [&](void* /*engine*/, Call& call, Status& status) {
      const HostCalls host = call.host();
      device_->functions().lle_factor(lle_.get(), &host, &task, &status);
    });
  }

  const Context& ctx_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<void> lle_;
  CudaSpace space_;
  LleTaken taken_;
  double largest_weight_ = 0;
};

}  // namespace

kernels::LlePlace CudaLleBackend::place(const LleOptions& options) const {
  if (options.solver == LleSolver::dense || options.solver == LleSolver::cpu) {
    return {false, "as solver " + std::string(name_of(options.solver)) + " is"};
  }
  if (options.solver == LleSolver::lanczos || options.solver == LleSolver::arnoldi) return {true, ""};
  const std::int64_t widest = device_->functions().lle_widest(device_->engine());
  if (options.dim > widest) {
    throw Error(ErrorCode::invalid_argument, "dim: is " + std::to_string(options.dim) + ", but at most " +
                                                 std::to_string(widest) + " on this device; solver cpu takes more");
  }
  return {true, ""};
}

std::unique_ptr<kernels::DeviceLle> CudaLleBackend::begin(const Context& ctx, const kernels::LleTask& task) const {
  return std::make_unique<CudaLle>(ctx, device_, task);
}

kernels::MemoryNeed CudaLleBackend::bytes(const Context& /*ctx*/, const TableView& table,
                                          const LleOptions& options) const {
  const LleTask asked = task_of(options, BorrowedTable::shape_of(table));
  kernels::MemoryNeed bytes;
  Status status;
  device_->functions().lle_bytes(device_->engine(), &asked, &bytes.device, &status);
  device_->check(status);
  return bytes;
}

}  // namespace vicinal::plugin

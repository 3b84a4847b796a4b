// See session.hpp.
#include <algorithm>

#include "cuda/base/memory.hpp"
#include "cuda/lle/dissect/dissect.hpp"
#include "cuda/lle/session.hpp"
#include "cuda/lle/weights.hpp"
#include "cuda/nearest/wide_rows.hpp"
#include "formulas/lle/block_shape.hpp"
#include "formulas/lle/constants.hpp"
#include "formulas/lle/iteration_set.hpp"

namespace vicinal::cuda::lle {
namespace {

constexpr std::int64_t kSpare = 4;  // sets of vectors that a step makes beside those there are

static_assert(plugin::kLleStacked == kTriangles);

LocalTask local_task(const plugin::LleTask& task, const double* table, const std::int32_t* ids) {
  return {table,   ids, task.table.rows, task.table.cols, task.k, task.dim, static_cast<LleVariant>(task.variant),
          task.reg};
}

DeviceBlocks blocks_of(Session& session, const Host& host, plugin::LleTask& task) {
  static_cast<void>(lle_bytes(session, task));
  const Engine& engine = session.engine;
  const auto* const resident = static_cast<const Resident*>(task.resident);
  const WideRows table(session, task.table, resident != nullptr ? &resident->rows : nullptr, Metric::euclidean, 2);
  const Buffer<std::int32_t> ids(engine, task.table.rows * task.k);
  to_device(engine, ids.data(), task.ids, ids.size());
  return local_rows(engine, host, local_task(task, table.values(), ids.data()), task.largest_weight);
}

}  // namespace

LleSession::LleSession(Session& session, const Host& host, plugin::LleTask& task)
    : session_(session),
      engine_(session.engine),
      widest_(task.dim + solver::kGuards),
      all_(blocks_of(session, host, task)) {}

void LleSession::take(plugin::LleTaken& piece) {
  factor_.reset();
  incidence_ = DeviceIncidence();
  piece_ = DeviceBlocks();
  piece_ = renumbered(engine_, all_, piece.rows, piece.n);
  incidence_ = incidence_of(engine_, piece_);
  piece.block_rows = piece_.rows;
  piece.width = piece_.width;
  piece.norm = norm_bound(engine_, piece_, incidence_);
}

void LleSession::fetch(const plugin::LleBlocks& blocks) const {
  to_host(engine_, blocks.cols, piece_.cols.data(), piece_.cols.size());
  to_host(engine_, blocks.first, piece_.first.data(), piece_.first.size());
  to_host(engine_, blocks.values, piece_.values.data(), piece_.values.size());
  engine_.synchronize();
}

void LleSession::dissect(const Host& host, plugin::LleParts& parts) const {
  dissect_parts(engine_, host, piece_, incidence_, memory_left(engine_), parts);
}

void LleSession::factor(const Host& host, plugin::LleFactor& task) {
  if (factor_ == nullptr) {
    // A step holds spare sets of vectors; a gradient A's product with the best ones, too.
    const std::int64_t numbers = (piece_.points * 2 * kSpare + piece_.rows) * widest_;
    factor_ = std::make_unique<FrontFactor>(engine_, task.tree, piece_.points, widest_,
                                            static_cast<std::uint64_t>(numbers) * sizeof(double));
  }
  factor_->factor(host, piece_, incidence_, task.shift, task.ground);
  task.bytes = factor_->bytes();
  task.negative = factor_->negative();
}

void LleSession::step(const Host& host, const plugin::LleStep& step) {
  host.check_cancelled();
  DeviceVectors& best = sets_[static_cast<int>(solver::Set::best)];
  DeviceVectors& next = sets_[static_cast<int>(solver::Set::next)];
  DeviceVectors& set = sets_[step.set];
  switch (step.work) {
    case plugin::kLleStart:
      best = first_vectors(engine_, piece_.points, step.width);
      remove_means(engine_, best);
      break;
    case plugin::kLleSolve:
      factor_->solve(host, set);
      remove_means(engine_, set);
      break;
    case plugin::kLleGradient: {
      const Buffer<double> rows(engine_, piece_.rows * best.width);
      apply(engine_, piece_, best.data(), best.width, rows.data());
      next = DeviceVectors(engine_, piece_.points, best.width);
      apply_transposed(engine_, piece_, incidence_, rows.data(), best.width, next.data());
      subtract_scaled(engine_, best, step.small, next);
      break;
    }
    case plugin::kLleInner:
      inner(engine_, set, next, step.small);
      break;
    case plugin::kLleSubtract:
      subtract_product(engine_, best, step.small, next);
      remove_means(engine_, next);
      break;
    case plugin::kLleMultiply:
      set = product(engine_, set, step.small, step.width);
      break;
    case plugin::kLleTriangles:
      triangles_of(engine_, nullptr, set, step.small);
      break;
    case plugin::kLleRowTriangles:
      triangles_of(engine_, &piece_, best, step.small);
      break;
    case plugin::kLleJoin:
      best = beside(engine_, best, next);
      break;
    case plugin::kLleFetch:
      fetch_columns(engine_, best, step.width, step.small);
      break;
    default:
      throw Failure{ErrorCode::internal, "lle: a step that there is none of"};
  }
  engine_.synchronize();
}

std::uint64_t lle_bytes(const Session& session, const plugin::LleTask& task) {
  const std::int64_t n = task.table.rows;
  const LocalTask local = local_task(task, nullptr, nullptr);
  const auto rows = static_cast<std::uint64_t>(n);
  const std::uint64_t making = WideRows::bytes(task.table) + rows * static_cast<std::uint64_t>(task.k) * 4;
  const std::uint64_t blocks = local_bytes(session.engine, local);
  const std::uint64_t vectors =
      rows * static_cast<std::uint64_t>((task.dim + solver::kGuards) * 2 * kSpare) * sizeof(double);
  return require_left(session,
                      std::max(blocks + making,
                               2 * blocks + incidence_bytes(n, solver::block_width(local.variant, local.k)) + vectors));
}

std::int64_t lle_widest(const Session& session) {
  // The iteration joins two sets of dim and four guards.
  return widest_triangle(session.engine) / 2 - solver::kGuards;
}

}  // namespace vicinal::cuda::lle

// Locally linear embedding: weights, pieces, and for each piece order, factor, solve; on the CPU, or with a device that
// makes the weights, factors and solves. See backend/lle.hpp.
#include "ops/lle/embed.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>

#include "backend/backend.hpp"
#include "backend/krylov.hpp"
#include "backend/lle.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/raw_vector.hpp"
#include "core/seconds.hpp"
#include "core/table_access.hpp"
#include "formulas/lle/constants.hpp"
#include "ops/lle/count.hpp"
#include "ops/lle/pieces.hpp"
#include "solver/csr.hpp"
#include "solver/factor.hpp"
#include "solver/krylov.hpp"
#include "solver/ordering.hpp"
#include "solver/ritz.hpp"
#include "solver/smallest.hpp"
#include "solver/symbolic.hpp"
#include "solver/tall.hpp"
#include "solver/weights.hpp"

namespace vicinal {
namespace {

using solver::LocalRows;
using solver::Point;

constexpr std::int64_t kOrderColumns = 8;    // by which points are put near each other
constexpr Point kOrderedOnDevice = 1 << 17;  // points of a piece whose parts keep a device busy
constexpr double kCheapOnDevice = 1e13;      // of a factor: half a second of an H200
constexpr double kSparseRate = 16;           // a factor's multiplications that take as long as one of a sparse product
constexpr double kSameMagnitude = 1e-6;
constexpr double kZero = 1e-14;  // of A's norm: what a singular value of 0 may be found as (contract clause 17)

/// The columns by which points are ordered: those that spread most, as float32.
core::RawVector<float> coordinates_of(const Context& ctx, const TableView& table, std::int64_t& d) {
  constexpr std::int64_t kTaskRows = 256;
  const std::int64_t n = table.rows();
  const std::int64_t all = table.cols();
  std::vector<double> first(static_cast<std::size_t>(all));
  core::widen_rows(table, 0, 1, first.data());
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(all));
  std::iota(chosen.begin(), chosen.end(), 0);
  std::vector<double> row(static_cast<std::size_t>(all));
  if (all > kOrderColumns) {
    constexpr std::int64_t kSample = 1000;
    std::vector<double> spread(static_cast<std::size_t>(all), 0.0);
    const std::int64_t sample = std::min(n, kSample);
    for (std::int64_t s = 0; s < sample; ++s) {
      core::widen_rows(table, n * s / sample, n * s / sample + 1, row.data());
      for (std::int64_t c = 0; c < all; ++c) spread[c] = std::max(spread[c], std::abs(row[c] - first[c]));
    }
    std::stable_sort(chosen.begin(), chosen.end(),
                     [&](std::int64_t a, std::int64_t b) { return spread[a] > spread[b]; });
    chosen.resize(kOrderColumns);
  }
  d = static_cast<std::int64_t>(chosen.size());
  core::RawVector<float> found(static_cast<std::size_t>(n * d));
  core::parallel_for(ctx, (n + kTaskRows - 1) / kTaskRows, [&](std::int64_t task, int /*worker*/) {
    const std::int64_t begin = task * kTaskRows;
    const std::int64_t end = std::min(n, begin + kTaskRows);
    std::vector<double> values(static_cast<std::size_t>((end - begin) * all));
    core::widen_rows(table, begin, end, values.data());
    for (std::int64_t i = begin; i < end; ++i) {
      const double* of = values.data() + (i - begin) * all;
      // Less the first row, so that an offset does not eat float32's digits.
      for (std::int64_t c = 0; c < d; ++c) found[i * d + c] = static_cast<float>(of[chosen[c]] - first[chosen[c]]);
    }
  });
  return found;
}

/// The rows of each piece that are embedded, ascending.
std::vector<std::vector<Point>> rows_of_pieces(const Context& ctx, const std::vector<std::int64_t>& piece,
                                               const ops::LlePartition& parts) {
  std::vector<std::vector<Point>> rows(static_cast<std::size_t>(parts.pieces()));
  if (parts.pieces() == 1) {
    rows[0].resize(piece.size());
    solver::for_each_point(ctx, std::ssize(piece), [&](std::int64_t i) { rows[0][i] = static_cast<Point>(i); });
  } else {
    for (std::size_t i = 0; i < piece.size(); ++i) {
      if (parts.embeds(static_cast<std::int64_t>(i))) rows[piece[i]].push_back(static_cast<Point>(i));
    }
  }
  return rows;
}

/// One piece: its blocks, in a numbering of its own, and what is found of it.
class Piece {
 public:
  Piece(const Context& ctx, const kernels::LleTask& task, LocalRows a, const solver::Cells& cells, Lle& result)
      : ctx_(ctx), options_(task.options), a_(std::move(a)), cells_(cells), result_(result) {}

  /// Vectors [rows, dim] in the numbering that the blocks came in. With a device the blocks have no values here.
  solver::Vectors run(kernels::DeviceLle* device, LlePiece& piece) {
    piece.rows = a_.points;
    const bool automatic = options_.solver == LleSolver::automatic;
    const bool by_dense = options_.solver == LleSolver::dense || (automatic && a_.points <= kernels::kDenseRows);
    const bool by_products = options_.solver == LleSolver::lanczos || options_.solver == LleSolver::arnoldi;
    if (device != nullptr && (by_dense || by_products)) fetch(*device);
    solver::Vectors found;
    if (by_dense) {
      found = run_dense(piece);
    } else if (by_products) {
      found = run_krylov(options_.solver, options_.max_steps, piece);
    } else {
      found = automatic ? run_cheapest(device, piece) : run_direct(device, ordered(device), piece);
    }
    solver::remove_means(ctx_, found);  // once more: what rounding left of them may have grown in the last step
    return found;
  }

 private:
  static void describe(const solver::Smallest& found, LlePiece& piece) {
    piece.singular_values = found.values;
    piece.angles = found.angles;
    piece.residuals = found.residuals;
    piece.next_singular_value = found.next;
    piece.norm = found.norm;
    piece.zeros = std::count_if(found.values.begin(), found.values.end(),
                                [&](double value) { return value <= kZero * std::sqrt(found.norm); });
    piece.iterations = found.iterations;
  }

  solver::Vectors run_dense(LlePiece& piece) {
    need(solver::dense_bytes(a_));
    const auto start = std::chrono::steady_clock::now();
    solver::Smallest found = solver::dense(ctx_, a_, options_.dim);
    const solver::Incidence in = solver::incidence_of(ctx_, a_);
    found.residuals = solver::residuals(ctx_, a_, in, found);
    found.norm = solver::norm_bound(ctx_, a_, in);
    describe(found, piece);
    result_.solve_seconds += seconds_since(start);
    return std::move(found.vectors);
  }

  struct Ordered {
    solver::Dissection dissection;
    solver::Symbolic symbolic;
  };
  // On a device small parts are dissected there, of pieces that have enough of them.
  Ordered ordered(kernels::DeviceLle* device) {
    const auto start = std::chrono::steady_clock::now();
    solver::DissectOnDevice small;
    if (device != nullptr && a_.points >= kOrderedOnDevice) {
      static_cast<void>(device->take(cells_.order));
      small = [device](const solver::SmallParts& parts, Point* order, solver::Splits& splits) {
        device->dissect(parts, order, splits);
      };
    }
    const solver::Pattern pattern = solver::pattern_of(ctx_, a_, solver::blocks_of(ctx_, a_));
    ctx_.report("order", 0);
    Ordered found{solver::dissect(ctx_, pattern, cells_.first, small), {}};
    found.symbolic = solver::analyse(ctx_, pattern, found.dissection);
    result_.order_seconds += seconds_since(start);
    return found;
  }

  // A factor that is cheap is made. Else products are tried until they have cost what the factor would: so the choice
  // costs at most twice the better way. It depends on counts only, not on the clock. Where there is no memory for the
  // factor, products are all there is.
  solver::Vectors run_cheapest(kernels::DeviceLle* device, LlePiece& piece) {
    Ordered order = ordered(device);
    const double flops = order.symbolic.flops;
    const bool fits = device != nullptr || direct_bytes(order.symbolic) + held_bytes() <= ctx_.memory_limit();
    if (fits && flops > (device != nullptr ? kCheapOnDevice : kernels::kCheapFlops)) {
      if (device != nullptr) fetch(*device);
      const solver::KrylovShape shape = solver::krylov_shape(a_.points, {.wanted = options_.dim});
      const double step = 4 * static_cast<double>(a_.values.size()) * static_cast<double>(shape.block);
      const double steps = std::min(static_cast<double>(options_.max_steps), flops / (kSparseRate * step) + 1);
      solver::Vectors found = run_krylov(LleSolver::automatic, static_cast<std::int64_t>(steps), piece);
      if (found.rows > 0) return found;
    }
    if (fits) {
      try {
        return run_direct(device, order, piece);
      } catch (const Error& error) {  // a device tells what it needs when it has planned
        if (device == nullptr || error.code() != ErrorCode::over_memory) throw;
        fetch(*device);
      }
    }
    result_.warning = fmt::format(
        "the memory limit leaves no room for the factor of a piece of {} rows{}: lanczos finds its eigenvectors, which "
        "may take much longer, and counts no eigenvalues",
        a_.points,
        device != nullptr ? std::string()
                          : ", which needs " + core::format_bytes(direct_bytes(order.symbolic) + held_bytes()));
    order = {};
    return run_krylov(LleSolver::lanczos, options_.max_steps, piece);
  }

  solver::Vectors run_direct(kernels::DeviceLle* device, const Ordered& order, LlePiece& piece) {
    solver::Vectors found = device != nullptr ? run_device(*device, order, piece) : run_host(order, piece);
    piece.fill = order.symbolic.fill;
    piece.flops = order.symbolic.flops;
    return found;
  }

  // The blocks in the order of the cells, with their values.
  void fetch(kernels::DeviceLle& device) {
    static_cast<void>(device.take(cells_.order));
    a_ = device.blocks();
  }

  // By products with M. No rows: `automatic` asked, and the steps were too few.
  solver::Vectors run_krylov(LleSolver how, std::int64_t steps, LlePiece& piece) {
    const solver::KrylovOptions options{options_.dim, how != LleSolver::arnoldi, steps};
    const solver::KrylovShape shape = solver::krylov_shape(a_.points, options);
    const kernels::KrylovBackend& spaces = kernels::backend_of(ctx_).krylov();
    need(spaces.bytes(ctx_, a_, shape).host + solver::csr_bytes(a_) + solver::krylov_bytes(a_, shape, options));
    const auto start = std::chrono::steady_clock::now();
    const solver::Incidence in = solver::incidence_of(ctx_, a_);
    const solver::Csr rows = solver::csr_of(a_);
    const solver::Csr columns = solver::transposed(rows);
    solver::KrylovResult found;
    {
      const auto space = spaces.space(ctx_, {rows, columns, shape});
      found = solver::krylov(ctx_, a_, in, *space, options);
    }
    result_.solve_seconds += seconds_since(start);
    if (!found.smallest.converged) {
      if (how == LleSolver::automatic) return {};
      const std::string left =
          fmt::format("residuals of {:.1e} of its norm, but {:.0e} is required", found.residual, found.asked);
      throw Error(ErrorCode::internal,
                  found.out_of_steps
                      ? fmt::format("max_steps: {} products with M are too few, {} left {}; more steps or the solver "
                                    "direct would go further",
                                    steps, found.smallest.iterations, left)
                      : fmt::format("{}: the iteration came to its end after {} products with M, with {}; the solver "
                                    "direct would go further",
                                    name_of(how), found.smallest.iterations, left));
    }
    describe(found.smallest, piece);
    piece.solver = options.filtered ? LleSolver::lanczos : LleSolver::arnoldi;
    return std::move(found.smallest.vectors);
  }

  solver::Vectors run_host(const Ordered& ordered, LlePiece& piece) {
    const solver::Dissection& dissection = ordered.dissection;
    const solver::Symbolic& symbolic = ordered.symbolic;
    need(direct_bytes(symbolic));
    auto start = std::chrono::steady_clock::now();
    a_ = solver::renumbered(ctx_, a_, dissection.order);
    solver::sort_columns(ctx_, a_);
    const solver::Incidence in = solver::incidence_of(ctx_, a_);
    result_.order_seconds += seconds_since(start);

    start = std::chrono::steady_clock::now();
    // Grounding one point of a connected graph leaves the constant vector no way out; solves of what is orthogonal to
    // the constant are those of M itself, but for a constant.
    std::optional<solver::Factor> factor;
    factor.emplace(ctx_, a_, in, symbolic, solver::Pencil{0, 1});
    result_.factor_seconds += seconds_since(start);

    start = std::chrono::steady_clock::now();
    solver::Smallest found = solver::inverse_iteration(ctx_, a_, in, *factor, options_.dim);
    finish(found, piece, [&](double shift) {
      factor.reset();
      return solver::negative_pivots(ctx_, a_, in, symbolic, solver::Pencil{shift, 0});
    });
    result_.solve_seconds += seconds_since(start);
    return in_old_order(found.vectors, dissection.order);
  }

  solver::Vectors run_device(kernels::DeviceLle& device, const Ordered& ordered, LlePiece& piece) {
    auto start = std::chrono::steady_clock::now();
    const std::vector<Point>& order = ordered.dissection.order;
    std::vector<Point> rows(order.size());
    solver::for_each_point(ctx_, a_.points, [&](std::int64_t i) { rows[i] = cells_.order[order[i]]; });
    static_cast<void>(device.take(rows));
    result_.plan.device_memory = std::max(result_.plan.device_memory, device.factor(ordered.symbolic));
    result_.factor_seconds += seconds_since(start);

    start = std::chrono::steady_clock::now();
    solver::Smallest found = solver::inverse_iteration(ctx_, device.space(), options_.dim, solver::kGuards);
    finish(found, piece, [&](double shift) { return device.count(shift); });
    result_.solve_seconds += seconds_since(start);
    return in_old_order(found.vectors, order);
  }

  /// Takes what was found over; `count(shift)`: eigenvalues below it.
  void finish(const solver::Smallest& found, LlePiece& piece, const std::function<std::int64_t(double)>& count) const {
    if (!found.converged) {
      throw Error(
          ErrorCode::internal,
          fmt::format("lle: the iteration stopped at an angle of {:.1e} after {} steps; the least eigenvalues are "
                      "too close to what float64 resolves of the matrix",
                      *std::max_element(found.angles.begin(), found.angles.end()), found.iterations));
    }
    describe(found, piece);
    piece.solver = LleSolver::direct;
    if (!options_.certify) {
      piece.count = LleCount::not_asked;
      return;
    }
    ops::count_eigenvalues(found, count, piece);
  }

  [[nodiscard]] solver::Vectors in_old_order(const solver::Vectors& found, const std::vector<Point>& order) const {
    solver::Vectors vectors(found.rows, found.width);
    solver::for_each_point(ctx_, vectors.rows,
                           [&](std::int64_t i) { std::copy_n(found.row(i), vectors.width, vectors.row(order[i])); });
    return vectors;
  }

  [[nodiscard]] std::uint64_t direct_bytes(const solver::Symbolic& symbolic) const {
    return symbolic.factor_bytes + symbolic.list_bytes() +
           std::max(symbolic.front_bytes, solver::inverse_iteration_bytes(a_, options_.dim));
  }
  [[nodiscard]] std::uint64_t held_bytes() const {
    return (a_.values.size() * sizeof(double) + a_.cols.size() * 4 * sizeof(Point)) * 2;
  }
  void need(std::uint64_t bytes) const {
    core::require_memory(ctx_, bytes + held_bytes(), "lle");
    result_.plan.memory = std::max(result_.plan.memory, bytes + held_bytes());
  }

  const Context& ctx_;
  const LleOptions& options_;
  LocalRows a_;
  const solver::Cells& cells_;
  Lle& result_;
};

/// What a range of a vector's entries tells.
struct Entries {
  double largest = 0;  // magnitude
  double fourth = 0;   // sum of fourth powers
  Point decides = -1;  // the smallest row whose entry is as large as any
  bool negative = false;
};

/// Signs, and what is told of where the vectors live. `order`: rows of the table, ascending within a piece or not.
void finish_piece(const Context& ctx, const std::vector<Point>& rows, const solver::Vectors& vectors, Lle& result,
                  LlePiece& piece) {
  const std::int64_t dim = vectors.width;
  const std::int64_t tasks = (vectors.rows + solver::kTaskPoints - 1) / solver::kTaskPoints;
  std::vector<Entries> parts(static_cast<std::size_t>(tasks));
  for (std::int64_t c = 0; c < dim; ++c) {
    solver::for_each_point(ctx, vectors.rows, [&](std::int64_t i) {
      Entries& part = parts[i / solver::kTaskPoints];
      if (i % solver::kTaskPoints == 0) part = {};
      const double x = vectors.row(i)[c];
      part.largest = std::max(part.largest, std::abs(x));
      part.fourth += x * x * x * x;
    });
    Entries all;
    for (const Entries& part : parts) {
      all.largest = std::max(all.largest, part.largest);
      all.fourth += part.fourth;
    }
    piece.localization.push_back(1 / (static_cast<double>(vectors.rows) * all.fourth));
    solver::for_each_point(ctx, vectors.rows, [&](std::int64_t i) {
      Entries& part = parts[i / solver::kTaskPoints];
      const double x = vectors.row(i)[c];
      if (std::abs(x) < (1 - kSameMagnitude) * all.largest || (part.decides >= 0 && rows[i] > part.decides)) return;
      part.decides = rows[i];
      part.negative = x < 0;
    });
    for (const Entries& part : parts) {
      if (part.decides < 0 || (all.decides >= 0 && part.decides > all.decides)) continue;
      all.decides = part.decides;
      all.negative = part.negative;
    }
    solver::for_each_point(ctx, vectors.rows, [&](std::int64_t i) {
      result.embedding[rows[i] * dim + c] = all.negative ? -vectors.row(i)[c] : vectors.row(i)[c];
    });
    result.eigenvalue_sum += piece.singular_values[c] * piece.singular_values[c];
  }
}

/// The largest magnitude among the weights of `standard`.
double largest_weight(const Context& ctx, const LocalRows& a) {
  std::vector<double> parts(static_cast<std::size_t>((a.points + solver::kTaskPoints - 1) / solver::kTaskPoints), 0);
  solver::for_each_point(ctx, a.points, [&](std::int64_t i) {
    double& part = parts[i / solver::kTaskPoints];
    for (std::int64_t j = 1; j < a.width; ++j) part = std::max(part, std::abs(a.values[i * a.width + j]));
  });
  return *std::max_element(parts.begin(), parts.end());
}

}  // namespace

namespace ops {

std::uint64_t embed_bytes(const Context& ctx, std::int64_t n, std::int64_t d, const LleOptions& options) {
  const solver::LocalTask task{TableView(), {}, options.k, options.dim, options.variant, options.reg};
  const auto width = static_cast<std::uint64_t>(options.k + 1);
  const auto rows = static_cast<std::uint64_t>(n);
  const std::uint64_t blocks =
      rows * width * (static_cast<std::uint64_t>(solver::block_rows(task)) * sizeof(double) + 4);
  return 2 * blocks + solver::ordering_bytes(ctx, n, options.k + 1) +
         rows * static_cast<std::uint64_t>(std::min(d, kOrderColumns)) * sizeof(float) +
         rows * static_cast<std::uint64_t>(options.dim) * sizeof(double) + solver::weight_room_bytes(ctx, options.k, d);
}

void embed(const Context& ctx, kernels::LleTask task, Lle& result) {
  auto start = std::chrono::steady_clock::now();
  const LleOptions& options = task.options;
  const std::int64_t n = task.table.rows();
  const solver::LocalTask local{task.table, task.ids, task.k, options.dim, options.variant, options.reg};
  const kernels::LleBackend& backend = kernels::backend_of(ctx).lle();
  std::unique_ptr<kernels::DeviceLle> device;
  if (backend.place(options).on_device) device = backend.begin(ctx, task);
  task.index.reset();  // the device needs its memory for factors
  LocalRows a = device != nullptr ? solver::local_columns(ctx, local) : solver::local_rows(ctx, local);
  const ops::LlePartition parts = ops::pieces_of(ctx, a, options.variant, result.piece);
  const std::int64_t count = parts.pieces();
  if (count > 1 && options.pieces == LlePieces::refuse) {
    throw Error(
        ErrorCode::bad_data,
        fmt::format("table: the graph of {} neighbors a row is in {} pieces{}; a larger k may join them, and "
                    "pieces apart embeds each on its own",
                    task.k, count,
                    count > parts.components ? fmt::format(", which are closed classes of its {} connected component{}",
                                                           parts.components, parts.components == 1 ? "" : "s")
                                             : std::string()));
  }
  if (device != nullptr) {
    result.largest_weight = options.variant == LleVariant::standard ? device->largest_weight() : 0;
  } else if (options.variant == LleVariant::standard) {
    result.largest_weight = largest_weight(ctx, a);
  }
  result.weight_seconds = seconds_since(start);

  start = std::chrono::steady_clock::now();
  std::int64_t d = 0;
  const core::RawVector<float> coordinates = coordinates_of(ctx, task.table, d);
  const std::vector<std::vector<Point>> rows_of = rows_of_pieces(ctx, result.piece, parts);
  result.order_seconds += seconds_since(start);
  result.embedding.assign(static_cast<std::size_t>(n * options.dim), 0.0);
  for (std::int64_t p = 0; p < count; ++p) {
    start = std::chrono::steady_clock::now();
    const auto size = static_cast<std::int64_t>(rows_of[p].size());
    core::RawVector<float> own;
    if (count > 1) {
      own.resize(static_cast<std::size_t>(size * d));
      solver::for_each_point(ctx, size, [&](std::int64_t i) {
        std::copy_n(coordinates.begin() + rows_of[p][i] * d, d, own.begin() + i * d);
      });
    }
    solver::Cells cells = solver::kd_cells(ctx, count > 1 ? own : coordinates, d);
    solver::for_each_point(ctx, size, [&](std::int64_t i) { cells.order[i] = rows_of[p][cells.order[i]]; });
    LocalRows blocks = solver::renumbered(ctx, a, cells.order);
    if (p + 1 == count) a = LocalRows();
    result.order_seconds += seconds_since(start);
    LlePiece& piece = result.pieces.emplace_back();
    const solver::Vectors vectors = Piece(ctx, task, std::move(blocks), cells, result).run(device.get(), piece);
    finish_piece(ctx, cells.order, vectors, result, piece);
    piece.component = parts.component[p];
    piece.closed_classes = parts.classes.empty() ? 0 : parts.classes[piece.component];
  }
  ops::place_rows(ctx, local, parts, result.piece, result.embedding);
  for (Point row = 0; row < n; ++row) {
    if (parts.embeds(row)) continue;
    result.placed.push_back(row);
    LlePiece& piece = result.pieces[result.piece[row]];
    ++piece.rows;
    ++piece.placed;
  }
}

}  // namespace ops
}  // namespace vicinal

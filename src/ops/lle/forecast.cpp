// See forecast.hpp.
#include "ops/lle/forecast.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "backend/lle.hpp"
#include "core/memory.hpp"
#include "core/table_access.hpp"
#include "ops/kmeans/clustered_rows.hpp"

namespace vicinal::ops {
namespace {

constexpr std::int64_t kForecastRows = 6144;                      // of the larger sample; the smaller has a quarter
constexpr std::int64_t kForecastNumbers = std::int64_t{1} << 20;  // of a sample at most
constexpr std::int64_t kProductRows = 1200;                       // products are tried with fewer
constexpr std::int64_t kProductSteps = 5000;
constexpr double kMargin = 1.15;  // on memory that is carried on
// Of one thread, by docs/performance.md's figures of two cores of an AMD EPYC.
constexpr double kFactorRate = 23e9;      // multiplications and additions a second
constexpr double kWeightRate = 1.2e9;     // of k^2 d + k^3
constexpr double kOrderSeconds = 4e-6;    // a row
constexpr double kSolveSeconds = 2.9e-8;  // an entry of the factor, all steps together
constexpr double kProductRate = 4e9;      // multiplications of a sparse product by a block

/// What an embedding of some of the rows took.
struct Tried {
  double rows = 0;
  double fill = 0;
  double flops = 0;
  double products = 0;
  double bytes = 0;
};

std::vector<double> sample_of(const TableView& table, std::int64_t count) {
  const std::int64_t n = table.rows();
  std::vector<double> rows(static_cast<std::size_t>(count * table.cols()));
  std::uint64_t random = 0x2545F4914F6CDD1DU;
  for (std::int64_t i = 0; i < count; ++i) {  // one in each of as many equal stretches
    random = random * 6364136223846793005U + 1442695040888963407U;
    const std::int64_t first = i * n / count;
    const auto stretch = static_cast<std::uint64_t>((i + 1) * n / count - first);
    const std::int64_t row = first + static_cast<std::int64_t>((random >> 33) % stretch);
    core::widen_rows(table, row, row + 1, rows.data() + i * table.cols());
  }
  return rows;
}

std::optional<Tried> tried(const Context& ctx, const TableView& table, LleOptions options, std::int64_t count,
                           LleSolver solver) {
  const std::vector<double> rows = sample_of(table, count);
  const Context quiet = Context::cpu(
      {.threads = ctx.threads(), .memory_limit = 1U << 30, .cancel = ctx.cancel_token(), .isa = ctx.isa()});
  options.solver = solver;
  options.certify = false;
  options.pieces = LlePieces::apart;
  options.max_steps = std::min(options.max_steps, kProductSteps);
  Tried found;
  try {
    const Lle made = lle(quiet, TableView(rows.data(), count, table.cols()), options);
    found.rows = static_cast<double>(count);
    found.bytes = static_cast<double>(made.plan.memory);
    for (const LlePiece& piece : made.pieces) {
      found.fill += static_cast<double>(piece.fill);
      found.flops += piece.flops;
      found.products = std::max(found.products, static_cast<double>(piece.iterations));
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    return std::nullopt;  // the run itself will say what is wrong
  }
  return found;
}

double carried(double less, double more, const Tried& few, const Tried& many, double n) {
  if (!(less > 0) || !(more > 0) || n <= many.rows || many.rows <= few.rows) return more;
  const double power = std::clamp(std::log(more / less) / std::log(many.rows / few.rows), 0.0, 3.0);
  return more * std::pow(n / many.rows, power);
}

/// Both samples by one solver, and what all rows will take.
std::optional<Tried> carried_on(const Context& ctx, const TableView& table, const LleOptions& options,
                                std::int64_t largest, LleSolver solver) {
  const std::int64_t most = std::max(kForecastNumbers / table.cols(), 8 * options.k);
  const std::int64_t count = std::min({table.rows(), largest, most});
  const auto many = tried(ctx, table, options, count, solver);
  if (!many || count == table.rows()) return many;
  const auto few = tried(ctx, table, options, std::max(count / 4, std::min(count, 4 * options.k)), solver);
  if (!few) return std::nullopt;
  const auto n = static_cast<double>(table.rows());
  Tried all;
  all.rows = n;
  all.fill = carried(few->fill, many->fill, *few, *many, n);
  all.flops = carried(few->flops, many->flops, *few, *many, n);
  all.products = carried(few->products, many->products, *few, *many, n);
  // A small sample's fronts may grow faster than those of more rows do, and its lists slower than the factor.
  const double by_fill = many->bytes * (many->fill > 0 ? all.fill / many->fill : n / many->rows);
  all.bytes = kMargin * std::min(by_fill, carried(few->bytes, many->bytes, *few, *many, n));
  return all;
}

double weight_seconds(const Context& ctx, const TableView& table, const LleOptions& options) {
  const auto k = static_cast<double>(options.k);
  const double row = (k * k * static_cast<double>(table.cols()) + k * k * k) / kWeightRate + kOrderSeconds;
  return row * static_cast<double>(table.rows()) / ctx.threads();
}

double product_seconds(const Context& ctx, const TableView& table, const LleOptions& options, double products) {
  const std::int64_t block = (options.dim + 4 + 7) / 8 * 8;
  const double sets = options.variant == LleVariant::standard ? 1 : static_cast<double>(options.k - options.dim);
  const double entries = static_cast<double>(table.rows()) * static_cast<double>(options.k + 1) * sets;
  return products * 2 * entries * static_cast<double>(block) / (kProductRate * ctx.threads());
}

}  // namespace

double direct_seconds(const Context& ctx, const TableView& table, const LleOptions& options, const DirectCost& cost) {
  const double factors = options.certify ? 2 : 1;
  return weight_seconds(ctx, table, options) +
         (factors * cost.flops / kFactorRate + cost.fill * kSolveSeconds) / ctx.threads();
}

LleForecast forecast_lle(const Context& ctx, const TableView& table, const LleOptions& options, std::uint64_t least) {
  if (table.memory() == Memory::cuda) {
    const RowCopy rows = rows_on_host(ctx, table);
    LleForecast there = forecast_lle(ctx, rows.table, options, least);
    there.bytes = std::max(least, there.bytes + bytes_on_host(table));
    return there;
  }
  LleForecast found;
  found.bytes = least;
  const bool automatic = options.solver == LleSolver::automatic;
  if (options.solver == LleSolver::dense || (automatic && table.rows() <= kernels::kDenseRows)) {
    found.solver = LleSolver::dense;
    return found;
  }
  const auto by_products = [&](LleSolver solver) {
    const auto all = carried_on(ctx, table, options, kProductRows, solver);
    found.solver = solver;
    if (!all) return;
    found.bytes = std::max(least, static_cast<std::uint64_t>(all->bytes));
    found.seconds = weight_seconds(ctx, table, options) + product_seconds(ctx, table, options, all->products);
  };
  if (options.solver == LleSolver::lanczos || options.solver == LleSolver::arnoldi) {
    by_products(options.solver);
    return found;
  }
  const auto direct = carried_on(ctx, table, options, kForecastRows, LleSolver::direct);
  if (!direct) return found;
  const double seconds = direct_seconds(ctx, table, options, {direct->fill, direct->flops});
  const std::uint64_t bytes = std::max(least, static_cast<std::uint64_t>(direct->bytes));
  if (automatic && bytes <= ctx.memory_limit() && direct->flops > kernels::kCheapFlops) {
    by_products(LleSolver::lanczos);
    const double trying = direct->flops / (kFactorRate * ctx.threads());
    if (found.seconds == 0 || found.seconds > seconds + trying) {
      found.solver = LleSolver::direct;
      found.seconds = seconds + trying;
    }
  } else if (automatic && bytes > ctx.memory_limit()) {
    by_products(LleSolver::lanczos);
    found.warning = fmt::format(
        "the memory limit of {} leaves no room for the solver direct, which needs about {} and {:.1g} s; lanczos needs "
        "{}, and counts no eigenvalues",
        core::format_bytes(ctx.memory_limit()), core::format_bytes(bytes), seconds,
        found.seconds > 0 ? fmt::format("about {:.2g} s", found.seconds) : std::string("a time that is not foreseen"));
  } else {
    found.solver = LleSolver::direct;
    found.seconds = seconds;
  }
  found.bytes = bytes;
  return found;
}

}  // namespace vicinal::ops

// See initial_centres.hpp.
#include "ops/kmeans/initial_centres.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/backend.hpp"
#include "core/sampling.hpp"
#include "core/table_access.hpp"
#include "ops/common/together.hpp"
#include "ops/kmeans/candidates.hpp"
#include "ops/kmeans/draws.hpp"

namespace vicinal::ops {
namespace {

// Rows that one step of k-means++ tries.
std::int64_t trials_of(std::int64_t clusters) {
  return 2 + static_cast<std::int64_t>(std::log(static_cast<double>(clusters)));
}

// Steps of k-means++ between two looks at the cancel token: some tens of milliseconds of a device.
std::int64_t steps_at_once(const kernels::ClusterTask& task) {
  constexpr std::int64_t kElements = std::int64_t{1} << 30;
  const std::int64_t elements =
      std::max<std::int64_t>(task.table.rows() * task.table.cols(), 1);  // a rank may have none
  return std::clamp<std::int64_t>(kElements / elements, 1, 256);
}

// The rows that k-means++ chooses.
std::vector<std::int64_t> plus_plus(const Context& ctx, kernels::Lloyd& from, const kernels::ClusterTask& task,
                                    std::int64_t k, Draws& draws) {
  const std::int64_t trials = trials_of(k);
  const auto seeding = from.seeding(trials);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(k));
  seeding->choose(draws.next(1), std::span(rows).first(1));
  for (std::int64_t c = 1; c < k;) {
    ctx.report("seed", static_cast<double>(c) / static_cast<double>(k));
    const std::int64_t steps = std::min(steps_at_once(task), k - c);
    seeding->choose(draws.next(steps * trials),
                    std::span(rows).subspan(static_cast<std::size_t>(c), static_cast<std::size_t>(steps)));
    c += steps;
  }
  return rows;
}

// k-means||: k-means++ among candidates, on the same backend, by every rank alike.
std::vector<std::int64_t> parallel(const Context& ctx, kernels::Lloyd& lloyd, const RankRows& own, Draws& draws) {
  const Candidates found = draw_candidates(ctx, lloyd, own, draws);
  const auto count = static_cast<std::int64_t>(found.rows.size());
  const std::int64_t d = own.task.table.cols();
  std::vector<double> values(static_cast<std::size_t>(count * d));
  lloyd.rows(found.rows, values);
  std::vector<std::int64_t> rows;
  together(own.ranks, [&] {
    const kernels::ClusterTask of_candidates = {TableView(values.data(), count, d), found.weights, 1, false};
    const auto among = kernels::backend_of(ctx).kmeans().lloyd(ctx, of_candidates);
    rows = plus_plus(ctx, *among, of_candidates, own.task.clusters, draws);
  });
  for (std::int64_t& row : rows) row = found.rows[static_cast<std::size_t>(row)];
  return rows;
}

}  // namespace

std::int64_t seeding_trials(const KMeansOptions& options) {
  if (options.init == KMeansInit::plus_plus) return trials_of(options.clusters);
  return options.init == KMeansInit::parallel ? 0 : kernels::kNoSeeding;
}

kernels::MemoryNeed initial_bytes(const Context& ctx, std::int64_t n, std::int64_t d, const KMeansOptions& options) {
  if (options.init != KMeansInit::parallel) return {};
  const std::int64_t count = usual_candidates(n, options.clusters);
  alignas(double) static constexpr std::byte kNowhere[8] = {};
  const TableView candidates(static_cast<const void*>(kNowhere), DType::float64, count, d, d);
  const kernels::ClusterTask task = {candidates, {}, 1, false};
  kernels::MemoryNeed bytes = kernels::backend_of(ctx).kmeans().plan(ctx, task, trials_of(options.clusters)).bytes;
  bytes.host += candidate_bytes(n, options.clusters) + static_cast<std::uint64_t>(count * d) * sizeof(double);
  return bytes;
}

std::vector<double> initial_centres(const Context& ctx, kernels::Lloyd& lloyd, const RankRows& own,
                                    const KMeansOptions& options, std::int64_t run) {
  const kernels::ClusterTask& task = own.task;
  std::vector<double> centres(static_cast<std::size_t>(task.clusters * task.table.cols()));
  Draws draws(options.seed, run);
  std::vector<std::int64_t> rows;
  switch (options.init) {
    case KMeansInit::given:
      core::widen_rows(options.centres, 0, task.clusters, centres.data());
      return centres;
    case KMeansInit::first_k:
      rows.resize(static_cast<std::size_t>(task.clusters));
      std::iota(rows.begin(), rows.end(), 0);
      break;
    case KMeansInit::random:
      rows = core::rows_without_replacement(own.total, task.clusters, [&] { return draws.next(); });
      break;
    case KMeansInit::plus_plus:
      rows = plus_plus(ctx, lloyd, task, task.clusters, draws);
      break;
    case KMeansInit::parallel:
      rows = parallel(ctx, lloyd, own, draws);
      break;
  }
  lloyd.rows(rows, centres);
  return centres;
}

}  // namespace vicinal::ops

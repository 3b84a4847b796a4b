// See divided_lof.hpp.
#include "plugin/cuda/divided_lof.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "core/infinity.hpp"
#include "core/list_room.hpp"
#include "core/parallel.hpp"
#include "core/seconds.hpp"

namespace vicinal::plugin {
namespace {

using kernels::LofResult;
using kernels::LofTask;

constexpr std::int64_t kBlock = 65536;  // rows of a task of the host's threads

/// Whether a row's score is made without the other rows'.
bool stands_alone(const LofTask& task) {
  return task.model != nullptr || !core::compares_neighbors(task.score);
}
bool has_phases(const LofTask& task) {
  return task.score == OutlierScore::lof || task.score == OutlierScore::simplified_lof ||
         task.score == OutlierScore::loop;
}

/// The task of some rows.
LofTask rows_of(const LofTask& task, std::int64_t rows) {
  LofTask own = task;
  own.near.rows = rows;
  return own;
}

/// Puts caps in the place of densities [rows, ks] without bound; returns them.
std::vector<double> cap_densities(const Context& ctx, double* densities, std::int64_t rows, std::int64_t ks) {
  const auto width = static_cast<std::size_t>(ks);
  const std::int64_t blocks = (rows + kBlock - 1) / kBlock;
  std::vector<std::vector<double>> largest(static_cast<std::size_t>(ctx.threads()), std::vector<double>(width, 0));
  const auto for_each = [&](const auto& visit) {
    core::parallel_for(ctx, blocks, [&](std::int64_t block, int worker) {
      for (std::int64_t i = block * kBlock * ks; i < std::min(rows, (block + 1) * kBlock) * ks; ++i) {
        visit(densities[i], static_cast<std::size_t>(i % ks), static_cast<std::size_t>(worker));
      }
    });
  };
  for_each([&](double density, std::size_t k, std::size_t worker) {
    if (density < kInfinity) largest[worker][k] = std::max(largest[worker][k], density);
  });
  std::vector<double> caps(width, 0);
  for (std::size_t k = 0; k < width; ++k) {
    for (const std::vector<double>& own : largest) caps[k] = std::max(caps[k], own[k]);
    caps[k] = caps[k] > 0 ? 2 * caps[k] : 1;
  }
  for_each([&](double& density, std::size_t k, std::size_t /*worker*/) {
    if (!(density < kInfinity)) density = caps[k];
  });
  return caps;
}

}  // namespace

DividedLof::DividedLof(std::shared_ptr<Crew> crew, const DividedNearest& nearest)
    : crew_(std::move(crew)), nearest_(nearest) {
  for (std::int64_t i = 0; i < crew_->size(); ++i) members_.emplace_back(crew_->device(i), nearest_.of(i));
}

void DividedLof::score(const Context& ctx, const LofTask& task, LofResult& result) const {
  of(0).score(ctx, task, result);
}

bool DividedLof::lists_stay(const LofTask& task) const {
  return stands_alone(task) || has_phases(task);
}

kernels::MemoryNeed DividedLof::bytes(const Context& ctx, const LofTask& task) const {
  if (task.near.ids != nullptr) return of(0).bytes(ctx, task);
  const auto rows = static_cast<std::uint64_t>(task.near.rows);
  const LofTask own = rows_of(task, (task.near.rows + crew_->size() - 1) / crew_->size());
  kernels::MemoryNeed need;
  if (stands_alone(task)) {
    need = of(0).bytes(ctx, own);
    need.host *= static_cast<std::uint64_t>(crew_->size());
    if (task.keep) need.host += rows * static_cast<std::uint64_t>(task.ks()) * 16;
  } else if (has_phases(task)) {
    need.device = of(0).rows_bytes(own, task.near.rows);
    need.host = rows * static_cast<std::uint64_t>(task.ks()) * 16;
  } else {
    need = of(0).bytes(ctx, task);
    need.host += rows * static_cast<std::uint64_t>(task.near.stride) * 16;
  }
  return need;
}

void DividedLof::search_and_score(const Context& ctx, const kernels::NearestTask& search, const LofTask& task,
                                  LofResult& result, SearchStats& stats) const {
  if (stands_alone(task)) return score_alone(ctx, search, task, result, stats);
  if (has_phases(task)) return score_in_phases(ctx, search, task, result, stats);
  kernels::search_then_score(ctx, nearest_, of(0), search, task, result, stats);
}

void DividedLof::score_alone(const Context& ctx, const kernels::NearestTask& search, const LofTask& task,
                             LofResult& result, SearchStats& stats) const {
  struct Found {
    std::vector<double> k_distances;
    std::vector<double> densities;
    std::vector<double> caps;
    std::int64_t copied = 0;
    double seconds = 0;
    SearchStats stats;
  };
  std::vector<Found> found(nearest_.query_cuts(search).size() - 1);
  nearest_.find_by_queries(ctx, search, [&](std::int64_t i, const SearchPart& part) {
    Found& to = found[static_cast<std::size_t>(i)];
    const std::int64_t rows = part.task.queries.rows();
    LofResult own{result.scores.subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(rows)),
                  to.k_distances, to.densities, to.caps};
    of(i).search_and_score(crew_->context(i), part.task, rows_of(task, rows), own, to.stats);
    to.copied = own.copied;
    to.seconds = own.seconds;
  });
  for (const Found& from : found) {
    result.k_distances.insert(result.k_distances.end(), from.k_distances.begin(), from.k_distances.end());
    result.densities.insert(result.densities.end(), from.densities.begin(), from.densities.end());
    result.copied += from.copied;
    result.seconds = std::max(result.seconds, from.seconds);
    add_stats(from.stats, stats);
  }
  stats.distinct_rows = found.front().stats.distinct_rows;
}

void DividedLof::score_in_phases(const Context& ctx, const kernels::NearestTask& search, const LofTask& task,
                                 LofResult& result, SearchStats& stats) const {
  const std::vector<std::int64_t> cuts = nearest_.query_cuts(search);
  const std::int64_t count = std::ssize(cuts) - 1;
  const std::int64_t rows = cuts.back();
  const std::int64_t ks = task.ks();
  // Not cleared: the devices fill them.
  const std::unique_ptr<double[]> k_distances(new double[static_cast<std::size_t>(rows * ks)]);
  const std::unique_ptr<double[]> densities(new double[static_cast<std::size_t>(rows * ks)]);
  for (double* const values : {k_distances.get(), densities.get()}) {
    core::touch_pages(ctx, values, static_cast<std::size_t>(rows * ks) * sizeof(double));
  }
  struct Found {
    std::unique_ptr<CudaLofRows> rows;
    std::int64_t copied = 0;
    SearchStats stats;
  };
  std::vector<Found> found(static_cast<std::size_t>(count));
  const auto begin = [&](std::int64_t i) { return cuts[static_cast<std::size_t>(i)]; };
  nearest_.find_by_queries(ctx, search, [&](std::int64_t i, const SearchPart& part) {
    Found& to = found[static_cast<std::size_t>(i)];
    to.rows = of(i).find_rows(crew_->context(i), part.task, rows_of(task, part.task.queries.rows()), rows,
                              k_distances.get() + part.begin * ks, to.copied, to.stats);
  });
  const auto start = std::chrono::steady_clock::now();
  for (const Found& from : found) {
    result.copied += from.copied;
    add_stats(from.stats, stats);
  }
  stats.distinct_rows = found.front().stats.distinct_rows;
  const double* const known = task.score == OutlierScore::lof ? k_distances.get() : nullptr;
  crew_->run("densities", ctx, count, [&](std::int64_t i) {
    found[static_cast<std::size_t>(i)].rows->densities(known, densities.get() + begin(i) * ks);
  });
  if (task.duplicates == Duplicates::cap && core::has_densities(task.score)) {
    result.caps = cap_densities(ctx, densities.get(), rows, ks);
  }
  crew_->run("scores", ctx, count, [&](std::int64_t i) {
    found[static_cast<std::size_t>(i)].rows->scores(densities.get(), begin(i), result.scores.data() + begin(i));
  });
  if (task.keep) {
    result.k_distances.assign(k_distances.get(), k_distances.get() + rows * ks);
    result.densities.assign(densities.get(), densities.get() + rows * ks);
  }
  result.seconds = seconds_since(start);
}

}  // namespace vicinal::plugin

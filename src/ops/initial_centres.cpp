// See initial_centres.hpp. Random rows without replacement by Floyd's method: k draws and a set of k rows, whatever n.
#include "ops/initial_centres.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>

#include "core/philox.hpp"
#include "core/table_access.hpp"

namespace vicinal::ops {
namespace {

class Draws {
 public:
  Draws(std::uint64_t seed, std::int64_t run) : seed_(seed), stream_(0x6b6d0000U + static_cast<std::uint64_t>(run)) {}
  double next() { return core::philox_uniform(seed_, stream_, counter_++); }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t counter_ = 0;
};

std::vector<std::int64_t> random_rows(std::int64_t n, std::int64_t k, Draws& draws) {
  std::vector<std::int64_t> rows;
  std::unordered_set<std::int64_t> taken;
  for (std::int64_t j = n - k; j < n; ++j) {
    const auto drawn = std::min(static_cast<std::int64_t>(draws.next() * static_cast<double>(j + 1)), j);
    rows.push_back(taken.insert(drawn).second ? drawn : j);
    taken.insert(rows.back());
  }
  return rows;
}

std::vector<std::int64_t> plus_plus(const Context& ctx, kernels::Lloyd& lloyd, const kernels::ClusterTask& task,
                                    Draws& draws) {
  const std::int64_t trials = seeding_trials(task.clusters);
  const auto seeding = lloyd.seeding(trials);
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> drawn;
  std::vector<double> totals(static_cast<std::size_t>(trials));
  for (std::int64_t c = 0; c < task.clusters; ++c) {
    ctx.report("seed", static_cast<double>(c) / static_cast<double>(task.clusters));
    drawn.clear();
    for (std::int64_t t = 0; t < (c == 0 ? 1 : trials); ++t) drawn.push_back(seeding->draw(draws.next()));
    seeding->attempt(drawn, totals);
    const auto best = std::min_element(totals.begin(), totals.begin() + static_cast<std::ptrdiff_t>(drawn.size()));
    const auto at = static_cast<std::size_t>(best - totals.begin());
    seeding->take(at);
    rows.push_back(drawn[at]);
  }
  return rows;
}

}  // namespace

std::int64_t seeding_trials(std::int64_t clusters) {
  return 2 + static_cast<std::int64_t>(std::log(static_cast<double>(clusters)));
}

std::vector<double> initial_centres(const Context& ctx, kernels::Lloyd& lloyd, const kernels::ClusterTask& task,
                                    const KMeansOptions& options, std::int64_t run) {
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
      rows = random_rows(task.table.rows(), task.clusters, draws);
      break;
    case KMeansInit::plus_plus:
      rows = plus_plus(ctx, lloyd, task, draws);
      break;
  }
  lloyd.rows(rows, centres);
  return centres;
}

}  // namespace vicinal::ops

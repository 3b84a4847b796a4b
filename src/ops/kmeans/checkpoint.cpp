// See checkpoint.hpp.
#include "ops/kmeans/checkpoint.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/seconds.hpp"
#include "ops/common/refuse.hpp"
#include "ops/kmeans/check.hpp"

namespace vicinal::ops {
namespace {

/// Refuses by the name of the argument.
class Require {
 public:
  explicit Require(const char* name) : name_(name) {}
  void operator()(bool right, const char* why) const {
    if (!right) refuse(std::string(name_) + ": " + why);
  }
  /// What check() refuses of a part of the state.
  template <class Check>
  void all_of(const Check& check) const {
    try {
      check();
    } catch (const Error& error) {
      throw Error(error.code(), std::string(name_) + ": " + error.what());
    }
  }

 private:
  const char* name_;
};

/// `clusters`, `cols`: of the state's own centers.
void check_best(const Require& require, const KMeans& best, std::int64_t clusters, std::int64_t cols) {
  require(best.clusters == clusters && best.cols == cols, "its best run has other clusters or columns");
  require.all_of([&] { check_model(best); });
  require(!best.labels.empty() && best.inertia >= 0 && std::isfinite(best.inertia) && best.iterations >= 1,
          "its best run has no result");
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(clusters), 0);
  for (const std::int32_t label : best.labels) {
    require(label >= 0 && label < clusters, "a label of its best run is not a cluster");
    ++sizes[static_cast<std::size_t>(label)];
  }
  require(sizes == best.sizes, "the sizes of its best run are not those of its labels");
}

std::int64_t size_of(const std::vector<double>& values) {
  return static_cast<std::int64_t>(values.size());
}

}  // namespace

bool Checkpoints::due() const {
  return options_.checkpoint && seconds_since(last_) >= options_.checkpoint_seconds;
}

void Checkpoints::give(const KMeansCheckpoint& state) {
  options_.checkpoint(state);
  last_ = std::chrono::steady_clock::now();
}

void check_checkpoint(const KMeansCheckpoint& state, const char* name) {
  const Require require(name);
  require(state.run >= 0 && state.iterations >= 0 && state.without_improvement >= 0, "a number in it is below 0");
  require(state.clusters >= 1 && !state.centres.empty() && size_of(state.centres) % state.clusters == 0,
          "its centers do not fit its clusters");
  require((state.run > 0) == (state.best.clusters > 0), "it must have a best run from its second run on");
  require(state.history.empty() || size_of(state.history) == state.iterations, "its history has not all iterations");
  require(std::all_of(state.masses.begin(), state.masses.end(), [](double x) { return x >= 0 && std::isfinite(x); }) &&
              !std::isnan(state.smoothed) && !std::isnan(state.least),
          "its masses or inertias are NaN, infinite or below 0");
  const std::int64_t cols = size_of(state.centres) / state.clusters;
  require.all_of([&] { check_centres(state.centres, cols); });
  if (state.run == 0) return;
  check_best(require, state.best, state.clusters, cols);
  require(state.best.metric == state.metric, "its best run has another metric");
}

void check_resume(const KMeansOptions& options, std::int64_t cols, std::int64_t weighted) {
  if (options.resume == nullptr) return;
  const KMeansCheckpoint& state = *options.resume;
  const Require require("resume");
  check_checkpoint(state, "resume");
  require(state.metric == options.metric, "it is of another metric");
  require(state.clusters == options.clusters && size_of(state.centres) == options.clusters * cols,
          "its centers are not clusters x columns");
  require(state.run < options.runs && state.iterations <= options.max_iterations,
          "it is beyond runs or max_iterations");
  require(size_of(state.history) == (options.history ? state.iterations : 0),
          "its history is not what options ask for");
  require(size_of(state.masses) == (options.batch_size > 0 ? options.clusters : 0),
          "its masses are not one per cluster");
  if (state.run == 0) return;
  require(size_of(state.best.history) == (options.history ? state.best.iterations : 0) &&
              state.best.iterations <= options.max_iterations,
          "the iterations of its best run are not what options ask for");
  require(static_cast<std::int64_t>(state.best.labels.size()) == weighted, "its best run has not one label per row");
}

}  // namespace vicinal::ops

// KMeansCheckpoint: its file is an index (ops/nearest/index_file.hpp) of the centers, as that of a KMeansModel, with
// the rest as further arrays. What is read passes the checks that a caller's own state passes.
#include <string>
#include <vector>

#include "backend/index_access.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/names.hpp"
#include "core/table_access.hpp"
#include "ops/common/model_reader.hpp"
#include "ops/common/refuse.hpp"
#include "ops/kmeans/checkpoint.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/knn.hpp"

namespace vicinal {
namespace {

constexpr ops::FileKind kCheckpointFile = {"checkpoint", "a checkpoint of k-means", "vicinal-kmeans-checkpoint",
                                           1 << 20, true};
constexpr KMeansStop kEnds[] = {KMeansStop::labels, KMeansStop::shift, KMeansStop::changed_share,
                                KMeansStop::max_iterations, KMeansStop::no_improvement};

KMeansStop stop_from(const std::string& name) {
  for (const KMeansStop stop : kEnds) {
    if (name == name_of(stop)) return stop;
  }
  refuse("stopped: there is no '" + name + "'");
}

template <class Value>
void add_array(ops::ModelParts& parts, const char* name, const char* dtype, const std::vector<Value>& values) {
  if (!values.empty()) parts.arrays.push_back({name, dtype, {static_cast<std::int64_t>(values.size())}, values.data()});
}

template <class Value>
std::vector<Value> read_array(ops::ModelReader& file, const char* name, const char* dtype) {
  const ops::ModelArray* const array = file.array(name, dtype, {-1});
  return array == nullptr ? std::vector<Value>() : ops::ModelReader::values<Value>(*array);
}

}  // namespace

void KMeansCheckpoint::save(const Context& ctx, const std::filesystem::path& path) const try {
  const core::Entry entry;
  ops::check_checkpoint(*this, "checkpoint");
  core::require_memory(ctx, centres.size() * 16 + best.labels.size() * 8, "saving a checkpoint");
  const std::vector<std::int64_t> labels(best.labels.begin(), best.labels.end());
  // The call that gives the state may be at work on the device.
  const Context host = Context::cpu({.threads = 1, .memory_limit = ctx.memory_limit(), .cancel = ctx.cancel_token()});
  const Index index(host, TableView(centres.data(), clusters, static_cast<std::int64_t>(centres.size()) / clusters));
  ops::ModelParts parts;
  parts.metadata = {{"run", ops::text_of(run)},
                    {"iterations", ops::text_of(iterations)},
                    {"smoothed", ops::text_of(smoothed)},
                    {"least", ops::text_of(least)},
                    {"without_improvement", ops::text_of(without_improvement)},
                    {"metric", std::string(name_of(metric))},
                    {"best_inertia", ops::text_of(best.inertia)},
                    {"best_iterations", ops::text_of(best.iterations)},
                    {"best_stopped", std::string(name_of(best.stopped))}};
  add_array(parts, "best_centres", "F64", best.centres);  // sorted by name
  add_array(parts, "best_history", "F64", best.history);
  add_array(parts, "best_labels", "I64", labels);
  add_array(parts, "best_sizes", "I64", best.sizes);
  add_array(parts, "history", "F64", history);
  add_array(parts, "masses", "F64", masses);
  ops::write_index(ctx, path, kernels::prepared_of(index), kCheckpointFile, parts);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

KMeansCheckpoint KMeansCheckpoint::load(const Context& ctx, const std::filesystem::path& path) try {
  const core::Entry entry;
  ops::ModelParts parts;
  const auto read = ops::load_index(ctx, path, kCheckpointFile, &parts);
  ops::ModelReader file(kCheckpointFile, path, parts);
  const TableView& table = read->table;
  file.require(table.dtype() == DType::float64, "its centers are not float64");
  core::require_memory(ctx, static_cast<std::uint64_t>(table.rows() * table.cols()) * 8 + ops::numbers_in(parts) * 12,
                       "loading the checkpoint '" + path.string() + "'");
  KMeansCheckpoint state;
  state.clusters = table.rows();
  state.centres.resize(static_cast<std::size_t>(table.rows() * table.cols()));
  core::widen_rows(table, 0, table.rows(), state.centres.data());
  state.run = file.number<std::int64_t>("run");
  state.iterations = file.number<std::int64_t>("iterations");
  state.smoothed = file.number<double>("smoothed");
  state.least = file.number<double>("least");
  state.without_improvement = file.number<std::int64_t>("without_improvement");
  state.history = read_array<double>(file, "history", "F64");
  state.masses = read_array<double>(file, "masses", "F64");
  KMeans& best = state.best;
  best.clusters = state.run > 0 ? table.rows() : 0;
  best.cols = state.run > 0 ? table.cols() : 0;
  state.metric = file.named("metric", metric_from);
  if (state.run > 0) best.metric = state.metric;
  best.inertia = file.number<double>("best_inertia");
  best.iterations = file.number<std::int64_t>("best_iterations");
  best.stopped = file.named("best_stopped", stop_from);
  best.centres = read_array<double>(file, "best_centres", "F64");
  best.history = read_array<double>(file, "best_history", "F64");
  best.sizes = read_array<std::int64_t>(file, "best_sizes", "I64");
  const std::vector<std::int64_t> labels = read_array<std::int64_t>(file, "best_labels", "I64");
  best.labels.reserve(labels.size());
  for (const std::int64_t label : labels) {
    file.require(label >= 0 && label < state.clusters, "a label of its best run is not a cluster");
    best.labels.push_back(static_cast<std::int32_t>(label));
  }
  file.require_all_seen();
  try {
    ops::check_checkpoint(state, "its state");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument && error.code() != ErrorCode::bad_data) throw;
    file.refuse(error.what());
  }
  return state;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

// Checks that more than one operation makes at the door.
#include "ops/common/check.hpp"

#include <algorithm>
#include <string>

#include "backend/backend.hpp"

namespace vicinal {

void check_memory(const Context& ctx, const TableView& table, std::string_view name) {
  if (kernels::backend_of(ctx).reaches(table.memory())) return;
  const char* const why = ctx.device() == "cpu" ? " cannot read; make the context with Context::cuda"
                                                : " cannot divide; use the one device that it is on";
  throw Error(ErrorCode::device_unavailable, std::string(name) + ": is in CUDA memory, which " + ctx.device() + why);
}

void check_table(const Context& ctx, const TableView& table, std::string_view name) {
  const std::string argument(name);
  if (table.rows() < 1) throw Error(ErrorCode::invalid_argument, argument + ": is empty, it has no rows");
  if (table.cols() < 1) throw Error(ErrorCode::invalid_argument, argument + ": is empty, it has no columns");
  check_memory(ctx, table, name);
}

void check_graph(const NeighborGraph& graph, std::string_view operation) {
  const auto refuse = [operation](const std::string& sentence) {
    throw Error(ErrorCode::invalid_argument, std::string(operation) + ": " + sentence);
  };
  if (graph.rows < 0 || graph.table_rows < 0 || graph.k < 0) refuse("the graph has a negative size");
  if (graph.ids.size() != graph.distances.size()) {
    refuse("the graph has " + std::to_string(graph.ids.size()) + " ids, but " + std::to_string(graph.distances.size()) +
           " distances");
  }
  const auto size = static_cast<std::int64_t>(graph.ids.size());
  if (!graph.is_csr()) {
    std::int64_t expected = 0;
    if (__builtin_mul_overflow(graph.rows, graph.k, &expected) || expected != size) {
      refuse("the graph has " + std::to_string(size) + " ids, but " + std::to_string(graph.rows) + " rows of " +
             std::to_string(graph.k));
    }
    return;
  }
  const auto& offsets = graph.offsets;
  if (static_cast<std::int64_t>(offsets.size()) - 1 != graph.rows || offsets.front() != 0 || offsets.back() != size ||
      !std::is_sorted(offsets.begin(), offsets.end())) {
    refuse("the graph's offsets do not lead in ascending order from 0 to its " + std::to_string(size) + " ids in " +
           std::to_string(graph.rows) + " steps");
  }
}

void check_weights(Weighting weights, const WeightFn& custom, Metric metric, std::string_view operation) {
  const std::string name(operation);
  if (weights == Weighting::given) {
    throw Error(ErrorCode::invalid_argument,
                name + ": weights are given, which only vote and average take, for the neighbors of a graph");
  }
  if (weights == Weighting::custom && !custom) {
    throw Error(ErrorCode::invalid_argument, name + ": weights are custom, but no function is given");
  }
  if (weights == Weighting::distance && metric == Metric::inner_product) {
    throw Error(ErrorCode::invalid_argument,
                name + ": weights by distance need distances that are not negative, which inner_product does not give");
  }
}

void check_weights(const NeighborGraph& graph, Weighting weights, const WeightFn& custom, std::span<const double> given,
                   std::string_view operation) {
  if (weights != Weighting::given) return check_weights(weights, custom, graph.metric, operation);
  if (given.size() == graph.ids.size()) return;
  throw Error(ErrorCode::invalid_argument, std::string(operation) + ": weights: there are " +
                                               std::to_string(given.size()) + " for " +
                                               std::to_string(graph.ids.size()) + " neighbors");
}

}  // namespace vicinal

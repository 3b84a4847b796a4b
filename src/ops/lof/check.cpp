// See lof_check.hpp; and the names of the options.
#include "ops/lof/check.hpp"

#include <fmt/core.h>

#include <array>
#include <cmath>

#include "core/names.hpp"
#include "core/parallel.hpp"
#include "formulas/lof/outlier.hpp"
#include "ops/common/refuse.hpp"

namespace vicinal {
namespace {

constexpr std::array<core::Named<OutlierScore>, 9> kScores = {{
    {OutlierScore::lof, "lof"},
    {OutlierScore::simplified_lof, "simplified_lof"},
    {OutlierScore::knn, "knn"},
    {OutlierScore::knn_weighted, "knn_weighted"},
    {OutlierScore::loop, "loop"},
    {OutlierScore::ldof, "ldof"},
    {OutlierScore::inflo, "inflo"},
    {OutlierScore::cof, "cof"},
    {OutlierScore::cof_pyod, "cof_pyod"},
}};
constexpr std::array<core::Named<Duplicates>, 5> kDuplicates = {{
    {Duplicates::sklearn, "sklearn"},
    {Duplicates::infinite, "inf"},
    {Duplicates::one, "one"},
    {Duplicates::distinct, "distinct"},
    {Duplicates::cap, "cap"},
}};
constexpr std::array<core::Named<Ties>, 2> kTies = {{{Ties::cut, "cut"}, {Ties::all, "all"}}};
constexpr std::array<core::Named<AcrossK>, 3> kAcross = {
    {{AcrossK::max, "max"}, {AcrossK::mean, "mean"}, {AcrossK::min, "min"}}};

/// Scores of neighborhoods that may hold other than k rows.
bool takes_places(OutlierScore score) {
  return !core::needs_table(score) && score != OutlierScore::inflo;
}

}  // namespace

std::string_view name_of(OutlierScore score) noexcept {
  return core::name_in(kScores, score);
}
std::string_view name_of(Duplicates duplicates) noexcept {
  return core::name_in(kDuplicates, duplicates);
}
std::string_view name_of(Ties ties) noexcept {
  return core::name_in(kTies, ties);
}
std::string_view name_of(AcrossK across) noexcept {
  return core::name_in(kAcross, across);
}
OutlierScore outlier_score_from(std::string_view name) {
  return core::value_in(kScores, "score", name);
}
Duplicates duplicates_from(std::string_view name) {
  return core::value_in(kDuplicates, "policy for duplicates", name);
}
Ties ties_from(std::string_view name) {
  return core::value_in(kTies, "policy for ties", name);
}
AcrossK across_k_from(std::string_view name) {
  return core::value_in(kAcross, "way to join the scores of a range", name);
}

namespace ops {

void check_lof_k(const LofOptions& options, std::int64_t n) {
  if (options.k < 1) refuse(fmt::format("k: is {}, must be at least 1", options.k));
  if (options.k_to != 0 && options.k_to <= options.k) {
    refuse(fmt::format("k_to: is {}, must be above k, which is {}, or 0 for no range", options.k_to, options.k));
  }
  if (longest_k(options) > n - 1) {
    refuse(fmt::format("{}: is {}, but at most {} of the {} table rows can be neighbors; a row is not its own neighbor",
                       options.k_to > 0 ? "k_to" : "k", longest_k(options), n - 1, n));
  }
  if (options.score == OutlierScore::ldof && options.k < 2) refuse("k: ldof needs at least 2");
}

void check_lof_options(const LofOptions& options) {
  const std::string score(name_of(options.score));
  if (options.k_to != 0) {
    if (options.score != OutlierScore::lof) refuse("k_to: a range of k is of the score lof, not of " + score);
    if (uses_places(options)) refuse("k_to: a range of k goes neither with duplicates distinct nor with all ties");
  }
  if (options.novelty && options.score == OutlierScore::inflo) {
    refuse("novelty: inflo looks from both sides, and scores no other rows");
  }
  if (uses_places(options) && !takes_places(options.score)) {
    refuse((options.ties == Ties::all ? "ties: all does" : "duplicates: distinct does") +
           std::string(" not go with the score ") + score + ", which is made of k rows");
  }
  if (options.score == OutlierScore::loop && !(options.lambda > 0 && std::isfinite(options.lambda))) {
    refuse(fmt::format("lambda: is {}, must be above 0 and finite", options.lambda));
  }
  if (!(options.contamination >= 0 && options.contamination <= 0.5)) {
    refuse(fmt::format("contamination: is {}, must be in (0, 0.5], or 0 for the score's own threshold",
                       options.contamination));
  }
  if (options.metric == Metric::inner_product) {
    refuse("metric: inner_product gives distances below 0, of which no score can be made");
  }
}

void check_lof_graph(const Context& ctx, const NeighborGraph& graph, const LofOptions& options) {
  const std::int64_t n = graph.rows;
  if (n < 1 || graph.table_rows != n) {
    refuse(
        fmt::format("graph: joins {} rows with {} table rows; lof takes that of a table within itself, and novelty "
                    "scores other rows",
                    n, graph.table_rows));
  }
  check_lof_lists(ctx, graph, 0, n, options);
}

void check_lof_lists(const Context& ctx, const NeighborGraph& graph, std::int64_t first_row, std::int64_t n,
                     const LofOptions& options) {
  const std::int64_t rows = graph.rows;
  const auto entries = static_cast<std::int64_t>(graph.ids.size());
  if (graph.distances.size() != graph.ids.size()) {
    refuse(fmt::format("graph: has {} ids, but {} distances", entries, graph.distances.size()));
  }
  if (graph.is_csr()) {
    const auto& offsets = graph.offsets;
    if (static_cast<std::int64_t>(offsets.size()) != rows + 1 || offsets.front() != 0 || offsets.back() != entries) {
      refuse(fmt::format("graph: its offsets do not lead from 0 to its {} ids in {} steps", entries, rows));
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t begin = offsets[static_cast<std::size_t>(i)];
      const std::int64_t end = offsets[static_cast<std::size_t>(i) + 1];
      if (begin < 0 || end < begin || end > entries) {
        refuse(fmt::format("graph: its offsets do not ascend at row {}", first_row + i));
      }
      if (begin == end) {
        throw Error(ErrorCode::bad_data,
                    fmt::format("graph: row {} has no neighbor, so that it has no score", first_row + i));
      }
      if (options.score == OutlierScore::ldof && end - begin < 2) {
        throw Error(ErrorCode::bad_data,
                    fmt::format("graph: row {} has one neighbor, but ldof needs two", first_row + i));
      }
    }
  } else {
    if (entries / rows != graph.k || entries % rows != 0) {
      refuse(fmt::format("graph: has {} ids, but {} rows of {}", entries, rows, graph.k));
    }
    check_lof_k(options, n);
    if (graph.k < longest_k(options)) {
      refuse(fmt::format("{}: is {}, but the graph has {} neighbors a row", options.k_to > 0 ? "k_to" : "k",
                         longest_k(options), graph.k));
    }
  }
  constexpr std::int64_t kRows = 4096;
  core::parallel_for(ctx, (rows + kRows - 1) / kRows, [&](std::int64_t task, int /*worker*/) {
    for (std::int64_t row = task * kRows; row < std::min(rows, (task + 1) * kRows); ++row) {
      const auto ids = graph.ids_of(row);
      const auto distances = graph.distances_of(row);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] < 0 || ids[i] >= n || ids[i] == first_row + row) {
          throw Error(ErrorCode::bad_data,
                      fmt::format("graph: row {} has the neighbor {}, which is {}", first_row + row, ids[i],
                                  ids[i] == first_row + row ? "itself" : "no row of the table"));
        }
        const double before = i > 0 ? distances[i - 1] : 0;
        if (!(distances[i] >= before && std::isfinite(distances[i]))) {
          throw Error(ErrorCode::bad_data,
                      fmt::format("graph: row {} has a neighbor at distance {}, after one at {}; distances are finite, "
                                  "not below 0, and ascend",
                                  first_row + row, distances[i], before));
        }
      }
    }
  });
}

void check_lof_shards(const LofOptions& options) {
  const std::string name(name_of(options.score));
  if (core::needs_table(options.score)) {
    refuse("score: " + name + " is made of distances between neighbors, which lie on several ranks");
  }
  if (options.score == OutlierScore::inflo) {
    refuse("score: inflo looks at the rows that have a row as a neighbor, which lie on several ranks");
  }
  if (options.ties == Ties::all) refuse("ties: all needs the table, whose rows lie on several ranks");
  if (options.duplicates == Duplicates::distinct) {
    refuse("duplicates: distinct needs the table, whose rows lie on several ranks");
  }
}

void check_places(const TableView& table) {
  if (table.memory() != Memory::cuda && !table.is_block_source()) return;
  refuse("table: duplicates distinct and all ties need it in host memory");
}

void check_lof_model(const Lof& model, std::int64_t n) {
  if (!model.options.novelty) refuse("model: was made without novelty, and knows no densities");
  check_lof_options(model.options);
  check_lof_k(model.options, n);
  const auto ks = static_cast<std::size_t>(longest_k(model.options) - model.options.k + 1);
  const bool compares = core::compares_neighbors(model.options.score);
  if (model.k_distances.size() != static_cast<std::size_t>(n) * ks ||
      model.densities.size() != (compares ? model.k_distances.size() : 0)) {
    refuse(fmt::format("model: has {} k-distances and {} densities, which are not those of {} rows",
                       model.k_distances.size(), model.densities.size(), n));
  }
  if (model.options.duplicates == Duplicates::cap && core::has_densities(model.options.score) &&
      model.caps.size() != ks) {
    refuse(fmt::format("model: has {} caps of its densities instead of {}", model.caps.size(), ks));
  }
}

}  // namespace ops
}  // namespace vicinal

// symmetrize and with_self (contract clause 25). Lists are turned around once, by counting: row j gets those that list
// it, in ascending order. Then each row merges its own list and that one, by id, first to count and then to fill.
#include "vicinal/symmetrize.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/names.hpp"
#include "core/order.hpp"
#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"

namespace vicinal {
namespace {

constexpr std::array<core::Named<Symmetry>, 2> kSymmetries = {
    {{Symmetry::either, "union"}, {Symmetry::mutual, "mutual"}}};
constexpr std::int64_t kTaskNeighbors = 16384;  // of one task of a thread, about
constexpr std::uint64_t kBytesPerNeighbor = sizeof(std::int64_t) + sizeof(double);

void check_within_itself(const NeighborGraph& graph, const std::string& operation) {
  check_graph(graph, operation);
  if (graph.rows == graph.table_rows) return;
  refuse(operation + ": the graph has " + std::to_string(graph.rows) + " rows among " +
         std::to_string(graph.table_rows) + ", must be of a table within itself");
}

std::uint64_t offsets_bytes(std::int64_t rows) {
  return (static_cast<std::uint64_t>(rows) + 1) * sizeof(std::int64_t);
}

/// An empty graph like another.
NeighborGraph like(const NeighborGraph& graph) {
  NeighborGraph made;
  made.rows = graph.rows;
  made.table_rows = graph.table_rows;
  made.metric = graph.metric;
  made.p = graph.p;
  made.plan = graph.plan;
  made.stats = graph.stats;
  return made;
}

/// Who lists each row.
struct Turned {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> ids;
  std::vector<double> distances;

  Turned(core::Poll& poll, const NeighborGraph& graph) {
    offsets.assign(static_cast<std::size_t>(graph.rows) + 1, 0);
    for (std::int64_t row = 0; row < graph.rows; ++row) {
      const auto to = graph.ids_of(row);
      const auto distance = graph.distances_of(row);
      for (std::size_t at = 0; at < to.size(); ++at) {
        poll.step();
        if (to[at] < 0 || to[at] >= graph.rows) {
          refuse("symmetrize: row " + std::to_string(row) + " of the graph lists " + std::to_string(to[at]) +
                 ", which is none of its " + std::to_string(graph.rows) + " rows");
        }
        if (std::isnan(distance[at])) {
          throw Error(ErrorCode::bad_data,
                      "symmetrize: row " + std::to_string(row) + " of the graph has a distance that is NaN");
        }
        ++offsets[static_cast<std::size_t>(to[at])];
      }
    }
    // Each offset is where the list ends, and moves down to where it begins as it is filled from its end.
    for (std::size_t row = 1; row < offsets.size(); ++row) offsets[row] += offsets[row - 1];
    ids.resize(graph.ids.size());
    distances.resize(graph.ids.size());
    for (std::int64_t row = graph.rows; row-- > 0;) {
      const auto to = graph.ids_of(row);
      const auto distance = graph.distances_of(row);
      for (std::size_t at = 0; at < to.size(); ++at) {
        poll.step();
        const auto place = static_cast<std::size_t>(--offsets[static_cast<std::size_t>(to[at])]);
        ids[place] = row;
        distances[place] = distance[at];
      }
    }
  }
  [[nodiscard]] std::size_t size_of(std::int64_t row) const noexcept {
    const auto at = static_cast<std::size_t>(row);
    return static_cast<std::size_t>(offsets[at + 1] - offsets[at]);
  }
};

struct Listed {
  std::int64_t id;
  double distance;
  bool by_the_other;  ///< the other row lists this one
};

/// What row `row` is to list, in `found`, whose memory is used again.
void merge(const NeighborGraph& graph, const Turned& turned, std::int64_t row, Symmetry symmetry,
           std::vector<Listed>& found) {
  const auto own = graph.ids_of(row);
  const auto own_distances = graph.distances_of(row);
  const std::size_t others = turned.size_of(row);
  if (own.size() + others > found.capacity()) {
    std::vector<Listed>().swap(found);
    found.reserve(own.size() + others);
  }
  found.clear();
  for (std::size_t at = 0; at < own.size(); ++at) found.push_back({own[at], own_distances[at], false});
  for (std::size_t at = 0; at < others; ++at) {
    const std::size_t place = static_cast<std::size_t>(turned.offsets[static_cast<std::size_t>(row)]) + at;
    found.push_back({turned.ids[place], turned.distances[place], true});
  }
  std::sort(found.begin(), found.end(), [](const Listed& a, const Listed& b) {
    if (a.id != b.id) return a.id < b.id;
    return a.by_the_other != b.by_the_other ? b.by_the_other : a.distance < b.distance;
  });
  std::size_t kept = 0;
  for (std::size_t begin = 0; begin < found.size();) {
    std::size_t end = begin;
    double distance = found[begin].distance;
    for (; end < found.size() && found[end].id == found[begin].id; ++end) {
      distance = std::min(distance, found[end].distance);
    }
    const bool both = !found[begin].by_the_other && found[end - 1].by_the_other;
    if (both || symmetry == Symmetry::either) found[kept++] = {found[begin].id, distance, false};
    begin = end;
  }
  found.resize(kept);
}

/// Rows of one task: body(row, worker).
template <class Body>
void for_each_row_of(const Context& ctx, const NeighborGraph& graph, const Body& body) {
  const auto neighbors = static_cast<std::int64_t>(graph.ids.size());
  const std::int64_t per_row = std::max<std::int64_t>(1, neighbors / std::max<std::int64_t>(1, graph.rows));
  const std::int64_t block = std::max<std::int64_t>(1, kTaskNeighbors / per_row);
  core::parallel_for(ctx, (graph.rows + block - 1) / block, [&](std::int64_t task, int worker) {
    for (std::int64_t row = task * block; row < std::min(graph.rows, (task + 1) * block); ++row) body(row, worker);
  });
}

}  // namespace

std::string_view name_of(Symmetry symmetry) noexcept {
  return core::name_in(kSymmetries, symmetry);
}
Symmetry symmetry_from(std::string_view name) {
  return core::value_in(kSymmetries, "symmetry", name);
}

std::uint64_t symmetrize_bytes(const Context& ctx, std::int64_t rows, std::int64_t neighbors, Symmetry symmetry) try {
  const core::Entry entry;
  if (rows < 0 || neighbors < 0) {
    refuse("rows and neighbors: are " + std::to_string(rows) + " and " + std::to_string(neighbors) +
           ", must be at least 0");
  }
  const auto e = static_cast<long double>(neighbors);
  const auto n = static_cast<long double>(rows);
  // Lists that are merged: at most one of all rows and of a list as long for each thread, and never more than all.
  const long double merged = std::min(2 * e, static_cast<long double>(ctx.threads()) * std::min(2 * e, n + e));
  const long double bytes = kBytesPerNeighbor * e * (symmetry == Symmetry::either ? 3 : 2) + sizeof(Listed) * merged +
                            2 * sizeof(std::int64_t) * (n + 1);
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  return bytes < 0x1p63L ? static_cast<std::uint64_t>(bytes) : kMost;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph symmetrize(const Context& ctx, const NeighborGraph& graph, Symmetry symmetry) try {
  const core::Entry entry;
  check_within_itself(graph, "symmetrize");
  core::require_memory(ctx, symmetrize_bytes(ctx, graph.rows, static_cast<std::int64_t>(graph.ids.size()), symmetry),
                       "symmetrize");
  core::Poll poll(ctx);
  const Turned turned(poll, graph);
  std::vector<std::vector<Listed>> rooms(static_cast<std::size_t>(ctx.threads()));
  NeighborGraph made = like(graph);
  made.offsets.assign(static_cast<std::size_t>(graph.rows) + 1, 0);
  for_each_row_of(ctx, graph, [&](std::int64_t row, int worker) {
    std::vector<Listed>& found = rooms[static_cast<std::size_t>(worker)];
    merge(graph, turned, row, symmetry, found);
    made.offsets[static_cast<std::size_t>(row) + 1] = static_cast<std::int64_t>(found.size());
  });
  for (std::size_t row = 1; row < made.offsets.size(); ++row) made.offsets[row] += made.offsets[row - 1];
  made.ids.resize(static_cast<std::size_t>(made.offsets.back()));
  made.distances.resize(made.ids.size());
  for_each_row_of(ctx, graph, [&](std::int64_t row, int worker) {
    std::vector<Listed>& found = rooms[static_cast<std::size_t>(worker)];
    merge(graph, turned, row, symmetry, found);
    std::sort(found.begin(), found.end(),
              [](const Listed& a, const Listed& b) { return core::nearer(a.distance, a.id, b.distance, b.id); });
    auto place = static_cast<std::size_t>(made.offsets[static_cast<std::size_t>(row)]);
    for (const Listed& one : found) {
      made.ids[place] = one.id;
      made.distances[place++] = one.distance;
    }
  });
  return made;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph with_self(const Context& ctx, const NeighborGraph& graph) try {
  const core::Entry entry;
  check_within_itself(graph, "with_self");
  if (graph.metric == Metric::inner_product) {
    refuse("with_self: by inner_product a row is not its own nearest, and its distance to itself is not 0");
  }
  const std::size_t size = graph.ids.size() + static_cast<std::size_t>(graph.rows);
  core::require_memory(ctx, size * kBytesPerNeighbor + (graph.is_csr() ? offsets_bytes(graph.rows) : 0), "with_self");
  NeighborGraph made = like(graph);
  made.k = graph.is_csr() ? 0 : graph.k + 1;
  made.ids.reserve(size);
  made.distances.reserve(size);
  core::Poll poll(ctx);
  for (std::int64_t row = 0; row < graph.rows; ++row) {
    made.ids.push_back(row);
    made.distances.push_back(0);
    for (const std::int64_t id : graph.ids_of(row)) {
      poll.step();
      if (id == row) refuse("with_self: row " + std::to_string(row) + " of the graph lists itself already");
      made.ids.push_back(id);
    }
    const auto distances = graph.distances_of(row);
    made.distances.insert(made.distances.end(), distances.begin(), distances.end());
  }
  made.offsets = graph.offsets;
  for (std::size_t row = 0; row < made.offsets.size(); ++row) made.offsets[row] += static_cast<std::int64_t>(row);
  return made;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

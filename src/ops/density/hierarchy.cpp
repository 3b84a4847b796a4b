// See hierarchy.hpp. Edges in ascending order are the merges of single linkage; taken from the last one down, each
// merge is within a cluster, which its two parts leave or stay in or divide. O(n log n) time, O(n) memory.
#include "ops/density/hierarchy.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/exact_sum.hpp"
#include "core/infinity.hpp"
#include "core/poll.hpp"
#include "ops/common/refuse.hpp"

namespace vicinal::ops {
namespace {

/// The merges of single linkage. A node is a row, 0 to n - 1, or n plus the number of a merge.
struct Merges {
  std::int64_t n;
  std::vector<std::int64_t> first;   ///< [n - 1] the part that has the smallest row
  std::vector<std::int64_t> second;  ///< [n - 1]
  std::vector<std::int64_t> sizes;   ///< [n - 1] rows of both

  Merges(core::Poll& poll, const SpanningTree& tree) : n(tree.rows) {
    const auto rows = static_cast<std::size_t>(n);
    std::vector<std::int64_t> parent(rows);  // of union-find, whose roots are the smallest rows
    std::vector<std::int64_t> node(rows);    // of the component of each root
    for (std::size_t row = 0; row < rows; ++row) parent[row] = node[row] = static_cast<std::int64_t>(row);
    const auto root_of = [&](std::int64_t row) {
      while (parent[static_cast<std::size_t>(row)] != row) {
        std::int64_t& above = parent[static_cast<std::size_t>(row)];
        above = parent[static_cast<std::size_t>(above)];
        row = above;
      }
      return row;
    };
    for (std::vector<std::int64_t>* of_merges : {&first, &second, &sizes}) of_merges->reserve(tree.a.size());
    for (std::size_t edge = 0; edge < tree.a.size(); ++edge) {
      poll.step();
      std::int64_t a = root_of(tree.a[edge]);
      std::int64_t b = root_of(tree.b[edge]);
      if (a == b) refuse("tree: edge " + std::to_string(edge) + " closes a cycle");
      if (b < a) std::swap(a, b);
      first.push_back(node[static_cast<std::size_t>(a)]);
      second.push_back(node[static_cast<std::size_t>(b)]);
      sizes.push_back(size_of(first.back()) + size_of(second.back()));
      parent[static_cast<std::size_t>(b)] = a;
      node[static_cast<std::size_t>(a)] = n + static_cast<std::int64_t>(edge);
    }
  }
  [[nodiscard]] std::int64_t size_of(std::int64_t of_node) const {
    return of_node < n ? 1 : sizes[static_cast<std::size_t>(of_node - n)];
  }
};

/// Where a node is: within a cluster, or having left it.
struct Whereabouts {
  std::int64_t cluster = 0;
  double left_at = -1;  ///< below 0: it is within
};

/// What (leaving - birth) * size adds to a stability; equal lambdas, also infinite ones, add nothing.
double mass_of(double leaving, double birth, std::int64_t size) {
  return leaving == birth ? 0 : (leaving - birth) * static_cast<double>(size);
}

/// One cluster after the other, so that one exact sum is enough.
void add_stabilities(core::Poll& poll, CondensedTree& tree) {
  const std::size_t clusters = tree.parents.size();
  std::vector<std::int64_t> offsets(clusters + 1, 0);
  for (const std::int64_t cluster : tree.row_clusters) ++offsets[static_cast<std::size_t>(cluster) + 1];
  for (std::size_t cluster = 0; cluster < clusters; ++cluster) offsets[cluster + 1] += offsets[cluster];
  std::vector<std::int64_t> rows(tree.row_clusters.size());
  for (std::size_t row = rows.size(); row-- > 0;) {
    poll.step();
    rows[static_cast<std::size_t>(--offsets[static_cast<std::size_t>(tree.row_clusters[row]) + 1])] =
        static_cast<std::int64_t>(row);
  }
  // Each offset has moved down to where the rows of the cluster before it begin.
  offsets.push_back(static_cast<std::int64_t>(rows.size()));
  const std::vector<std::int64_t> children = first_children(tree);
  for (std::size_t cluster = 0; cluster < clusters; ++cluster) {
    core::ExactSum sum;
    bool is_infinite = false;
    const auto leave = [&](double distance, std::int64_t size) {
      const double mass = mass_of(lambda_of(distance), lambda_of(tree.births[cluster]), size);
      is_infinite = is_infinite || std::isinf(mass);
      if (!std::isinf(mass)) sum.add(mass);
    };
    for (std::int64_t at = offsets[cluster + 1]; at < offsets[cluster + 2]; ++at) {
      poll.step();
      leave(tree.row_distances[static_cast<std::size_t>(rows[static_cast<std::size_t>(at)])], 1);
    }
    if (const std::int64_t child = children[cluster]; child >= 0) {
      for (std::size_t of = static_cast<std::size_t>(child); of < static_cast<std::size_t>(child) + 2; ++of) {
        leave(tree.births[of], tree.sizes[of]);
      }
    }
    tree.stabilities.push_back(is_infinite ? kInfinity : sum.rounded());
  }
}

}  // namespace

void check_tree(const Context& ctx, const SpanningTree& tree) {
  const std::size_t edges = tree.a.size();
  if (tree.rows < 1 || static_cast<std::int64_t>(edges) != tree.rows - 1 || tree.b.size() != edges ||
      tree.lengths.size() != edges) {
    refuse("tree: " + std::to_string(edges) + " edges, " + std::to_string(tree.b.size()) + " ends and " +
           std::to_string(tree.lengths.size()) + " lengths are no spanning tree of " + std::to_string(tree.rows) +
           " rows");
  }
  core::Poll poll(ctx);
  for (std::size_t edge = 0; edge < edges; ++edge) {
    poll.step();
    const bool is_within =
        tree.a[edge] >= 0 && tree.b[edge] >= 0 && tree.a[edge] < tree.rows && tree.b[edge] < tree.rows;
    if (!is_within) refuse("tree: edge " + std::to_string(edge) + " has an end that is no row of the table");
    const bool ascends = edge == 0 || tree.lengths[edge] >= tree.lengths[edge - 1];
    if (!(tree.lengths[edge] >= 0) || std::isinf(tree.lengths[edge]) || !ascends) {
      refuse("tree: the lengths must be finite, at least 0 and ascending, but that of edge " + std::to_string(edge) +
             " is " + std::to_string(tree.lengths[edge]));
    }
  }
}

std::vector<std::int64_t> first_children(const CondensedTree& tree) {
  std::vector<std::int64_t> children(tree.parents.size(), -1);
  for (std::size_t cluster = tree.parents.size(); cluster-- > 1;) {
    children[static_cast<std::size_t>(tree.parents[cluster])] = static_cast<std::int64_t>(cluster);
  }
  return children;
}

std::vector<double> deaths_of(core::Poll& poll, const CondensedTree& tree) {
  std::vector<double> deaths(tree.parents.size(), 0);
  for (std::size_t row = 0; row < tree.row_clusters.size(); ++row) {
    poll.step();
    double& death = deaths[static_cast<std::size_t>(tree.row_clusters[row])];
    death = std::max(death, lambda_of(tree.row_distances[row]));
  }
  for (std::size_t cluster = 1; cluster < deaths.size(); ++cluster) {
    double& death = deaths[static_cast<std::size_t>(tree.parents[cluster])];
    death = std::max(death, lambda_of(tree.births[cluster]));
  }
  return deaths;
}

double lambda_of(double distance) noexcept {
  return distance > 0 ? 1 / distance : kInfinity;
}

CondensedTree condense(const Context& ctx, const SpanningTree& tree, std::int64_t min_cluster_size) {
  core::Poll poll(ctx);
  const std::int64_t n = tree.rows;
  const Merges merges(poll, tree);
  CondensedTree made;
  const auto add_cluster = [&](std::int64_t parent, double birth, std::int64_t size) {
    made.parents.push_back(parent);
    made.births.push_back(birth);
    made.sizes.push_back(size);
    return static_cast<std::int64_t>(made.parents.size()) - 1;
  };
  add_cluster(-1, kInfinity, n);
  made.row_clusters.assign(static_cast<std::size_t>(n), 0);
  made.row_distances.assign(static_cast<std::size_t>(n), kInfinity);
  std::vector<Whereabouts> places(static_cast<std::size_t>(n - 1));  // of merges
  const auto put = [&](std::int64_t node, const Whereabouts& place) {
    poll.step();
    if (node >= n) {
      places[static_cast<std::size_t>(node - n)] = place;
      return;
    }
    made.row_clusters[static_cast<std::size_t>(node)] = place.cluster;
    made.row_distances[static_cast<std::size_t>(node)] = place.left_at;
  };
  for (std::int64_t merge = n - 2; merge >= 0; --merge) {
    const auto at = static_cast<std::size_t>(merge);
    const Whereabouts place = places[at];
    const std::int64_t parts[2] = {merges.first[at], merges.second[at]};
    const double length = tree.lengths[at];
    const bool is_large[2] = {merges.size_of(parts[0]) >= min_cluster_size,
                              merges.size_of(parts[1]) >= min_cluster_size};
    for (int part = 0; part < 2; ++part) {
      if (place.left_at < 0 && !is_large[part]) {
        put(parts[part], {place.cluster, length});
      } else if (place.left_at < 0 && is_large[1 - part]) {
        const std::int64_t size = merges.size_of(parts[part]);
        put(parts[part], {add_cluster(place.cluster, length, size), -1});
      } else {
        put(parts[part], place);
      }
    }
  }
  add_stabilities(poll, made);
  made.labels.assign(made.parents.size(), -1);
  return made;
}

std::uint64_t condense_bytes(std::int64_t n, std::int64_t min_cluster_size) {
  const auto rows = static_cast<std::uint64_t>(n);
  // Each division takes min_cluster_size rows at least for each of its clusters.
  const std::uint64_t clusters = 2 * rows / static_cast<std::uint64_t>(std::max<std::int64_t>(min_cluster_size, 1)) + 1;
  return rows * (8 * sizeof(std::int64_t) + sizeof(Whereabouts)) + clusters * 2 * 7 * sizeof(double);
}

}  // namespace vicinal::ops

// See potts.hpp.
#include "ops/graph/potts.hpp"

#include <numeric>
#include <utility>

namespace vicinal::ops {
namespace {

constexpr int kMaxPasses = 64;         // over all nodes; a few do, unless rounding goes in circles
constexpr std::int64_t kNodes = 1024;  // between two looks at the cancel token

/// Weights between one node and the communities around it.
class Around {
 public:
  explicit Around(std::int64_t communities)
      : weights_(static_cast<std::size_t>(communities)), is_met_(weights_.size()) {}

  void add(std::int64_t community, double weight) {
    const auto c = static_cast<std::size_t>(community);
    if (!is_met_[c]) met_.push_back(community);
    is_met_[c] = true;
    weights_[c] += weight;
  }
  [[nodiscard]] double weight(std::int64_t community) const { return weights_[static_cast<std::size_t>(community)]; }
  [[nodiscard]] const std::vector<std::int64_t>& met() const { return met_; }
  void clear() {
    for (const std::int64_t community : met_) {
      weights_[static_cast<std::size_t>(community)] = 0;
      is_met_[static_cast<std::size_t>(community)] = false;
    }
    met_.clear();
  }

 private:
  std::vector<double> weights_;
  std::vector<bool> is_met_;
  std::vector<std::int64_t> met_;
};

/// Moves nodes until none wants to. Returns whether any has moved.
bool move_nodes(const Context& ctx, const WeightedGraph& graph, double resolution,
                std::vector<std::int64_t>& community) {
  std::vector<std::int64_t> sizes = graph.sizes;  // of communities, which are the nodes at first
  Around around(graph.nodes());
  bool any = false;
  bool moved = true;
  for (int pass = 0; moved && pass < kMaxPasses; ++pass) {
    moved = false;
    for (std::int64_t v = 0; v < graph.nodes(); ++v) {
      if (v % kNodes == 0) ctx.check_cancelled();
      const auto node = static_cast<std::size_t>(v);
      for (std::int64_t i = graph.offsets[node]; i < graph.offsets[node + 1]; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (graph.neighbors[at] != v) {
          around.add(community[static_cast<std::size_t>(graph.neighbors[at])], graph.weights[at]);
        }
      }
      const std::int64_t own = community[node];
      sizes[static_cast<std::size_t>(own)] -= graph.sizes[node];
      const auto gain = [&](std::int64_t c) {
        return around.weight(c) - resolution * static_cast<double>(graph.sizes[node]) *
                                      static_cast<double>(sizes[static_cast<std::size_t>(c)]);
      };
      std::int64_t best = own;
      double most = gain(own);
      for (const std::int64_t c : around.met()) {
        const double offered = gain(c);
        if (offered > most || (offered == most && best != own && c < best)) {
          best = c;
          most = offered;
        }
      }
      sizes[static_cast<std::size_t>(best)] += graph.sizes[node];
      moved = moved || best != own;
      community[node] = best;
      around.clear();
    }
    any = any || moved;
  }
  return any;
}

/// Numbers from 0 by first appearance. Returns how many.
std::int64_t renumber(std::vector<std::int64_t>& numbers) {
  std::vector<std::int64_t> place(numbers.size(), -1);
  std::int64_t count = 0;
  for (std::int64_t& number : numbers) {
    std::int64_t& at = place[static_cast<std::size_t>(number)];
    if (at < 0) at = count++;
    number = at;
  }
  return count;
}

/// The graph whose nodes are the communities.
WeightedGraph contracted(const Context& ctx, const WeightedGraph& graph, const std::vector<std::int64_t>& community,
                         std::int64_t count) {
  // The nodes of each community in ascending order: sorted by counting.
  std::vector<std::int64_t> begin(static_cast<std::size_t>(count) + 1, 0);
  for (const std::int64_t c : community) ++begin[static_cast<std::size_t>(c) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::int64_t> nodes(community.size());
  std::vector<std::int64_t> next(begin.begin(), begin.end() - 1);
  for (std::int64_t v = 0; v < graph.nodes(); ++v) {
    if (v % kNodes == 0) ctx.check_cancelled();
    nodes[static_cast<std::size_t>(next[static_cast<std::size_t>(community[static_cast<std::size_t>(v)])]++)] = v;
  }
  WeightedGraph small;
  small.offsets.push_back(0);
  Around around(count);
  for (std::int64_t c = 0; c < count; ++c) {
    std::int64_t size = 0;
    for (std::int64_t k = begin[static_cast<std::size_t>(c)]; k < begin[static_cast<std::size_t>(c) + 1]; ++k) {
      if (k % kNodes == 0) ctx.check_cancelled();
      const auto node = static_cast<std::size_t>(nodes[static_cast<std::size_t>(k)]);
      size += graph.sizes[node];
      for (std::int64_t i = graph.offsets[node]; i < graph.offsets[node + 1]; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::int64_t other = community[static_cast<std::size_t>(graph.neighbors[at])];
        if (other != c) around.add(other, graph.weights[at]);
      }
    }
    for (const std::int64_t other : around.met()) {
      small.neighbors.push_back(other);
      small.weights.push_back(around.weight(other));
    }
    around.clear();
    small.offsets.push_back(static_cast<std::int64_t>(small.neighbors.size()));
    small.sizes.push_back(size);
  }
  return small;
}

}  // namespace

std::vector<std::int64_t> potts_communities(const Context& ctx, WeightedGraph graph, double resolution) {
  std::vector<std::int64_t> found(static_cast<std::size_t>(graph.nodes()));
  for (std::size_t v = 0; v < found.size(); ++v) found[v] = static_cast<std::int64_t>(v);
  std::vector<std::int64_t> community = found;
  while (move_nodes(ctx, graph, resolution, community)) {
    const std::int64_t count = renumber(community);
    for (std::int64_t& one : found) one = community[static_cast<std::size_t>(one)];
    if (count == graph.nodes()) break;
    graph = contracted(ctx, graph, community, count);
    community.resize(static_cast<std::size_t>(count));
    for (std::size_t v = 0; v < community.size(); ++v) community[v] = static_cast<std::int64_t>(v);
  }
  renumber(found);
  return found;
}

}  // namespace vicinal::ops

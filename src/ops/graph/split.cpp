// split_groups: groups above a limit are divided where little weight joins them (contract clause 16). A list of parts
// to look at: one that is too large is divided by potts.cpp, the connected pieces of what that finds are looked at
// again. Groups go side by side, each worked on by one thread.
#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "backend/graph.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "ops/common/refuse.hpp"
#include "ops/graph/groups.hpp"
#include "ops/graph/plans.hpp"
#include "ops/graph/potts.hpp"
#include "vicinal/cocluster.hpp"

namespace vicinal {
namespace {

using Members = std::vector<std::int64_t>;

constexpr std::int64_t kPart = std::int64_t{1} << 16;  // members or edges between two looks at the cancel token

/// An edge of a group between places of its members.
struct Link {
  std::int64_t from;
  std::int64_t to;
  double weight;
};

/// Looks at the cancel token at every kPart-th step of a loop.
class Steps {
 public:
  explicit Steps(const Context& ctx) : ctx_(ctx) {}
  void operator()() {
    if (++taken_ % kPart == 0) ctx_.check_cancelled();
  }

 private:
  const Context& ctx_;
  std::int64_t taken_ = 0;
};

/// The graph of `size` nodes, links given more than once added up in their order: a counting sort by both ends, a link
/// and its reverse being i and links.size() + i.
ops::WeightedGraph graph_of(const Context& ctx, std::int64_t size, const std::vector<Link>& links) {
  const std::size_t m = links.size();
  const auto from = [&](std::size_t i) { return static_cast<std::size_t>(i < m ? links[i].from : links[i - m].to); };
  const auto to = [&](std::size_t i) { return static_cast<std::size_t>(i < m ? links[i].to : links[i - m].from); };
  Steps step(ctx);
  std::vector<std::int64_t> ends(static_cast<std::size_t>(size) + 1,
                                 0);  // of each node's links, of which both ways are
  for (std::size_t i = 0; i < 2 * m; ++i, step()) ++ends[from(i) + 1];
  for (std::size_t v = 1; v < ends.size(); ++v) ends[v] += ends[v - 1];
  const auto sorted = [&](const auto& at, const auto& key) {
    std::vector<std::size_t> places(2 * m);
    std::vector<std::int64_t> next(ends.begin(), ends.end() - 1);
    for (std::size_t i = 0; i < 2 * m; ++i, step()) places[static_cast<std::size_t>(next[key(at(i))]++)] = at(i);
    return places;
  };
  const std::vector<std::size_t> by_to = sorted([](std::size_t i) { return i; }, to);
  const std::vector<std::size_t> by_both = sorted([&](std::size_t i) { return by_to[i]; }, from);
  ops::WeightedGraph graph;
  graph.sizes.assign(static_cast<std::size_t>(size), 1);
  graph.offsets.assign(static_cast<std::size_t>(size) + 1, 0);
  for (std::size_t k = 0; k < 2 * m; ++k, step()) {
    const std::size_t i = by_both[k];
    const double weight = links[i < m ? i : i - m].weight;
    if (k > 0 && from(i) == from(by_both[k - 1]) && to(i) == to(by_both[k - 1])) {
      graph.weights.back() += weight;
      continue;
    }
    graph.neighbors.push_back(static_cast<std::int64_t>(to(i)));
    graph.weights.push_back(weight);
    ++graph.offsets[from(i) + 1];
  }
  for (std::size_t v = 1; v < graph.offsets.size(); ++v) graph.offsets[v] += graph.offsets[v - 1];
  return graph;
}

/// One group that is too large, its members by their places.
class Division {
 public:
  Division(const Context& ctx, const SplitOptions& options, ops::WeightedGraph graph)
      : ctx_(ctx),
        options_(options),
        graph_(std::move(graph)),
        part_(graph_.sizes.size(), 0),
        steps_(part_.size(), -1),
        place_(part_.size()) {}

  /// The part of each member, named by its smallest member.
  std::vector<std::int64_t> divide() {
    std::vector<Members> left = {everything()};
    while (!left.empty()) {
      const Members members = std::move(left.back());
      left.pop_back();
      for (const std::int64_t v : members) part_[static_cast<std::size_t>(v)] = members[0];
      if (is_too_large(members)) {
        for (Members& piece : pieces_of(members)) left.push_back(std::move(piece));
      }
    }
    return part_;
  }

 private:
  [[nodiscard]] Members everything() const {
    Members all(part_.size());
    for (std::size_t v = 0; v < all.size(); ++v) all[v] = static_cast<std::int64_t>(v);
    return all;
  }

  /// body(neighbor, weight) for those of v in the same part.
  template <class Body>
  void for_near(std::int64_t v, const Body& body) const {
    const auto node = static_cast<std::size_t>(v);
    for (std::int64_t i = graph_.offsets[node]; i < graph_.offsets[node + 1]; ++i) {
      const std::int64_t w = graph_.neighbors[static_cast<std::size_t>(i)];
      if (part_[static_cast<std::size_t>(w)] == part_[node]) body(w, graph_.weights[static_cast<std::size_t>(i)]);
    }
  }

  /// Steps of the longest of the shortest ways from v to the members of its part that it reaches, which are `met`.
  std::int64_t longest_walk(std::int64_t v, Members& met) {
    ctx_.check_cancelled();
    Steps step(ctx_);
    met = {v};
    steps_[static_cast<std::size_t>(v)] = 0;
    for (std::size_t next = 0; next < met.size(); ++next) {
      const std::int64_t steps = steps_[static_cast<std::size_t>(met[next])] + 1;
      for_near(met[next], [&](std::int64_t w, double /*weight*/) {
        step();
        if (steps_[static_cast<std::size_t>(w)] >= 0) return;
        steps_[static_cast<std::size_t>(w)] = steps;
        met.push_back(w);
      });
    }
    const std::int64_t longest = steps_[static_cast<std::size_t>(met.back())];
    for (const std::int64_t w : met) steps_[static_cast<std::size_t>(w)] = -1;
    return longest;
  }

  [[nodiscard]] bool is_too_large(const Members& members) {
    if (options_.max_members > 0 && std::ssize(members) > options_.max_members) return true;
    if (options_.max_steps == 0) return false;
    Members met;
    for (const std::int64_t v : members) {
      const std::int64_t longest = longest_walk(v, met);
      if (longest > options_.max_steps) return true;
      if (2 * longest <= options_.max_steps) return false;  // over v, no two members are further from each other
    }
    return false;
  }

  /// What the part consists of, at the first resolution that divides it, which one above its largest weight does.
  std::vector<Members> pieces_of(const Members& members) {
    for (std::size_t i = 0; i < members.size(); ++i)
      place_[static_cast<std::size_t>(members[i])] = static_cast<std::int64_t>(i);
    std::vector<Link> links;
    double largest = 0;
    Steps step(ctx_);
    for (const std::int64_t v : members) {
      for_near(v, [&](std::int64_t w, double weight) {
        step();
        if (v > w) return;
        links.push_back({place_[static_cast<std::size_t>(v)], place_[static_cast<std::size_t>(w)], weight});
        largest = std::max(largest, weight);
      });
    }
    // Scaled, so that no sum overflows and the density is well above 0.
    double sum = 0;
    for (Link& link : links) sum += link.weight = largest > 0 ? link.weight / largest : 1;
    const auto size = static_cast<double>(members.size());
    const ops::WeightedGraph graph = graph_of(ctx_, std::ssize(members), links);
    links = {};
    for (double resolution = sum / (size * (size - 1) / 2);; resolution *= 2) {
      const auto community = ops::potts_communities(ctx_, graph, resolution);
      Members first(members.size(), -1);  // of each community
      for (std::size_t i = 0; i < members.size(); ++i) {
        std::int64_t& named = first[static_cast<std::size_t>(community[i])];
        if (named < 0) named = members[i];
        part_[static_cast<std::size_t>(members[i])] = named;
      }
      std::vector<Members> pieces = connected(members);
      if (pieces.size() > 1) return pieces;
    }
  }

  /// Members of one part that are joined within it, ascending.
  std::vector<Members> connected(const Members& members) {
    for (const std::int64_t v : members) place_[static_cast<std::size_t>(v)] = -1;
    std::int64_t count = 0;
    Members met;
    for (const std::int64_t v : members) {
      if (place_[static_cast<std::size_t>(v)] >= 0) continue;
      longest_walk(v, met);
      for (const std::int64_t w : met) place_[static_cast<std::size_t>(w)] = count;
      ++count;
    }
    std::vector<Members> pieces(static_cast<std::size_t>(count));
    for (const std::int64_t v : members) {
      pieces[static_cast<std::size_t>(place_[static_cast<std::size_t>(v)])].push_back(v);
    }
    return pieces;
  }

  const Context& ctx_;
  const SplitOptions& options_;
  const ops::WeightedGraph graph_;
  std::vector<std::int64_t> part_;   // of each member
  std::vector<std::int64_t> steps_;  // of a walk; -1 between walks
  std::vector<std::int64_t> place_;  // of a member in the part that is being divided, then of its piece
};

/// Members and links of the groups that may be too large, by the place of the group in `wanted`.
struct Chosen {
  std::vector<std::size_t> wanted;       ///< places in Cocluster::groups
  std::vector<Members> members;          ///< of each, ascending
  std::vector<std::vector<Link>> links;  ///< of each
};

std::int64_t label_of(const Cocluster& found, std::int64_t v) {
  const auto n_a = std::ssize(found.labels_a);
  return v < n_a ? found.labels_a[static_cast<std::size_t>(v)] : found.labels_b[static_cast<std::size_t>(v - n_a)];
}

Chosen choose(const Context& ctx, const BipartiteEdges& edges, const Cocluster& found, const SplitOptions& options) {
  const std::int64_t members = edges.n_a() + edges.n_b();
  Chosen chosen;
  std::vector<std::int64_t> place(found.groups.size(), -1);
  for (std::size_t i = 0; i < place.size(); ++i) {
    const std::int64_t size = found.groups[i].count_a + found.groups[i].count_b;
    const bool may_be_long = options.max_steps > 0 && size > options.max_steps + 1;
    if (!may_be_long && (options.max_members == 0 || size <= options.max_members)) continue;
    place[i] = std::ssize(chosen.wanted);
    chosen.wanted.push_back(i);
  }
  chosen.members.resize(chosen.wanted.size());
  chosen.links.resize(chosen.wanted.size());
  if (chosen.wanted.empty()) return chosen;
  std::vector<std::int64_t> local(static_cast<std::size_t>(members));
  const auto place_of = [&](std::int64_t v) {
    return place[static_cast<std::size_t>(found.group_of(label_of(found, v)))];
  };
  for (std::int64_t v = 0; v < members; ++v) {
    if (v % kPart == 0) ctx.check_cancelled();
    const std::int64_t at = place_of(v);
    if (at < 0) continue;
    local[static_cast<std::size_t>(v)] = std::ssize(chosen.members[static_cast<std::size_t>(at)]);
    chosen.members[static_cast<std::size_t>(at)].push_back(v);
  }
  for (std::int64_t e = 0; e < edges.size(); ++e) {
    if (e % kPart == 0) ctx.check_cancelled();
    const std::int64_t at = place_of(edges.a(e));
    if (at < 0) continue;
    const double weight = edges.weights().empty() ? 1 : edges.weights()[static_cast<std::size_t>(e)];
    chosen.links[static_cast<std::size_t>(at)].push_back({local[static_cast<std::size_t>(edges.a(e))],
                                                          local[static_cast<std::size_t>(edges.n_a() + edges.b(e))],
                                                          weight});
  }
  return chosen;
}

void check_split(const Context& ctx, const BipartiteEdges& edges, const Cocluster& found, const SplitOptions& options) {
  if (options.max_members < 0) refuse(fmt::format("max_members: is {}, must be at least 0", options.max_members));
  if (options.max_steps < 0) refuse(fmt::format("max_steps: is {}, must be at least 0", options.max_steps));
  if (std::ssize(found.labels_a) != edges.n_a() || std::ssize(found.labels_b) != edges.n_b()) {
    refuse(fmt::format("found: has labels of {} and {} members, but the edges are of {} and {}", found.labels_a.size(),
                       found.labels_b.size(), edges.n_a(), edges.n_b()));
  }
  for (std::int64_t e = 0; e < edges.size(); ++e) {
    if (e % kPart == 0) ctx.check_cancelled();
    kernels::require_in_range(edges, e);
    if (label_of(found, edges.a(e)) == label_of(found, edges.n_a() + edges.b(e))) continue;
    refuse(fmt::format("found: edge {} joins two groups, so that these are of other edges", e));
  }
}

}  // namespace

std::uint64_t ops::split_bytes(const BipartiteEdges& edges) noexcept {
  // A copy of the result; and of the groups that are too large, which may be one, members, links at both ends and the
  // graph that they make, twice while it is divided.
  const auto members = static_cast<std::uint64_t>(edges.n_a() + edges.n_b());
  const auto links = static_cast<std::uint64_t>(edges.size());
  return members * 160 + links * (3 * sizeof(Link) + std::uint64_t{4} * 2 * 16);
}

CoclusterSplit split_groups(const Context& ctx, const BipartiteEdges& edges, const Cocluster& found,
                            const SplitOptions& options) try {
  const core::Entry entry;
  ops::check_weights(ctx, edges.weights());
  check_split(ctx, edges, found, options);
  core::require_memory(ctx, ops::split_bytes(edges), "split_groups");
  CoclusterSplit result{found, {}, 0};
  Chosen chosen = choose(ctx, edges, found, options);
  std::vector<std::uint8_t> is_split(chosen.wanted.size());
  core::parallel_for(ctx, std::ssize(chosen.wanted), [&](std::int64_t task, int /*worker*/) {
    const auto i = static_cast<std::size_t>(task);
    const Members& own = chosen.members[i];
    Division division(ctx, options, graph_of(ctx, std::ssize(own), std::exchange(chosen.links[i], {})));
    const std::vector<std::int64_t> part = division.divide();
    for (std::size_t v = 0; v < own.size(); ++v) {
      const std::int64_t label = own[static_cast<std::size_t>(part[v])];
      const bool in_a = own[v] < edges.n_a();
      (in_a ? result.parts.labels_a
            : result.parts.labels_b)[static_cast<std::size_t>(in_a ? own[v] : own[v] - edges.n_a())] = label;
      if (label != own[0]) is_split[i] = 1;
    }
  });
  result.split_groups = std::count(is_split.begin(), is_split.end(), 1);
  for (std::int64_t e = 0; e < edges.size(); ++e) {
    if (e % kPart == 0) ctx.check_cancelled();
    const std::int64_t b = edges.n_a() + edges.b(e);
    if (label_of(result.parts, edges.a(e)) != label_of(result.parts, b)) result.cut_edges.push_back(e);
  }
  ops::make_groups(ctx, result.parts);
  return result;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

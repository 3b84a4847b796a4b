// cocluster: check, plan, call the backend; then the groups that the labels make (contract clause 16).
#include "vicinal/cocluster.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "backend/backend.hpp"
#include "backend/graph.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/names.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/graph/groups.hpp"

namespace vicinal {
namespace {

constexpr std::array<core::Named<CoclusterMethod>, 5> kCoclusterMethods = {{
    {CoclusterMethod::components, "components"},
    {CoclusterMethod::closure, "closure"},
    {CoclusterMethod::product_serial, "product_serial"},
    {CoclusterMethod::product_global, "product_global"},
    {CoclusterMethod::product_tiled, "product_tiled"},
}};
constexpr std::array<core::Named<Relation>, 6> kRelations = {{
    {Relation::one_to_one, "1:1"},
    {Relation::one_to_many, "1:n"},
    {Relation::many_to_one, "n:1"},
    {Relation::many_to_many, "n:m"},
    {Relation::one_to_none, "1:0"},
    {Relation::none_to_one, "0:1"},
}};

constexpr std::int64_t kElements = std::int64_t{1} << 20;  // of a relation matrix that are widened at a time
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 128;  // bytes of any result fit 64 bits

void check_sizes(std::int64_t n_a, std::int64_t n_b) {
  if (n_a < 0 || n_a > kMost) refuse(fmt::format("n_a: is {}, must be between 0 and {}", n_a, kMost));
  if (n_b < 0 || n_b > kMost) refuse(fmt::format("n_b: is {}, must be between 0 and {}", n_b, kMost));
}

void check_lengths(std::size_t a, std::size_t b, std::size_t weights) {
  if (b != a) refuse(fmt::format("b: has {} ids, but a has {}", b, a));
  if (weights != 0 && weights != a) refuse(fmt::format("weights: are {}, but there are {} edges", weights, a));
}

/// Edges of a relation matrix, counted first.
struct RelationEdges {
  std::vector<std::int64_t> a;
  std::vector<std::int64_t> b;
};

template <class Body>
void for_each_edge(const Context& ctx, const TableView& relation, const Body& body) {
  const std::int64_t step = std::max<std::int64_t>(1, kElements / relation.cols());
  std::vector<double> rows(static_cast<std::size_t>(std::min(step, relation.rows()) * relation.cols()));
  for (std::int64_t begin = 0; begin < relation.rows(); begin += step) {
    ctx.check_cancelled();
    const std::int64_t end = std::min(relation.rows(), begin + step);
    core::widen_rows(relation, begin, end, rows.data());
    for (std::int64_t i = begin; i < end; ++i) {
      const double* const row = rows.data() + (i - begin) * relation.cols();
      for (std::int64_t j = 0; j < relation.cols(); ++j) {
        if (row[j] != 0) body(i, j, row[j]);
      }
    }
  }
}

RelationEdges edges_of(const Context& ctx, const TableView& relation) {
  std::int64_t count = 0;
  for_each_edge(ctx, relation, [&](std::int64_t i, std::int64_t j, double weight) {
    if (!ops::is_weight(weight)) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("relation: row {}, column {} is {}, must be finite and at least 0", i, j, weight));
    }
    ++count;
  });
  core::require_memory(ctx, static_cast<std::uint64_t>(count) * 2 * sizeof(std::int64_t), "cocluster: the edges");
  RelationEdges edges;
  edges.a.reserve(static_cast<std::size_t>(count));
  edges.b.reserve(static_cast<std::size_t>(count));
  for_each_edge(ctx, relation, [&](std::int64_t i, std::int64_t j, double /*weight*/) {
    edges.a.push_back(i);
    edges.b.push_back(j);
  });
  return edges;
}

}  // namespace

std::string_view name_of(CoclusterMethod method) noexcept {
  return core::name_in(kCoclusterMethods, method);
}
std::string_view name_of(Relation relation) noexcept {
  return core::name_in(kRelations, relation);
}
CoclusterMethod cocluster_method_from(std::string_view name) {
  return core::value_in(kCoclusterMethods, "method", name);
}

BipartiteEdges::BipartiteEdges(std::int64_t n_a, std::int64_t n_b, std::span<const std::int64_t> a,
                               std::span<const std::int64_t> b, std::span<const double> weights)
    : n_a_(n_a),
      n_b_(n_b),
      size_(static_cast<std::int64_t>(a.size())),
      a_(a.data()),
      b_(b.data()),
      weights_(weights),
      wide_(true) {
  check_sizes(n_a, n_b);
  check_lengths(a.size(), b.size(), weights.size());
}

// Only where ids lie is kept of them, and how wide they are.
BipartiteEdges::BipartiteEdges(std::int64_t n_a, std::int64_t n_b, std::span<const std::int32_t> a,
                               std::span<const std::int32_t> b, std::span<const double> weights)
    : BipartiteEdges(n_a, n_b, {static_cast<const std::int64_t*>(static_cast<const void*>(a.data())), a.size()},
                     {static_cast<const std::int64_t*>(static_cast<const void*>(b.data())), b.size()}, weights) {
  wide_ = false;
}

std::int64_t Cocluster::group_of(std::int64_t label) const {
  const auto at =
      std::lower_bound(groups.begin(), groups.end(), label,
                       [](const CoclusterGroup& group, std::int64_t wanted) { return group.label < wanted; });
  if (at == groups.end() || at->label != label) refuse(fmt::format("label: no group is called {}", label));
  return at - groups.begin();
}

CoclusterPlan plan_cocluster(const Context& ctx, const BipartiteEdges& edges, const CoclusterOptions& options) try {
  const core::Entry entry;
  if (core::name_in(kCoclusterMethods, options.method) == "unknown") refuse("method: is none that there is");
  CoclusterPlan plan;
  plan.method = options.method;
  plan.device = ctx.device();
  plan.threads = ctx.threads();
  const kernels::GraphTask task{&edges, options.method};
  if (task.members() == 0) return plan;
  const auto members = static_cast<std::uint64_t>(task.members());
  const kernels::MemoryNeed bytes = kernels::backend_of(ctx).graph().bytes(ctx, task);
  // Scratch is gone when the groups, of which there may be as many as members, are made.
  plan.memory = members * sizeof(std::int64_t) + std::max(bytes.host, members * sizeof(CoclusterGroup));
  plan.device_memory = bytes.device;
  return plan;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Cocluster cocluster(const Context& ctx, const BipartiteEdges& edges, const CoclusterOptions& options) try {
  const core::Entry entry;
  Cocluster found;
  found.plan = plan_cocluster(ctx, edges, options);
  core::require_memory(ctx, found.plan.memory, fmt::format("cocluster by {}", name_of(options.method)));
  ops::check_weights(ctx, edges.weights());
  const kernels::GraphTask task{&edges, options.method};
  if (task.members() == 0) {
    if (edges.size() > 0) kernels::require_in_range(edges, 0);
    return found;
  }
  found.labels_a.resize(static_cast<std::size_t>(edges.n_a()));
  found.labels_b.resize(static_cast<std::size_t>(edges.n_b()));
  kernels::GraphLabels labels{found.labels_a, found.labels_b, {}, 0};
  kernels::backend_of(ctx).graph().label(ctx, task, labels);
  found.nonzeros = std::move(labels.nonzeros);
  found.label_seconds = labels.seconds;
  ops::make_groups(ctx, found);
  ctx.report("components", 1);
  return found;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Cocluster cocluster(const Context& ctx, const TableView& relation, const CoclusterOptions& options) try {
  const core::Entry entry;
  check_table(ctx, relation, "relation");
  if (relation.memory() == Memory::cuda) {
    throw Error(ErrorCode::device_unavailable, "relation: is in CUDA memory, must be in host memory");
  }
  const RelationEdges edges = edges_of(ctx, relation);
  return cocluster(ctx, BipartiteEdges(relation.rows(), relation.cols(), edges.a, edges.b), options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

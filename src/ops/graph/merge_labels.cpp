// merge_labels: a union-find over the labels of all shards, in which each vertex is joined with its label (contract
// clause 16). Roots are smallest numbers (formulas/graph/forest.hpp).
#include <array>
#include <string>
#include <vector>

#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "formulas/graph/forest.hpp"
#include "ops/common/refuse.hpp"
#include "ops/common/shard_rows.hpp"
#include "ops/common/together.hpp"
#include "vicinal/shards.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kVertices = 16384;  // of a task

template <class Body>
void for_vertices(const Context& ctx, std::int64_t n, const Body& body) {
  core::parallel_for(ctx, (n + kVertices - 1) / kVertices, [&](std::int64_t task, int /*worker*/) {
    const std::int64_t end = std::min(n, (task + 1) * kVertices);
    for (std::int64_t v = task * kVertices; v < end; ++v) body(v);
  });
}

void check_label(std::int64_t label, std::int64_t vertex, std::int64_t n, const char* argument) {
  if (label >= 0 && label < n) return;
  throw Error(ErrorCode::bad_data, std::string(argument) + ": that of vertex " + std::to_string(vertex) + " is " +
                                       std::to_string(label) + ", which is none of the " + std::to_string(n) +
                                       " vertices");
}

/// A vertex and its label in one shard, where that is another one.
struct Joined {
  std::int64_t vertex;
  std::int64_t label;
};

class Groups {
 public:
  Groups(const Context& ctx, std::int64_t n) : ctx_(ctx), n_(n), forest_(n, ctx.threads() == 1) {
    for_vertices(ctx_, n_, [&](std::int64_t v) { forest_.reset(v, v + 1); });
  }
  void join(std::int64_t vertex, std::int64_t label) {
    forest_.unite(static_cast<std::uint64_t>(vertex), static_cast<std::uint64_t>(label));
  }
  [[nodiscard]] std::vector<std::int64_t> labels() {
    std::vector<std::int64_t> labels(static_cast<std::size_t>(n_));
    for_vertices(ctx_, n_, [&](std::int64_t v) {
      labels[static_cast<std::size_t>(v)] = static_cast<std::int64_t>(forest_.flatten(static_cast<std::uint64_t>(v)));
    });
    return labels;
  }

 private:
  const Context& ctx_;
  std::int64_t n_;
  core::Forest<std::uint64_t> forest_;
};

std::uint64_t forest_bytes(std::int64_t n) {
  return 16 * static_cast<std::uint64_t>(n);
}

std::vector<std::int64_t> merge_of_shard(const Context& ctx, Communicator& ranks,
                                         std::span<const std::int64_t> labels) {
  const auto n = std::ssize(labels);
  ops::require_agreement(ranks, std::array{ops::Agreed{"labels: their number", n}});
  const auto for_each_joined = [&](const auto& visit) {
    for (std::int64_t v = 0; v < n; ++v) {
      if (v % kVertices == 0) ctx.check_cancelled();
      const std::int64_t label = labels[static_cast<std::size_t>(v)];
      check_label(label, v, n, "labels");
      if (label != v) visit(Joined{v, label});
    }
  };
  std::int64_t count_own = 0;
  ops::together(ranks, [&] { for_each_joined([&](const Joined& /*pair*/) { ++count_own; }); });
  std::vector<std::int64_t> bytes = ops::gathered(ranks, count_own);
  std::int64_t pairs = 0;
  for (std::int64_t& count : bytes) {
    pairs += count;
    count *= static_cast<std::int64_t>(sizeof(Joined));
  }
  std::vector<Joined> own;
  std::vector<Joined> all;
  ops::together(ranks, [&] {
    core::require_memory(ctx, forest_bytes(n) + 2 * sizeof(Joined) * static_cast<std::uint64_t>(pairs), "merge_labels");
    all.resize(static_cast<std::size_t>(pairs));
    own.reserve(static_cast<std::size_t>(count_own));
    for_each_joined([&](const Joined& pair) { own.push_back(pair); });
  });
  ranks.all_gather(std::as_bytes(std::span(own)), bytes, std::as_writable_bytes(std::span(all)));
  std::vector<std::int64_t> merged;
  ops::together(ranks, [&] {
    Groups groups(ctx, n);
    for_vertices(ctx, pairs, [&](std::int64_t i) {
      const Joined& pair = all[static_cast<std::size_t>(i)];
      groups.join(pair.vertex, pair.label);
    });
    merged = groups.labels();
  });
  return merged;
}

}  // namespace

std::vector<std::int64_t> merge_labels(const Context& ctx, std::span<const std::span<const std::int64_t>> labels) try {
  const core::Entry entry;
  if (labels.empty()) return {};
  const auto n = std::ssize(labels.front());
  for (std::size_t shard = 1; shard < labels.size(); ++shard) {
    if (std::ssize(labels[shard]) == n) continue;
    refuse("labels: shard " + std::to_string(shard) + " has " + std::to_string(labels[shard].size()) +
           ", but shard 0 has " + std::to_string(n));
  }
  core::require_memory(ctx, forest_bytes(n), "merge_labels");
  Groups groups(ctx, n);
  for (std::size_t shard = 0; shard < labels.size(); ++shard) {
    const std::string argument = "labels of shard " + std::to_string(shard);
    for_vertices(ctx, n, [&](std::int64_t v) {
      const std::int64_t label = labels[shard][static_cast<std::size_t>(v)];
      check_label(label, v, n, argument.c_str());
      groups.join(v, label);
    });
  }
  return groups.labels();
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<std::int64_t> merge_labels(const Context& ctx, Communicator& communicator,
                                       std::span<const std::int64_t> labels) try {
  const core::Entry entry;
  return ops::by_ranks(communicator, [&] { return merge_of_shard(ctx, communicator, labels); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

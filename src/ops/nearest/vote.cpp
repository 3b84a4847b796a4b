// vote: checks and memory first, then the backend (docs: include/vicinal/vote.hpp).
#include "vicinal/vote.hpp"

#include <algorithm>

#include "backend/backend.hpp"
#include "backend/nearest.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "ops/common/check.hpp"

namespace vicinal {
namespace {

[[noreturn]] void refuse_vote(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, "vote: " + sentence);
}

}  // namespace

void check_labels(const Labels& labels, std::int64_t table_rows) {
  if (static_cast<std::int64_t>(labels.codes.size()) != table_rows) {
    refuse_vote("there are " + std::to_string(labels.codes.size()) + " labels, but the graph's table has " +
                std::to_string(table_rows) + " rows");
  }
  const std::int64_t classes = labels.class_count();
  const auto outside = std::find_if(labels.codes.begin(), labels.codes.end(),
                                    [classes](std::int32_t code) { return code < 0 || code >= classes; });
  if (outside != labels.codes.end()) {
    refuse_vote("row " + std::to_string(outside - labels.codes.begin()) + " has the code " + std::to_string(*outside) +
                ", but there are " + std::to_string(classes) + " classes");
  }
}

std::uint64_t vote_bytes(const Context& ctx, std::int64_t m, std::span<const Labels> outputs,
                         const VoteOptions& options) {
  const auto rows = static_cast<double>(m);
  double bytes = 0;
  std::int64_t most_classes = 0;
  for (const Labels& labels : outputs) {
    bytes += rows * sizeof(std::int32_t);
    if (options.probabilities) bytes += rows * static_cast<double>(labels.class_count()) * sizeof(double);
    most_classes = std::max(most_classes, labels.class_count());
  }
  bytes += static_cast<double>(ctx.threads()) * static_cast<double>(most_classes) * sizeof(double);
  return bytes < 0x1p63 ? static_cast<std::uint64_t>(bytes) : std::uint64_t{1} << 63;
}

std::vector<Vote> make_votes(std::int64_t m, std::span<const Labels> outputs, const VoteOptions& options) {
  std::vector<Vote> votes(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    votes[i].class_count = outputs[i].class_count();
    votes[i].codes.resize(static_cast<std::size_t>(m));
    if (options.probabilities) votes[i].probabilities.resize(static_cast<std::size_t>(m * votes[i].class_count));
  }
  return votes;
}

std::int64_t Labels::class_count() const noexcept {
  return static_cast<std::int64_t>(std::visit([](const auto& list) { return list.size(); }, classes));
}

std::string Labels::name_of(std::int64_t code) const {
  if (code < 0 || code >= class_count()) {
    throw Error(ErrorCode::invalid_argument,
                "labels: there is no class " + std::to_string(code) + " among " + std::to_string(class_count()));
  }
  const auto at = static_cast<std::size_t>(code);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&classes)) return (*texts)[at];
  return std::to_string(std::get<std::vector<std::int64_t>>(classes)[at]);
}

std::vector<Vote> vote(const Context& ctx, const NeighborGraph& graph, std::span<const Labels> outputs,
                       const VoteOptions& options) try {
  const core::Entry entry;
  check_graph(graph, "vote");
  check_weights(graph, options.weights, options.custom, options.given, "vote");
  for (const Labels& labels : outputs) check_labels(labels, graph.table_rows);
  core::require_memory(ctx, vote_bytes(ctx, graph.rows, outputs, options), "vote");

  std::vector<Vote> result = make_votes(graph.rows, outputs, options);
  kernels::backend_of(ctx).nearest().vote(ctx, {&graph, outputs, &options}, result);
  return result;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Vote vote(const Context& ctx, const NeighborGraph& graph, const Labels& labels, const VoteOptions& options) try {
  const core::Entry entry;
  return std::move(vote(ctx, graph, std::span<const Labels>(&labels, 1), options).front());
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

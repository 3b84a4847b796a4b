// See shard_search.hpp.
#include "ops/nearest/shard_search.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "backend/backend.hpp"
#include "backend/nearest.hpp"
#include "core/context_state.hpp"
#include "core/in_steps.hpp"
#include "core/infinity.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "core/table_access.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/common/shard_rows.hpp"
#include "ops/common/together.hpp"
#include "ops/nearest/part_lists.hpp"
#include "ops/nearest/search.hpp"
#include "ops/nearest/shard_words.hpp"

namespace vicinal::ops {
namespace {

/// A table of a shape, for plans, which read no values.
TableView shape_of(DType dtype, std::int64_t rows, std::int64_t cols) {
  static constexpr double kZero = 0;
  return {&kZero, dtype, rows, cols, 0, 0};
}

void require_host_rows(const TableView& table, std::string_view name) {
  if (table.memory() != Memory::cuda) return;
  throw Error(ErrorCode::device_unavailable, std::string(name) +
                                                 ": is in CUDA memory, but ranks send rows from host memory; copy it "
                                                 "to host memory");
}

/// The most rows without a filter that a query of this rank leaves out: itself, and the one that is excluded for it.
/// Refuses ids that are no rows of the table.
std::int64_t most_left_out(const Context& ctx, const ShardCall& call, std::int64_t first_query,
                           std::int64_t table_rows) {
  std::int64_t most = 0;
  core::Poll poll(ctx);
  const std::span<const std::int64_t> exclude = call.exclude();
  for (std::size_t i = 0; i < exclude.size(); ++i) {
    poll.step();
    check_excluded(i, exclude[i], table_rows);
    const bool is_own = call.self() && exclude[i] == first_query + static_cast<std::int64_t>(i);
    if (exclude[i] >= 0 && !is_own) most = 1;
  }
  return most + (call.self() ? 1 : 0);
}

}  // namespace

ShardSearch::ShardSearch(const Context& ctx, Communicator& ranks, const TableView& shard, std::int64_t first_row,
                         const ShardCall& call)
    : ctx_(ctx),
      ranks_(ranks),
      rank_(ranks.rank()),
      shard_(shard),
      first_row_(first_row),
      call_(call),
      queries_(call.self() ? shard : *call.queries) {
  together(ranks_, [&] { check_arguments(); });
  agree();
  check_whole();
  choose();
  together(ranks_, [&] { make_plan(); });
}

std::int64_t ShardSearch::rows_of(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  return known_.row_begins[at + 1] - known_.row_begins[at];
}

std::int64_t ShardSearch::queries_of(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  return known_.query_begins[at + 1] - known_.query_begins[at];
}

/// The most neighbors that a k list has in a shard.
std::int64_t ShardSearch::longest_in(int rank) const {
  return std::min(call_.nearest.k, rows_of(rank));
}

std::int64_t ShardSearch::largest_shard() const {
  std::int64_t rows = 0;
  for (int rank = 0; rank < ranks_.size(); ++rank) rows = std::max(rows, rows_of(rank));
  return rows;
}

std::uint64_t ShardSearch::bytes_of_row(DType type) const {
  return static_cast<std::uint64_t>(shard_.cols()) * static_cast<std::uint64_t>(size_of(type));
}

std::size_t ShardSearch::filter_words(int rank) const {
  return call_.filter().empty() ? 0 : static_cast<std::size_t>((rows_of(rank) + 63) / 64);
}

/// 8-byte words of a shard that is sent: its filter, then its rows.
std::size_t ShardSearch::shard_words(int rank) const {
  const std::uint64_t bytes = static_cast<std::uint64_t>(rows_of(rank)) * bytes_of_row(shard_.dtype());
  return filter_words(rank) + static_cast<std::size_t>((bytes + kWordBytes - 1) / kWordBytes);
}

/// Of the rank's queries in a shard.
PartOptions ShardSearch::place_of(int shard) const {
  return {known_.row_begins[static_cast<std::size_t>(shard)], known_.query_begins[static_cast<std::size_t>(rank_)],
          call_.self(), known_.row_begins.back(), 0};
}

void ShardSearch::check_arguments() const {
  check_table(ctx_, shard_, "table");
  require_host_rows(shard_, "table");
  const bool has_queries = queries_.rows() > 0;
  if (!call_.self() && has_queries) {
    check_table(ctx_, queries_, "queries");
    require_host_rows(queries_, "queries");
    if (queries_.cols() != shard_.cols()) {
      refuse(fmt::format("queries: {} columns, but the table has {}", queries_.cols(), shard_.cols()));
    }
  }
  const auto m = static_cast<std::size_t>(queries_.rows());
  if (!call_.exclude().empty() && call_.exclude().size() != m) {
    refuse(fmt::format("exclude: {} ids for {} queries", call_.exclude().size(), m));
  }
  if (!call_.within.radii.empty() && call_.within.radii.size() != m) {
    refuse(fmt::format("radii: {} for {} queries", call_.within.radii.size(), m));
  }
  // All else is what a search in the shard would say.
  const TableView shard = shape_of(shard_.dtype(), shard_.rows(), shard_.cols());
  const TableView queries = shape_of(queries_.dtype(), std::max<std::int64_t>(1, queries_.rows()), shard_.cols());
  const PartOptions place{.self = call_.self()};
  if (call_.kind == PartKind::knn) {
    check_max_radius(call_.nearest.max_radius, call_.nearest.metric);
    KnnOptions options = call_.nearest;
    if (!call_.as_part) options.max_radius = kInfinity;
    // Lists of all rows would be made by another method than is asked for.
    options.k = std::min(options.k, std::max<std::int64_t>(1, shard.rows() - (call_.self() ? 1 : 0)));
    (void)plan_knn_part(ctx_, shard, queries, options, place);
  } else {
    (void)plan_radius_part(ctx_, shard, queries, call_.within, place);
  }
}

void ShardSearch::agree() {
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  const bool is_knn = call_.kind == PartKind::knn;
  require_agreement(
      ranks_, std::array<Agreed, 10>{{
                  {"function that is called", number(call_.kind) + (call_.as_part ? 3 : 0) + (call_.is_plan ? 6 : 0)},
                  {"queries: whether they are the rows of the table", number(call_.self())},
                  {"table: its number of columns", shard_.cols()},
                  {"table: its element type", number(shard_.dtype())},
                  {"filter: whether there is one", number(!call_.filter().empty())},
                  {"metric", number(call_.metric())},
                  {"p", call_.metric() == Metric::minkowski ? std::bit_cast<std::int64_t>(call_.p()) : 0},
                  {"k", is_knn ? call_.nearest.k : 0},
                  {"max_radius", is_knn ? std::bit_cast<std::int64_t>(call_.nearest.max_radius) : 0},
                  {"order", is_knn ? 0 : number(call_.within.order)},
              }});
  known_.row_begins = row_begins(ranks_, shard_.rows(), first_row_);
  const std::int64_t m = queries_.rows();
  std::int64_t left_out = 0;
  together(ranks_, [&] {
    left_out = most_left_out(ctx_, call_, first_row_, known_.row_begins.back());
    if (!call_.filter().empty()) left_out = number(call_.self());
  });
  constexpr std::size_t kOwn = 5;
  const std::array<std::int64_t, kOwn> own = {m, m > 0 ? number(queries_.dtype()) : -1,
                                              kernels::eligible_rows(call_.filter(), shard_.rows()),
                                              m > 0 ? left_out : 0, number(!call_.exclude().empty())};
  const std::vector<std::int64_t> all = gathered(ranks_, own);
  std::vector<std::int64_t> queries;
  std::size_t first_with_queries = all.size();
  alike([&] {
    for (std::size_t at = 0; at < all.size(); at += kOwn) {
      queries.push_back(all[at]);
      known_.eligible += all[at + 2];
      known_.left_out = std::max(known_.left_out, all[at + 3]);
      known_.has_exclude = known_.has_exclude || all[at + 4] != 0;
      if (all[at] == 0) continue;
      if (first_with_queries == all.size()) first_with_queries = at;
      if (all[at + 1] == all[first_with_queries + 1]) continue;
      refuse(fmt::format("queries: their element type is not the same on ranks {} and {}", first_with_queries / kOwn,
                         at / kOwn));
    }
    if (first_with_queries == all.size()) refuse("queries: no rank has any");
  });
  known_.query_type = static_cast<DType>(all[first_with_queries + 1]);
  known_.query_begins = begins_of(queries);
}

/// The most rows that the filters admit and a query leaves out: itself, and the one that is excluded for it. Each
/// filter is sent to all ranks.
std::int64_t ShardSearch::most_admitted_left_out() {
  const std::span<const std::int64_t> exclude = call_.exclude();
  std::array<std::int64_t, 1> most = {0};
  std::vector<std::uint64_t> words;
  for (int owner = 0; owner < ranks_.size(); ++owner) {
    together(ranks_, [&] {
      core::resize_in_steps(ctx_, words, static_cast<std::int64_t>(filter_words(owner)));
      if (owner == rank_) std::copy(call_.filter().begin(), call_.filter().end(), words.begin());
    });
    ranks_.broadcast(std::as_writable_bytes(std::span(words).first(filter_words(owner))), owner);
    together(ranks_, [&] {
      const std::int64_t begin = known_.row_begins[static_cast<std::size_t>(owner)];
      const auto is_admitted = [&](std::int64_t id) {
        return id >= begin && id - begin < rows_of(owner) && has_bit(words, id - begin);
      };
      core::Poll poll(ctx_);
      for (std::size_t i = 0; i < exclude.size(); ++i) {
        poll.step();
        const std::int64_t own = call_.self() ? first_row_ + static_cast<std::int64_t>(i) : -1;
        const bool is_own = own >= 0 && has_bit(call_.filter(), own - first_row_);
        if (exclude[i] != own && is_admitted(exclude[i])) most[0] = std::max<std::int64_t>(most[0], is_own ? 2 : 1);
      }
    });
  }
  most[0] = std::max(most[0], known_.left_out);
  ranks_.all_reduce_max(most);
  return most[0];
}

void ShardSearch::check_whole() {
  if (call_.kind != PartKind::knn) return;
  if (call_.nearest.k <= known_.eligible - known_.left_out) return;
  const bool is_filtered = !call_.filter().empty();
  // A row that is excluded, but that the filters do not admit, does not count. Who asks for fewer rows is not kept from
  // searching.
  const std::int64_t left_out = is_filtered && known_.has_exclude ? most_admitted_left_out() : known_.left_out;
  alike([&] {
    refuse_large_k(call_.nearest.k, std::max<std::int64_t>(0, known_.eligible - left_out), known_.row_begins.back(),
                   {call_.self(), is_filtered, known_.has_exclude});
  });
}

/// What all ranks together send if the shards travel.
std::uint64_t ShardSearch::ring_bytes() const {
  std::uint64_t words = 0;
  for (int rank = 0; rank < ranks_.size(); ++rank) words += shard_words(rank);
  return static_cast<std::uint64_t>(ranks_.size() - 1) * words * kWordBytes;
}

/// The same if the queries travel, and lists back; without the entries of lists within a radius, which nobody knows.
std::uint64_t ShardSearch::query_bytes() const {
  const auto others = static_cast<std::uint64_t>(ranks_.size() - 1);
  const auto queries = static_cast<std::uint64_t>(known_.query_begins.back());
  const bool is_knn = call_.kind == PartKind::knn;
  std::uint64_t bytes =
      others * queries *
      (bytes_of_row(known_.query_type) + (known_.has_exclude ? kWordBytes : 0) + (is_knn ? 0 : 2 * kWordBytes));
  for (int rank = 0; is_knn && rank < ranks_.size(); ++rank) {
    bytes += (queries - static_cast<std::uint64_t>(queries_of(rank))) * static_cast<std::uint64_t>(longest_in(rank)) *
             2 * kWordBytes;
  }
  return bytes;
}

/// Bytes of the shards that a rank holds beside its own: all of them as a whole, or two.
std::uint64_t ShardSearch::bytes_of_shards(bool as_whole) const {
  std::size_t all = call_.filter().empty() ? 0 : static_cast<std::size_t>((known_.row_begins.back() + 63) / 64);
  std::size_t largest = 0;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    all += shard_words(rank);
    largest = std::max(largest, shard_words(rank));
  }
  return (as_whole ? all : 2 * largest) * kWordBytes;
}

/// Bytes beside a search: what travels, and the lists so far. Lists within a radius are counted as they are found.
std::uint64_t ShardSearch::bytes_beside() const {
  const auto own = static_cast<std::uint64_t>(queries_.rows());
  const bool is_knn = call_.kind == PartKind::knn;
  std::uint64_t bytes = 0;
  if (is_knn && own > 0) bytes += KLists::bytes(ctx_, queries_.rows(), call_.nearest.k);
  if (call_.kind == PartKind::count) bytes += own * kWordBytes;
  if (ranks_.size() == 1) return bytes;
  if (!division_.queries_travel) return bytes + bytes_of_shards(division_.holds_table);
  std::uint64_t most = 0;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    most = std::max(most, static_cast<std::uint64_t>(queries_of(rank)));
  }
  const auto all = static_cast<std::uint64_t>(known_.query_begins.back());
  bytes += (all + own) *
           (bytes_of_row(known_.query_type) + (known_.has_exclude ? kWordBytes : 0) + (is_knn ? 0 : kWordBytes));
  if (!is_knn) return bytes + (2 * own + most) * 2 * kWordBytes;
  const auto longest = static_cast<std::uint64_t>(std::min(call_.nearest.k, largest_shard()));
  return bytes + (most * static_cast<std::uint64_t>(longest_in(rank_)) + 2 * own * longest + own) * 2 * kWordBytes;
}

/// The plan of the largest search of this rank.
Plan ShardSearch::plan_of_searches() const {
  const Context ctx = core::beside(ctx_, bytes_beside());
  PartOptions place = place_of(rank_);
  place.first_id = 0;
  std::int64_t rows = division_.holds_table ? known_.row_begins.back() : largest_shard();
  if (division_.queries_travel) rows = shard_.rows();
  TableView queries = shape_of(known_.query_type, queries_.rows(), shard_.cols());
  KnnOptions nearest = call_.nearest;
  nearest.max_radius = kInfinity;
  nearest.filter = {};
  RadiusOptions within = call_.within;
  within.filter = {};
  if (division_.queries_travel) {
    queries = shape_of(known_.query_type, known_.query_begins.back(), shard_.cols());
    place.first_query = 0;
    nearest.exclude = within.exclude = {};
    within.radii = {};
  }
  if (queries.rows() == 0) {
    Plan plan;
    plan.method = Method::direct;
    plan.isa = kernels::backend_of(ctx_).isa(ctx_);
    plan.device = ctx_.device();
    plan.threads = ctx_.threads();
    plan.memory = kernels::backend_of(ctx_).nearest().prepare_bytes(ctx_, shard_);
    plan.reason = "this rank has no queries";
    return plan;
  }
  const TableView shard = shape_of(shard_.dtype(), rows, shard_.cols());
  return call_.kind == PartKind::knn ? plan_knn_part(ctx, shard, queries, nearest, place)
                                     : plan_radius_part(ctx, shard, queries, within, place);
}

/// What a rank of the division as it stands needs.
std::uint64_t ShardSearch::memory_of_searches() const {
  return plan_of_searches().memory + bytes_beside();
}

/// Whether is_so() on some rank.
template <class Question>
bool ShardSearch::on_any_rank(const Question& is_so) {
  std::array<std::int64_t, 1> any = {0};
  together(ranks_, [&] { any[0] = is_so() ? 1 : 0; });
  ranks_.all_reduce_max(any);
  return any[0] != 0;
}

void ShardSearch::choose() {
  if (ranks_.size() == 1) return;
  division_.bytes = ring_bytes();
  if (!call_.self()) {
    division_.other_bytes = query_bytes();
    division_.queries_travel = division_.other_bytes < division_.bytes;
    division_.is_short_for_queries =
        division_.queries_travel && on_any_rank([&] { return memory_of_searches() > ctx_.memory_limit(); });
    division_.queries_travel = division_.queries_travel && !division_.is_short_for_queries;
    if (division_.queries_travel) return std::swap(division_.bytes, division_.other_bytes);
  }
  // Ranks of one host may each have a limit that is all of its memory.
  const auto sharing = static_cast<std::uint64_t>(std::max(1, ranks_.ranks_on_host()));
  const std::uint64_t most = std::min(ctx_.memory_limit(), core::free_memory() / 10 * 8 / sharing);
  // Lists within a radius are not known, and take twice their size while they grow: three quarters of the memory are
  // left to them. Shards that are searched one at a time may need more, if they are small.
  const std::uint64_t limit = call_.kind == PartKind::radius ? most / 4 : most;
  const bool is_left_out = core::ContextAccess::ablation(ctx_) == core::Ablation::whole_table;
  division_.holds_table = !on_any_rank([&] {
    division_.holds_table = false;
    const std::uint64_t alone = memory_of_searches();
    division_.holds_table = true;
    return is_left_out || memory_of_searches() > std::max(limit, alone);
  });
}

void ShardSearch::make_plan() {
  plan_ = plan_of_searches();
  beside_ = bytes_beside();
  plan_.memory += beside_;
  if (ranks_.size() == 1) return;
  const std::size_t before = plan_.reason.size();
  explain_division();
  division_.why = plan_.reason.substr(before);
}

/// Adds to the plan's reason what travels, and why.
void ShardSearch::explain_division() {
  const std::string bytes = core::format_bytes(division_.bytes);
  const std::string other = core::format_bytes(division_.other_bytes);
  const char* const lists = call_.kind == PartKind::radius ? " and the lists' entries" : "";
  if (division_.queries_travel) {
    plan_.reason +=
        fmt::format("; all queries are sent to every rank and their lists back, in all {}{}; the shards would be {}",
                    bytes, lists, other);
    return;
  }
  if (!division_.holds_table) {
    all_searches_ = ranks_.size();
    plan_.expected_seconds *= all_searches_;
  }
  plan_.reason += fmt::format("; each shard is sent from rank to rank, in all {}", bytes);
  plan_.reason += division_.holds_table ? ", and each rank searches all of them at once"
                                        : ", and searched alone, because a rank has too little memory for all of them";
  if (call_.self()) return;
  plan_.reason += division_.is_short_for_queries ? std::string("; a rank has too little memory for the queries of all")
                                                 : fmt::format("; queries and lists would be {}{}", other, lists);
}

NeighborPart ShardSearch::search(const TableView& shard, Bitmap filter, const TableView& queries,
                                 std::span<const std::int64_t> exclude, std::span<const double> radii,
                                 const PartOptions& place) {
  const std::span<const double> bounds = lists_ ? lists_->bounds(ctx_) : std::span<const double>();
  // Lists within a radius are counted with what is held beside them, so that an error names the sum.
  const bool is_knn = call_.kind == PartKind::knn;
  const Context rest = is_knn ? core::beside(ctx_, beside_) : ctx_;
  const auto state =
      std::make_shared<core::ContextAccess::State>(core::ContextAccess::state(ctx_), rest.memory_limit());
  if (state->progress) {
    state->progress = [this](std::string_view stage, double fraction) {
      if (stage == "search") ctx_.report("search", (searches_ + fraction) / all_searches_);
    };
  }
  const Context ctx = core::ContextAccess::context(state);
  NeighborPart part;
  if (is_knn) {
    KnnOptions options = call_.nearest;
    options.filter = filter;
    options.exclude = exclude;
    options.max_radius = kInfinity;
    part = knn_part_below(ctx, shard, queries, options, place, bounds);
  } else {
    RadiusOptions options = call_.within;
    options.filter = filter;
    options.exclude = exclude;
    options.radii = radii;
    if (!radii.empty() && std::count(radii.begin(), radii.end(), radii[0]) == std::ssize(radii)) {
      options.radius = radii[0];
      options.radii = {};
    }
    part = part_within(ctx, shard, queries, options, place, call_.kind, beside_ + part_bytes_);
  }
  add_stats(part.stats, true, stats_);
  ++searches_;
  if (shard.rows() > largest_searched_) {  // what was planned for values that nobody had seen
    largest_searched_ = shard.rows();
    part.plan.memory = plan_.memory;
    part.plan.expected_seconds = plan_.expected_seconds;
    plan_ = part.plan;
    plan_.reason += division_.why;
  }
  return part;
}

void ShardSearch::take(NeighborPart part) {
  if (call_.kind == PartKind::knn) {
    if (!lists_) lists_.emplace(queries_.rows(), call_.nearest.k);
    return lists_->take(ctx_, std::move(part));
  }
  if (call_.kind == PartKind::count) {
    if (counts_.empty()) core::resize_in_steps(ctx_, counts_, queries_.rows());
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += part.counts[i];
    return;
  }
  part_bytes_ += bytes_of_lists(part);
  parts_.push_back(std::move(part));
}

void ShardSearch::run() {
  if (division_.queries_travel) {
    run_queries();
  } else if (division_.holds_table) {
    run_whole();
  } else {
    run_ring();
  }
  if (call_.kind == PartKind::knn) return;
  // What has travelled is gone by now.
  beside_ = 0;
  part_bytes_ = 0;
  for (const NeighborPart& part : parts_) part_bytes_ += bytes_of_lists(part);
}

/// Refuses k where some query has fewer rows to choose from, which only the search finds out.
void ShardSearch::require_long_lists() {
  if (call_.kind != PartKind::knn) return;
  const std::int64_t k = call_.nearest.k;
  std::array<std::int64_t, 1> shortest = {lists_ ? -lists_->shortest() : -k};
  ranks_.all_reduce_max(shortest);
  alike([&] {
    if (-shortest[0] >= k) return;
    refuse_large_k(k, -shortest[0], known_.row_begins.back(),
                   {call_.self(), !call_.filter().empty(), known_.has_exclude});
  });
}

/// The lists within a radius, of all shards. Gives up the parts.
NeighborGraph ShardSearch::merged(bool keep_keys) {
  std::uint64_t entries = 0;
  for (const NeighborPart& part : parts_) entries += part.ids.size();
  const auto m = static_cast<std::uint64_t>(queries_.rows());
  core::require_memory(ctx_, beside_ + part_bytes_ + (2 * entries + m + 1) * kWordBytes, kListsFound);
  NeighborGraph graph = merge_parts(core::beside(ctx_, beside_ + part_bytes_), parts_, keep_keys);
  parts_.clear();
  return graph;
}

NeighborGraph ShardSearch::find() {
  run();
  const std::int64_t m = queries_.rows();
  const std::int64_t n = known_.row_begins.back();
  NeighborGraph graph;
  require_long_lists();
  together(ranks_, [&] {
    if (call_.kind == PartKind::radius && m > 0) graph = merged(false);
    graph.rows = m;
    graph.table_rows = n;
    graph.metric = call_.metric();
    graph.p = call_.p();
    if (call_.kind == PartKind::knn) {
      graph.k = call_.nearest.k;
      if (m > 0) lists_->finish(ctx_, graph.metric, graph.p, graph);
      if (call_.nearest.max_radius < kInfinity) cut_lists(ctx_, call_.nearest.max_radius, graph);
    } else if (m == 0) {
      graph.offsets = {0};
    }
  });
  graph.plan = plan_;
  graph.stats = stats_;
  return graph;
}

NeighborPart ShardSearch::part() {
  run();
  require_long_lists();
  NeighborPart part;
  part.info.kind = call_.kind;
  part.info.place = place_of(rank_);
  part.info.place.first_id = 0;
  part.info.place.total_queries = known_.query_begins.back();
  part.info.rows = known_.row_begins.back();
  part.info.queries = queries_.rows();
  part.info.cols = shard_.cols();
  part.info.metric = call_.metric();
  part.info.p = call_.p();
  if (call_.kind == PartKind::knn) {
    part.info.k = call_.nearest.k;
    if (lists_) lists_->give(part.ids, part.keys);
  } else {
    part.info.has_radii = !call_.within.radii.empty();
    part.radii.assign(call_.within.radii.begin(), call_.within.radii.end());
    if (!part.info.has_radii) part.info.radius = call_.within.radius;
  }
  if (call_.kind == PartKind::count) part.counts = std::move(counts_);
  if (call_.kind == PartKind::radius) {
    part.info.order = call_.within.order;
    part.offsets = {0};
    together(ranks_, [&] {
      if (queries_.rows() == 0) return;
      const bool is_whole = parts_.size() == 1;
      NeighborGraph graph = is_whole ? NeighborGraph() : merged(true);
      part.ids = std::move(is_whole ? parts_[0].ids : graph.ids);
      part.keys = std::move(is_whole ? parts_[0].keys : graph.distances);
      part.offsets = std::move(is_whole ? parts_[0].offsets : graph.offsets);
    });
  }
  part.plan = plan_;
  part.stats = stats_;
  return part;
}

NeighborCounts ShardSearch::count() {
  run();
  return {std::move(counts_), plan_, stats_};
}

}  // namespace vicinal::ops

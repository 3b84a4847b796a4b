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

namespace vicinal::ops {
namespace {

constexpr std::uint64_t kWordBytes = sizeof(std::uint64_t);
constexpr std::string_view kLists = "radius: the neighbors found so far";

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

std::string_view operation_of(PartKind kind) {
  return kind == PartKind::knn ? "knn" : "radius search";
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

template <class T>
std::vector<T> gathered_from(Communicator& ranks, const std::vector<T>& own, const std::vector<std::int64_t>& begins,
                             std::vector<T> all, std::int64_t values_per_row = 1) {
  std::vector<std::int64_t> sizes;
  for (std::size_t r = 1; r < begins.size(); ++r) {
    sizes.push_back((begins[r] - begins[r - 1]) * values_per_row * static_cast<std::int64_t>(sizeof(T)));
  }
  ranks.all_gather(std::as_bytes(std::span(own)), sizes, std::as_writable_bytes(std::span(all)));
  return all;
}

std::uint64_t bytes_of_lists(const NeighborPart& part) {
  return (2 * part.ids.size() + part.offsets.size() + part.radii.size()) * kWordBytes;
}

/// Contiguous rows of a table, in its own type.
void copy_all_rows(const Context& ctx, const TableView& table, void* to) {
  const std::int64_t row_bytes = table.cols() * size_of(table.dtype());
  const std::int64_t step = std::max<std::int64_t>(1, core::kElementsPerStep / table.cols());
  for (std::int64_t begin = 0; begin < table.rows(); begin += step) {
    ctx.check_cancelled();
    core::copy_rows(table, begin, std::min(table.rows(), begin + step),
                    static_cast<std::byte*>(to) + begin * row_bytes);
  }
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

/// Bytes beside a search: what travels, and the lists so far. Lists within a radius are counted as they are found.
std::uint64_t ShardSearch::bytes_beside() const {
  const auto own = static_cast<std::uint64_t>(queries_.rows());
  const bool is_knn = call_.kind == PartKind::knn;
  std::uint64_t bytes = 0;
  if (is_knn && own > 0) bytes += KLists::bytes(ctx_, queries_.rows(), call_.nearest.k);
  if (call_.kind == PartKind::count) bytes += own * kWordBytes;
  if (ranks_.size() == 1) return bytes;
  if (!division_.queries_travel) {
    std::size_t words = 0;
    for (int rank = 0; rank < ranks_.size(); ++rank) words = std::max(words, shard_words(rank));
    return bytes + 2 * words * kWordBytes;
  }
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
  const std::int64_t rows = division_.queries_travel ? shard_.rows() : largest_shard();
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

void ShardSearch::choose() {
  if (ranks_.size() == 1) return;
  division_.bytes = ring_bytes();
  if (call_.self()) return;
  division_.other_bytes = query_bytes();
  if (division_.other_bytes >= division_.bytes) return;
  division_.queries_travel = true;
  std::array<std::int64_t, 1> is_short = {0};
  together(ranks_, [&] { is_short[0] = plan_of_searches().memory + bytes_beside() > ctx_.memory_limit() ? 1 : 0; });
  ranks_.all_reduce_max(is_short);
  division_.is_short_of_memory = is_short[0] != 0;
  division_.queries_travel = is_short[0] == 0;
  if (division_.queries_travel) std::swap(division_.bytes, division_.other_bytes);
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
  all_searches_ = ranks_.size();
  plan_.expected_seconds *= all_searches_;
  plan_.reason += fmt::format("; each shard is sent from rank to rank, in all {}", bytes);
  if (call_.self()) return;
  plan_.reason += division_.is_short_of_memory ? std::string("; a rank has too little memory for the queries of all")
                                               : fmt::format("; queries and lists would be {}{}", other, lists);
}

NeighborPart ShardSearch::search(const TableView& shard, Bitmap filter, const TableView& queries,
                                 std::span<const std::int64_t> exclude, std::span<const double> radii,
                                 const PartOptions& place) {
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
    part = knn_part(ctx, shard, queries, options, place);
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

void ShardSearch::pack_shard(std::vector<std::uint64_t>& words) const {
  const Bitmap filter = call_.filter();
  std::copy(filter.begin(), filter.end(), words.begin());
  copy_all_rows(ctx_, shard_, words.data() + filter.size());
}

void ShardSearch::run_ring() {
  const int ranks = ranks_.size();
  const auto owner = [&](int step) { return (rank_ - step + ranks) % ranks; };
  std::vector<std::uint64_t> here;   // the shard that was searched last
  std::vector<std::uint64_t> there;  // the next one
  together(ranks_, [&] {
    core::require_memory(ctx_, plan_.memory, operation_of(call_.kind));
    if (ranks > 1) {
      std::size_t words = 0;
      for (int rank = 0; rank < ranks; ++rank) words = std::max(words, shard_words(rank));
      core::resize_in_steps(ctx_, here, static_cast<std::int64_t>(words));
      core::resize_in_steps(ctx_, there, static_cast<std::int64_t>(words));
      pack_shard(here);
    }
    if (queries_.rows() == 0) {
      (void)prepare(ctx_, shard_, {}, first_row_);  // refuses what is wrong with its values
      return;
    }
    take(search(shard_, call_.filter(), queries_, call_.exclude(), call_.within.radii, place_of(rank_)));
  });
  for (int step = 1; step < ranks; ++step) {
    const int from = owner(step);
    ranks_.send_receive(std::as_bytes(std::span(here).first(shard_words(owner(step - 1)))), (rank_ + 1) % ranks,
                        std::as_writable_bytes(std::span(there).first(shard_words(from))), owner(1));
    std::swap(here, there);
    together(ranks_, [&] {
      ctx_.check_cancelled();
      if (queries_.rows() == 0) return;
      const std::size_t words = filter_words(from);
      const TableView shard(here.data() + words, shard_.dtype(), rows_of(from), shard_.cols(), shard_.cols());
      take(search(shard, std::span(here).first(words), queries_, call_.exclude(), call_.within.radii, place_of(from)));
    });
  }
}

/// The lists of another rank's queries in this shard, as they are sent. k lists that are short end with ids of -1.
void ShardSearch::pack_lists(const NeighborPart& all, int to, std::vector<std::int64_t>& lengths,
                             std::vector<std::int64_t>& entries) const {
  const std::int64_t begin = known_.query_begins[static_cast<std::size_t>(to)];
  const std::int64_t count = queries_of(to);
  core::Poll poll(ctx_);
  if (call_.kind == PartKind::count) {
    entries.assign(all.counts.begin() + begin, all.counts.begin() + begin + count);
    return;
  }
  if (call_.kind == PartKind::radius) {
    const std::int64_t first = begin_of_list(all, begin);
    const std::int64_t size = begin_of_list(all, begin + count) - first;
    entries = {};
    core::require_memory(ctx_, beside_ + part_bytes_ + static_cast<std::uint64_t>(size) * 2 * kWordBytes, kLists);
    lengths.clear();
    for (std::int64_t i = begin; i < begin + count; ++i) {
      poll.step();
      lengths.push_back(begin_of_list(all, i + 1) - begin_of_list(all, i));
    }
    entries.reserve(static_cast<std::size_t>(2 * size));
    for (std::int64_t i = first; i < first + size; ++i) {
      poll.step();
      entries.push_back(all.ids[static_cast<std::size_t>(i)]);
    }
    for (std::int64_t i = first; i < first + size; ++i) {
      poll.step();
      entries.push_back(std::bit_cast<std::int64_t>(all.keys[static_cast<std::size_t>(i)]));
    }
    return;
  }
  const std::int64_t longest = longest_in(rank_);
  entries.clear();
  core::resize_in_steps(ctx_, entries, 2 * count * longest);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = begin_of_list(all, begin + i);
    const std::int64_t size = begin_of_list(all, begin + i + 1) - first;
    for (std::int64_t j = 0; j < longest; ++j) {
      poll.step();
      const auto at = static_cast<std::size_t>(i * longest + j);
      entries[at] = j < size ? all.ids[static_cast<std::size_t>(first + j)] : -1;
      if (j >= size) continue;
      entries[static_cast<std::size_t>(count * longest) + at] =
          std::bit_cast<std::int64_t>(all.keys[static_cast<std::size_t>(first + j)]);
    }
  }
}

/// The part that another rank has packed for this rank's queries.
NeighborPart ShardSearch::received(int from, const std::vector<std::int64_t>& lengths,
                                   const std::vector<std::int64_t>& entries) const {
  NeighborPart part;
  part.info.kind = call_.kind;
  if (call_.kind == PartKind::count) {
    part.counts = entries;
    return part;
  }
  const auto half = static_cast<std::int64_t>(entries.size() / 2);
  const auto add = [&](std::int64_t at) {
    part.ids.push_back(entries[static_cast<std::size_t>(at)]);
    part.keys.push_back(std::bit_cast<double>(entries[static_cast<std::size_t>(half + at)]));
  };
  core::Poll poll(ctx_);
  part.ids.reserve(static_cast<std::size_t>(half));
  part.keys.reserve(static_cast<std::size_t>(half));
  part.offsets.reserve(static_cast<std::size_t>(queries_.rows()) + 1);
  part.offsets.push_back(0);
  const std::int64_t longest = longest_in(from);
  std::int64_t end = 0;
  for (std::int64_t i = 0; i < queries_.rows(); ++i) {
    const std::int64_t begin = call_.kind == PartKind::knn ? i * longest : end;
    end = begin + (call_.kind == PartKind::knn ? longest : lengths[static_cast<std::size_t>(i)]);
    for (std::int64_t at = begin; at < end && entries[static_cast<std::size_t>(at)] >= 0; ++at) {
      poll.step();
      add(at);
    }
    part.offsets.push_back(std::ssize(part.ids));
  }
  return part;
}

void ShardSearch::run_queries() {
  const int ranks = ranks_.size();
  const std::int64_t m = queries_.rows();
  const std::int64_t all_m = known_.query_begins.back();
  const std::int64_t first = known_.query_begins[static_cast<std::size_t>(rank_)];
  const bool is_radius = call_.kind == PartKind::radius;
  const auto row_bytes = static_cast<std::int64_t>(bytes_of_row(known_.query_type));
  std::vector<std::byte> own_rows;
  std::vector<std::byte> rows;
  std::vector<std::int64_t> own_exclude(call_.exclude().begin(), call_.exclude().end());
  std::vector<std::int64_t> exclude;
  std::vector<double> own_radii(call_.within.radii.begin(), call_.within.radii.end());
  std::vector<double> radii;
  together(ranks_, [&] {
    core::require_memory(ctx_, plan_.memory, operation_of(call_.kind));
    core::resize_in_steps(ctx_, rows, all_m * row_bytes);
    if (known_.has_exclude) exclude.resize(static_cast<std::size_t>(all_m));
    if (call_.kind != PartKind::knn) radii.resize(static_cast<std::size_t>(all_m));
    if (m == 0) return;
    kernels::NearestTask task;
    task.queries = queries_;
    task.first_query = first;
    kernels::cpu_backend().nearest().check_queries(ctx_, task);
    core::resize_in_steps(ctx_, own_rows, m * row_bytes);
    copy_all_rows(ctx_, queries_, own_rows.data());
    if (own_exclude.empty() && known_.has_exclude) own_exclude.assign(static_cast<std::size_t>(m), -1);
    if (own_radii.empty() && !radii.empty()) own_radii.assign(static_cast<std::size_t>(m), call_.within.radius);
  });
  rows = gathered_from(ranks_, own_rows, known_.query_begins, std::move(rows), row_bytes);
  if (!exclude.empty()) exclude = gathered_from(ranks_, own_exclude, known_.query_begins, std::move(exclude));
  if (!radii.empty()) radii = gathered_from(ranks_, own_radii, known_.query_begins, std::move(radii));

  NeighborPart all;  // the lists of all queries in this shard
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> entries;
  std::vector<std::int64_t> lengths_here;
  std::vector<std::int64_t> entries_here;
  const auto to = [&](int step) { return (rank_ + step) % ranks; };
  const auto from = [&](int step) { return (rank_ - step + ranks) % ranks; };
  const auto make_ready = [&](int step) {
    if (step == ranks) return;
    pack_lists(all, to(step), lengths, entries);
    const std::int64_t longest = call_.kind == PartKind::knn ? 2 * longest_in(from(step)) : 1;
    if (is_radius) {
      lengths_here.resize(static_cast<std::size_t>(m));
    } else {
      core::resize_in_steps(ctx_, entries_here, m * longest);
    }
  };
  // A part of the rank's own queries in the shard of `rank`.
  const auto take_from = [&](int rank, NeighborPart part) {
    part.info = all.info;
    part.info.place.first_id = known_.row_begins[static_cast<std::size_t>(rank)];
    part.info.place.first_query = first;
    part.info.rows = rows_of(rank);
    part.info.queries = m;
    if (all.info.has_radii) part.radii = own_radii;
    take(std::move(part));
  };
  together(ranks_, [&] {
    PartOptions place = place_of(rank_);
    place.first_query = 0;
    const TableView queries(rows.data(), known_.query_type, all_m, shard_.cols(), shard_.cols());
    all = search(shard_, call_.filter(), queries, exclude, radii, place);
    part_bytes_ = bytes_of_lists(all);
    if (is_radius && m > 0) {
      const auto own = static_cast<std::uint64_t>(begin_of_list(all, first + m) - begin_of_list(all, first));
      core::require_memory(ctx_, beside_ + part_bytes_ + own * 2 * kWordBytes, kLists);
    }
    if (m > 0) take_from(rank_, source_of(ctx_, all).read(first, first + m));
    if (call_.kind == PartKind::knn) {  // for the rank with the most queries, so that it never grows
      std::int64_t most = 0;
      for (int rank = 0; rank < ranks; ++rank) most = std::max(most, rank == rank_ ? 0 : queries_of(rank));
      entries.reserve(static_cast<std::size_t>(2 * most * longest_in(rank_)));
    }
    make_ready(1);
  });
  for (int step = 1; step < ranks; ++step) {
    if (is_radius) {
      ranks_.send_receive(std::as_bytes(std::span(lengths)), to(step), std::as_writable_bytes(std::span(lengths_here)),
                          from(step));
      together(ranks_, [&] {
        std::int64_t size = 0;
        for (const std::int64_t length : lengths_here) size += length;
        // What comes, and a copy of it as a part, beside what is sent.
        const std::uint64_t bytes = (static_cast<std::uint64_t>(size) * 4 + entries.size()) * kWordBytes;
        core::require_memory(ctx_, beside_ + part_bytes_ + bytes, kLists);
        core::resize_in_steps(ctx_, entries_here, 2 * size);
      });
    }
    ranks_.send_receive(std::as_bytes(std::span(entries)), to(step), std::as_writable_bytes(std::span(entries_here)),
                        from(step));
    together(ranks_, [&] {
      if (m > 0) take_from(from(step), received(from(step), lengths_here, entries_here));
      if (is_radius) entries_here = {};
      make_ready(step + 1);
    });
  }
}

void ShardSearch::run() {
  if (division_.queries_travel) {
    run_queries();
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

NeighborGraph ShardSearch::find() {
  run();
  const std::int64_t m = queries_.rows();
  const std::int64_t n = known_.row_begins.back();
  NeighborGraph graph;
  require_long_lists();
  together(ranks_, [&] {
    if (call_.kind == PartKind::radius && m > 0) {
      std::uint64_t entries = 0;
      for (const NeighborPart& part : parts_) entries += part.ids.size();
      core::require_memory(ctx_, beside_ + part_bytes_ + (2 * entries + static_cast<std::uint64_t>(m) + 1) * kWordBytes,
                           kLists);
      graph = merge(core::beside(ctx_, beside_ + part_bytes_), parts_);
      parts_.clear();
    }
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
  part.info.place = place_of(rank_);
  part.info.place.first_id = 0;
  part.info.place.total_queries = known_.query_begins.back();
  part.info.rows = known_.row_begins.back();
  part.info.queries = queries_.rows();
  part.info.cols = shard_.cols();
  part.info.metric = call_.metric();
  part.info.p = call_.p();
  part.info.k = call_.nearest.k;
  if (lists_) lists_->give(part.ids, part.keys);
  part.plan = plan_;
  part.stats = stats_;
  return part;
}

NeighborCounts ShardSearch::count() {
  run();
  return {std::move(counts_), plan_, stats_};
}

}  // namespace vicinal::ops

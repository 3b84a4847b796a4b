// How queries travel: all ranks get the queries of all, each searches its own shard for all of them, and the lists
// travel back (shard_search.hpp).
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/nearest.hpp"
#include "core/in_steps.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "ops/common/together.hpp"
#include "ops/nearest/part_lists.hpp"
#include "ops/nearest/shard_search.hpp"
#include "ops/nearest/shard_words.hpp"

namespace vicinal::ops {
namespace {

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

}  // namespace

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
    core::require_memory(ctx_, beside_ + part_bytes_ + static_cast<std::uint64_t>(size) * 2 * kWordBytes, kListsFound);
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
      core::require_memory(ctx_, beside_ + part_bytes_ + own * 2 * kWordBytes, kListsFound);
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
        core::require_memory(ctx_, beside_ + part_bytes_ + bytes, kListsFound);
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

}  // namespace vicinal::ops

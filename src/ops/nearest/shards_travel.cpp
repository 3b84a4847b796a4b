// How shards travel (shard_search.hpp): every rank gets the whole table, and searches it at once for its own queries,
// which costs what a search in one process does; where a rank has too little memory for that, the shards go round a
// ring, and each rank searches one at a time.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "core/in_steps.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "core/table_chunks.hpp"
#include "ops/common/together.hpp"
#include "ops/nearest/search.hpp"
#include "ops/nearest/shard_search.hpp"
#include "ops/nearest/shard_words.hpp"

namespace vicinal::ops {
namespace {

/// Sets bits `at` to `at + size` of `to`, which are 0, to the first ones of `from`.
void place_bits(const Context& ctx, Bitmap from, std::int64_t size, std::int64_t at, std::span<std::uint64_t> to) {
  core::Poll poll(ctx);
  for (std::int64_t begin = 0; begin < size; begin += 64) {
    poll.step();
    std::uint64_t word = from[static_cast<std::size_t>(begin / 64)];
    const std::int64_t bits = std::min<std::int64_t>(64, size - begin);
    if (bits < 64) word &= (std::uint64_t{1} << bits) - 1;
    const auto low = static_cast<std::size_t>((at + begin) / 64);
    const std::int64_t shift = (at + begin) % 64;
    to[low] |= word << shift;
    if (shift + bits > 64) to[low + 1] |= word >> (64 - shift);
  }
}

/// As memmove, to a lower place.
void move_down(const Context& ctx, const std::byte* from, std::size_t size, std::byte* to) {
  if (from == to) return;
  constexpr std::size_t kStep = std::size_t{core::kElementsPerStep} * sizeof(double);
  for (std::size_t begin = 0; begin < size; begin += kStep) {
    ctx.check_cancelled();
    std::memmove(to + begin, from + begin, std::min(kStep, size - begin));
  }
}

}  // namespace

void ShardSearch::pack_shard(std::span<std::uint64_t> words) const {
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

/// Refuses values of the rank's own rows that are not finite, before other ranks find them.
void ShardSearch::check_own_rows(const TableView& rows) const {
  const auto [row, column] = core::find_non_finite(ctx_, rows);
  if (row < 0) return;
  throw Error(ErrorCode::bad_data,
              fmt::format("table: row {}, column {} is not a finite number", first_row_ + row, column));
}

void ShardSearch::run_whole() {
  const int ranks = ranks_.size();
  const std::int64_t n = known_.row_begins.back();
  std::vector<std::uint64_t> words;  // of all shards, in their order
  std::vector<std::uint64_t> filter;
  std::vector<std::size_t> begins = {0};
  for (int rank = 0; rank < ranks; ++rank) begins.push_back(begins.back() + shard_words(rank));
  const auto words_of = [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    return std::span(words).subspan(begins[at], begins[at + 1] - begins[at]);
  };
  const auto rows_at = [&](int rank) { return words_of(rank).subspan(filter_words(rank)); };
  together(ranks_, [&] {
    core::require_memory(ctx_, plan_.memory, operation_of(call_.kind));
    core::resize_in_steps(ctx_, words, static_cast<std::int64_t>(begins.back()));
    if (!call_.filter().empty()) core::resize_in_steps(ctx_, filter, (n + 63) / 64);
    pack_shard(words_of(rank_));
    check_own_rows({rows_at(rank_).data(), shard_.dtype(), shard_.rows(), shard_.cols(), shard_.cols()});
  });
  const auto owner = [&](int step) { return (rank_ - step + ranks) % ranks; };
  for (int step = 1; step < ranks; ++step) {
    ranks_.send_receive(std::as_bytes(words_of(owner(step - 1))), (rank_ + 1) % ranks,
                        std::as_writable_bytes(words_of(owner(step))), owner(1));
  }
  together(ranks_, [&] {
    if (queries_.rows() == 0) return;
    std::byte* const rows = reinterpret_cast<std::byte*>(words.data());
    std::byte* to = rows;
    for (int rank = 0; rank < ranks; ++rank) {
      if (!filter.empty()) {
        place_bits(ctx_, words_of(rank), rows_of(rank), known_.row_begins[static_cast<std::size_t>(rank)], filter);
      }
      const auto size = static_cast<std::size_t>(rows_of(rank)) * bytes_of_row(shard_.dtype());
      move_down(ctx_, reinterpret_cast<const std::byte*>(rows_at(rank).data()), size, to);
      to += size;
    }
    const TableView table(rows, shard_.dtype(), n, shard_.cols(), shard_.cols());
    take(search(table, filter, queries_, call_.exclude(), call_.within.radii, place_of(0)));
  });
}

}  // namespace vicinal::ops

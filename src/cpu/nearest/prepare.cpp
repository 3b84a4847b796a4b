// What is found out about a table once (contract clause 6 and the screen's needs): that every value is finite, a robust
// center, the largest deviation from it, and which rows are equal bit for bit. One pass over the table, and n hashes
// dealt into buckets that fit a cache: O(n d). Equal rows are grouped first because masses of them would survive any
// screen.
#include "cpu/nearest/prepare.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

#include "core/aligned.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "core/table_chunks.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kMedianRows = 1024;

// Wide rows: fewer of them, so that the sample stays small beside the table.
std::int64_t sample_rows(const TableView& table) {
  return std::min(table.rows(), std::clamp<std::int64_t>((std::int64_t{1} << 23) / table.cols(), 16, kMedianRows));
}

// Coordinate medians of evenly spread rows; whole where the sample is whole, so that integers stay exact after
// centring.
std::vector<double> median_centre(const Context& ctx, const TableView& table) {
  const std::int64_t n = table.rows();
  const std::int64_t d = table.cols();
  const std::int64_t count = sample_rows(table);
  std::vector<double> sample(static_cast<std::size_t>(count * d));
  for (std::int64_t i = 0; i < count; ++i) {
    ctx.check_cancelled();
    const std::int64_t row = i * n / count;
    core::widen_rows(table, row, row + 1, sample.data() + i * d);
  }
  std::vector<double> centre(static_cast<std::size_t>(d));
  std::vector<double> column(static_cast<std::size_t>(count));
  for (std::int64_t j = 0; j < d; ++j) {
    if (j % 256 == 0) ctx.check_cancelled();
    bool whole = true;
    for (std::int64_t i = 0; i < count; ++i) {
      column[i] = sample[i * d + j];
      whole = whole && column[i] == std::nearbyint(column[i]);
    }
    const auto middle = column.begin() + count / 2;
    std::nth_element(column.begin(), middle, column.end());
    centre[j] = std::isfinite(*middle) ? *middle : 0;
    if (whole) centre[j] = std::nearbyint(centre[j]);
  }
  return centre;
}

std::uint64_t mix(std::uint64_t h, std::uint64_t word) {
  h = (h ^ word) * 0x9E3779B97F4A7C15U;
  return h ^ (h >> 29);
}

std::uint64_t hash_bytes(const std::byte* bytes, std::int64_t count) {
  // Four chains, because one would wait for its multiplications; joined in order, so that equal lanes do not cancel.
  std::uint64_t lanes[4] = {0x243F6A8885A308D3U, 0x13198A2E03707344U, 0xA4093822299F31D0U, 0x082EFA98EC4E6C89U};
  std::int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    std::uint64_t words[4];
    std::memcpy(words, bytes + i, sizeof words);
    for (int lane = 0; lane < 4; ++lane) lanes[lane] = mix(lanes[lane], words[lane]);
  }
  int lane = 0;
  for (; i + 8 <= count; i += 8, ++lane) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + i, sizeof word);
    lanes[lane] = mix(lanes[lane], word);
  }
  if (i < count) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + i, static_cast<std::size_t>(count - i));
    lanes[lane] = mix(lanes[lane], word);
  }
  return mix(mix(mix(mix(0, lanes[0]), lanes[1]), lanes[2]), lanes[3]);
}

// The largest |row_j - centre_j| of d values; NaN when a value is not finite (x - x is NaN then, and 0 otherwise).
double largest_deviation(const double* row, const double* centre, std::int64_t d) {
  double largest[8] = {};
  double zeros[8] = {};
  const auto add = [&](std::int64_t j, int lane) {
    const double deviation = std::fabs(row[j] - centre[j]);
    largest[lane] = deviation > largest[lane] ? deviation : largest[lane];
    zeros[lane] += row[j] - row[j];
  };
  std::int64_t j = 0;
  for (; j + 8 <= d; j += 8) {
    for (int lane = 0; lane < 8; ++lane) add(j + lane, lane);
  }
  for (; j < d; ++j) add(j, static_cast<int>(j & 7));
  double result = 0;
  double nothing = 0;
  for (int lane = 0; lane < 8; ++lane) {
    result = std::max(result, largest[lane]);
    nothing += zeros[lane];
  }
  return result + nothing;
}

// Bytes of row i, contiguous: where they lie, or copied.
const std::byte* row_bytes(const TableView& table, std::int64_t i, std::vector<std::byte>& copy) {
  const std::int64_t element = size_of(table.dtype());
  if (core::is_row_contiguous(table))
    return static_cast<const std::byte*>(table.data()) + i * table.row_stride() * element;
  copy.resize(static_cast<std::size_t>(table.cols() * element));
  core::copy_rows(table, i, i + 1, copy.data());
  return copy.data();
}

struct HashedRow {
  std::uint64_t hash;
  std::int64_t row;
};

// Rows dealt into buckets by the upper bits of their hashes, ascending in each bucket, chunk by chunk in parallel.
struct Buckets {
  core::AlignedArray<HashedRow> rows;
  std::vector<std::int64_t> begin;  // of each bucket, and the end

  Buckets(const Context& ctx, const core::AlignedArray<std::uint64_t>& hashes, std::int64_t n) : rows(n) {
    constexpr std::int64_t kChunk = 65536;
    int bits = 1;
    while (bits < 10 && (n >> bits) > 8192) ++bits;
    const std::size_t buckets = std::size_t{1} << bits;
    const auto chunks = static_cast<std::size_t>((n + kChunk - 1) / kChunk);
    std::vector<std::int64_t> place(chunks * buckets, 0);  // how many rows of a chunk a bucket gets; then where they go
    const auto each_row = [&](std::int64_t chunk, auto body) {
      const std::int64_t end = std::min(n, (chunk + 1) * kChunk);
      std::int64_t* mine = place.data() + static_cast<std::size_t>(chunk) * buckets;
      for (std::int64_t row = chunk * kChunk; row < end; ++row) {
        body(mine[hashes[row] >> (64 - bits)], row);
      }
    };
    core::parallel_for(ctx, static_cast<std::int64_t>(chunks), [&](std::int64_t chunk, int /*worker*/) {
      each_row(chunk, [](std::int64_t& count, std::int64_t) { ++count; });
    });
    std::int64_t next = 0;
    for (std::size_t b = 0; b < buckets; ++b) {
      begin.push_back(next);
      for (std::size_t c = 0; c < chunks; ++c) next += std::exchange(place[c * buckets + b], next);
    }
    begin.push_back(next);
    core::parallel_for(ctx, static_cast<std::int64_t>(chunks), [&](std::int64_t chunk, int /*worker*/) {
      each_row(chunk, [&](std::int64_t& at, std::int64_t row) { rows[at++] = {hashes[row], row}; });
    });
  }
};

// For each row of a bucket the first row that equals it, left in place of its hash. Returns how many are not their own.
// A table of open addresses holds the first rows. Rows of one hash are told apart by their values; more of them in a
// line than chance brings together are malice, and are called different, which only costs speed.
std::int64_t find_firsts(const Context& ctx, const TableView& table, HashedRow* begin, HashedRow* end) {
  constexpr int kLongestLine = 48;
  constexpr std::int64_t kAhead = 8;
  const auto bytes = static_cast<std::size_t>(table.cols() * size_of(table.dtype()));
  std::size_t slots = 16;
  while (slots < 2 * static_cast<std::size_t>(end - begin)) slots *= 2;
  std::vector<HashedRow> firsts(slots, HashedRow{0, -1});
  std::vector<std::byte> copy_a;
  std::vector<std::byte> copy_b;
  const bool in_place = core::is_row_contiguous(table);
  const auto prefetch = [&](std::int64_t row) {
    if (in_place && row >= 0) __builtin_prefetch(row_bytes(table, row, copy_a));
  };
  std::int64_t repeats = 0;
  for (HashedRow* entry = begin; entry < end; ++entry) {
    if ((entry - begin) % 4096 == 0) ctx.check_cancelled();
    if (end - entry > 2 * kAhead) prefetch(entry[2 * kAhead].row);
    if (end - entry > kAhead) prefetch(firsts[entry[kAhead].hash & (slots - 1)].row);
    const std::uint64_t hash = entry->hash;
    entry->hash = static_cast<std::uint64_t>(entry->row);
    for (std::size_t step = 0, slot = hash; step < kLongestLine; ++step, ++slot) {
      HashedRow& first = firsts[slot & (slots - 1)];
      if (first.row < 0) {
        first = {hash, entry->row};
        break;
      }
      if (first.hash != hash) continue;
      if (std::memcmp(row_bytes(table, entry->row, copy_a), row_bytes(table, first.row, copy_b), bytes) != 0) continue;
      entry->hash = static_cast<std::uint64_t>(first.row);
      ++repeats;
      break;
    }
  }
  return repeats;
}

// Groups equal rows where that pays: fills distinct, member_offsets and members. All rows of a group are in one bucket,
// so that workers that take buckets never meet.
void find_groups(const Context& ctx, const TableView& table, core::AlignedArray<std::uint64_t> hashes,
                 kernels::Prepared& index) {
  const std::int64_t n = table.rows();
  Buckets buckets(ctx, hashes, n);
  hashes = {};
  const auto each_bucket = [&](auto body) {
    core::parallel_for(ctx, static_cast<std::int64_t>(buckets.begin.size()) - 1, [&](std::int64_t b, int /*worker*/) {
      body(buckets.rows.data() + buckets.begin[b], buckets.rows.data() + buckets.begin[b + 1]);
    });
  };
  std::atomic<std::int64_t> repeats{0};
  each_bucket([&](HashedRow* begin, HashedRow* end) { repeats += find_firsts(ctx, table, begin, end); });
  // Below one row in 64 the groups would cost more than the few extra survivors do.
  if (repeats <= n / 64) return;
  core::AlignedArray<std::int64_t> place(n);  // of a first row: how many equal it; then where the next of them goes
  each_bucket([&](const HashedRow* begin, const HashedRow* end) {
    for (const HashedRow* entry = begin; entry < end; ++entry) {
      const auto first = static_cast<std::int64_t>(entry->hash);
      place[entry->row] = 0;  // a first row comes before all that equal it
      ++place[first];
    }
  });
  index.distinct.reserve(static_cast<std::size_t>(n - repeats));
  index.member_offsets.reserve(static_cast<std::size_t>(n - repeats) + 1);
  std::int64_t next = 0;
  for (std::int64_t row = 0; row < n; ++row) {
    if (row % (1 << 20) == 0) ctx.check_cancelled();
    if (place[row] == 0) continue;
    index.distinct.push_back(row);
    index.member_offsets.push_back(next);
    next += std::exchange(place[row], next);
  }
  index.member_offsets.push_back(n);
  index.members.resize(static_cast<std::size_t>(n));
  each_bucket([&](const HashedRow* begin, const HashedRow* end) {  // ascending, as they come
    for (const HashedRow* entry = begin; entry < end; ++entry) {
      index.members[place[static_cast<std::int64_t>(entry->hash)]++] = entry->row;
    }
  });
}

}  // namespace

std::uint64_t prepare_scratch(const Context& ctx, const TableView& table) {
  const std::int64_t d = table.cols();
  const std::int64_t elements = (sample_rows(table) + 1) * d + ctx.threads() * core::rows_of_chunk(d) * d;
  const std::int64_t grouping = table.is_block_source() ? 0 : 64 * table.rows();
  return static_cast<std::uint64_t>(elements) * sizeof(double) + static_cast<std::uint64_t>(grouping);
}

void prepare(const Context& ctx, kernels::Prepared& index) {
  const TableView& table = index.table;
  const std::int64_t n = table.rows();
  const std::int64_t d = table.cols();
  index.centre = median_centre(ctx, table);

  const std::int64_t row_size = d * size_of(table.dtype());
  const bool group = !table.is_block_source();  // re-reading scattered rows of a source would cost more than it saves
  core::AlignedArray<std::uint64_t> hashes(group ? n : 0);
  const std::int64_t together = std::max<std::int64_t>(1, 64 / d);  // narrow rows, as if they were one
  std::vector<double> centres;
  for (std::int64_t i = 0; i < together; ++i) centres.insert(centres.end(), index.centre.begin(), index.centre.end());
  std::mutex mutex;
  std::int64_t non_finite = -1;
  double largest = 0;
  core::for_each_chunk(ctx, table, [&](std::int64_t begin, const double* rows, std::int64_t count) {
    double chunk_largest = 0;
    for (std::int64_t i = 0; i < count; i += together) {
      const double deviation = largest_deviation(rows + i * d, centres.data(), std::min(together, count - i) * d);
      chunk_largest = deviation > chunk_largest || std::isnan(deviation) ? deviation : chunk_largest;
    }
    std::vector<std::byte> copy;
    for (std::int64_t i = 0; group && i < count; ++i) {
      hashes[begin + i] = hash_bytes(row_bytes(table, begin + i, copy), row_size);
    }
    const std::int64_t at = std::isnan(chunk_largest) ? core::first_non_finite(rows, count * d) : -1;
    const std::scoped_lock lock(mutex);
    largest = std::max(largest, chunk_largest);
    if (at >= 0 && (non_finite < 0 || begin * d + at < non_finite)) non_finite = begin * d + at;
  });
  if (non_finite >= 0) {
    throw Error(ErrorCode::bad_data, "table: row " + std::to_string(index.first_id + non_finite / d) + ", column " +
                                         std::to_string(non_finite % d) + " is not a finite number");
  }
  index.largest = std::min(largest, std::numeric_limits<double>::max());  // finite, so that it can be saved
  if (group) find_groups(ctx, table, std::move(hashes), index);
}

}  // namespace vicinal::cpu

// k nearest neighbors by a screen on the matrix unit and an exact finish. Rows are packed once; then, for a batch of
// queries: scores of a sample give the first thresholds, screens over runs of the table that grow by a fixed ratio let
// some k times that ratio rows through, and between them the exact keys of the k best of these lower the thresholds
// (refine.cu). A radius is a threshold from the start. Where survivors do not fit a list the ladder begins: equal rows
// are put together and rows far out shortened, once a search, if that pays (chosen.hpp,
// formulas/nearest/half_screen.hpp); the queries are screened again from the limits that they have, with room for more;
// then ball by ball, centered where they are (ball.hpp); whoever is left meets every row in float64 (direct.cu).
// Contract clause 3: a weak bound costs time, never an answer. Cost: 2 m n K products; (d + 5 columns, 2 bytes) a row
// and `kCapacity` survivors a query of memory.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "cuda/nearest/direct.hpp"
#include "cuda/nearest/screen/ball.hpp"
#include "cuda/nearest/screen/pack.hpp"
#include "cuda/nearest/screen/pack_bytes.hpp"
#include "cuda/nearest/screen/refine.hpp"
#include "cuda/nearest/screen/screen.hpp"
#include "cuda/nearest/task.hpp"
#include "formulas/nearest/byte_screen.hpp"

namespace vicinal::cuda {
namespace {

constexpr std::int64_t kMaxNeighbors = 1024;
constexpr std::int64_t kMaxScreenRows = std::int64_t{1} << 31;  // numbered in 32 bits
constexpr std::int64_t kUsualNeighbors = 16;                    // where their number is not known, or small
constexpr std::int64_t kMinSample = 32;                         // tiles: a sixteenth of the table, between these two
constexpr std::int64_t kMaxSample = 96;
constexpr std::int64_t kGrowth = 8;        // at most, of the part of the table that was seen, from screen to screen
constexpr std::uint32_t kCapacity = 2048;  // survivors a query, at least
constexpr std::uint32_t kWideCapacity = 1 << 14;  // where lists overflowed; a quarter can be ranked in shared memory
constexpr std::int64_t kUsualQueries = 1 << 15;   // of a batch
constexpr std::int64_t kMaxQueries = 1 << 17;     // the same, of few columns and neighbors
constexpr std::int64_t kWideQueries = 1 << 12;    // where lists overflowed
constexpr std::int64_t kBatchTerms = std::int64_t{1} << 30;  // queries x neighbors x columns
constexpr std::uint64_t kMinStream = 64;  // entries that a warp of the screen may leave in its stream
constexpr std::uint64_t kUsualStream = 1 << 11;
constexpr std::uint64_t kMaxStream = 1 << 17;
constexpr std::uint64_t kSpareBytes = 1 << 20;  // for what is small
constexpr double kScreenWork = 2e13;            // products of one launch: some 30 ms, so that a cancel is noticed
constexpr std::int64_t kPieces = 8;             // of the table where a radius is searched
constexpr std::int64_t kMaxScores = 1 << 28;    // written out, where fusion is left out
constexpr int kMaxParts = 8;                    // of the rows of a tile that a thread has, where a sample is looked at
constexpr int kMaxBalls = 64;                   // of a batch
constexpr double kFarOut = 16;                  // times as far as nearly all rows: such rows are shortened

// Lists hold twice the survivors that are expected, k x kGrowth.
std::uint32_t capacity_for(std::int64_t k) {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(kCapacity, (k * kGrowth * 2 + 127) / 128 * 128));
}

// How much farther each screen reaches than the one before, so that the last one ends with the table.
double growth_of(std::int64_t tiles, std::int64_t seen) {
  const double ratio = static_cast<double>(tiles) / static_cast<double>(std::max<std::int64_t>(seen, 1));
  const double screens = std::ceil(std::log(ratio) / std::log(static_cast<double>(kGrowth)));
  return std::pow(ratio, 1 / std::max(screens, 1.0));
}

// Queries of a batch, all of the same size: more where their keys take little time between two looks for a cancel.
std::int64_t most_queries(std::int64_t m, std::int64_t d, std::int64_t k) {
  const std::int64_t most = std::clamp(kBatchTerms / (std::max<std::int64_t>(k, 1) * d), kUsualQueries, kMaxQueries);
  const std::int64_t batches = std::max<std::int64_t>(1, (m + most - 1) / most);
  const std::int64_t tiles = ((m + batches - 1) / batches + kQueryTile - 1) / kQueryTile;
  return std::max<std::int64_t>(1, tiles) * kQueryTile;
}

std::uint64_t bytes_a_query(std::int64_t d, std::int64_t capacity) {
  return static_cast<std::uint64_t>(d * 8 + core::half_columns(d) * 2 + 256 +
                                    capacity * static_cast<std::int64_t>(sizeof(Survivor)));
}

// Some of it is padded to whole tiles.
std::uint64_t bytes_of(std::int64_t queries, std::int64_t d, std::int64_t capacity) {
  const std::int64_t padded = (queries + kQueryTile - 1) / kQueryTile * kQueryTile;
  return static_cast<std::uint64_t>(queries) * bytes_a_query(d, capacity) +
         static_cast<std::uint64_t>(padded - queries) * bytes_a_query(0, 0) +
         static_cast<std::uint64_t>(padded - queries) * static_cast<std::uint64_t>(core::half_columns(d)) * 2;
}

// What fits into the memory there is (contract clause 7).
struct Sizes {
  std::uint64_t packed = 0;         // bytes of the table's float16 rows
  std::uint32_t stream = 0;         // entries of a warp's stream
  std::uint32_t capacity = 0;       // survivors of a query
  std::int64_t queries = 0;         // of a batch
  std::uint32_t wide_capacity = 0;  // the same two where lists overflowed
  std::int64_t wide_queries = 0;
  std::uint64_t passes = 0;  // bytes beside the packed table
  std::uint64_t ladder = 0;  // bytes for the rungs between the second screen and float64; 0: there is no room for them

  Sizes(const Engine& engine, std::int64_t n, std::int64_t d, std::int64_t m, std::int64_t k, std::uint64_t limit) {
    const auto tiles = static_cast<std::uint64_t>((n + kTableTile - 1) / kTableTile);
    packed = tiles * kTableTile * static_cast<std::uint64_t>(core::half_columns(d)) * sizeof(__half);
    capacity = capacity_for(k);
    const auto streams = static_cast<std::uint64_t>(stream_count(engine));
    const std::uint64_t least =
        packed + streams * kMinStream * sizeof(Passed) + kQueryTile * bytes_a_query(d, capacity) + kSpareBytes;
    if (limit < least) {
      throw Failure{ErrorCode::over_memory, "method fused needs " + std::to_string(least) +
                                                " bytes of device memory beside the table, but " +
                                                std::to_string(limit) + " are left within the limit"};
    }
    passes = limit - packed - kSpareBytes;
    const std::uint64_t lists = passes - passes / 8;
    const auto fitting = [&](std::uint64_t bytes, std::int64_t most) {
      const auto fit = static_cast<std::int64_t>(lists / bytes) / kQueryTile * kQueryTile;
      return std::clamp<std::int64_t>(fit, kQueryTile, most);
    };
    queries = fitting(bytes_a_query(d, capacity), most_queries(m, d, k));
    // Twice what is expected, if all warps let as much through.
    const std::uint64_t wanted =
        static_cast<std::uint64_t>(4 * std::min(m, queries) * std::max(k, kUsualNeighbors) * kGrowth) / streams;
    const std::uint64_t room = passes / 8 / (streams * sizeof(Passed));
    stream = static_cast<std::uint32_t>(
        std::max(kMinStream, std::min(room, std::clamp<std::uint64_t>(wanted, kUsualStream, kMaxStream))));
    wide_capacity = kWideCapacity;
    while (wide_capacity > capacity && kQueryTile * bytes_a_query(d, wide_capacity) > lists) wide_capacity /= 2;
    wide_capacity = std::max(wide_capacity, capacity);
    wide_queries = fitting(bytes_a_query(d, wide_capacity), kWideQueries);
    passes = streams * stream * sizeof(Passed) + std::max(bytes_of(std::min(m, queries), d, capacity),
                                                          bytes_of(std::min(m, wide_queries), d, wide_capacity));
    // Equal rows once, and the half of the table that is a ball's at most, packed again.
    const std::uint64_t wanted_there =
        std::max(distinct_scratch(n), distinct_bytes(n) + choice_bytes(n) + packed / 2 + kSpareBytes);
    if (limit >= packed + passes + kSpareBytes + wanted_there) ladder = wanted_there;
  }
};

// Rows of any type, by number.
__global__ void gather_rows(const char* from, const std::int64_t* numbers, std::int64_t row_bytes, char* to) {
  const char* row = from + numbers[blockIdx.x] * row_bytes;
  char* out = to + blockIdx.x * row_bytes;
  for (std::int64_t i = threadIdx.x; i < row_bytes; i += blockDim.x) out[i] = row[i];
}
// from null: first and on.
__global__ void gather_numbers(const std::int64_t* from, std::int64_t first, const std::int64_t* numbers,
                               std::int64_t count, std::int64_t* to) {
  const std::int64_t i = own_number();
  if (i < count) to[i] = from != nullptr ? from[numbers[i]] : first + numbers[i];
}
__global__ void scatter_lists(const std::int64_t* ids, const double* distances, const std::int64_t* rows,
                              std::int64_t k, std::int64_t* to_ids, double* to_distances) {
  const std::int64_t row = rows[blockIdx.x];
  for (std::int64_t j = threadIdx.x; j < k; j += blockDim.x) {
    to_ids[row * k + j] = ids[blockIdx.x * k + j];
    to_distances[row * k + j] = distances[blockIdx.x * k + j];
  }
}

__global__ void keep_kernel(const std::int64_t* numbers, const double* limits, std::int64_t count, Unanswered still) {
  const std::int64_t i = own_number();
  if (i >= count) return;
  const std::uint32_t place = atomicAdd(still.count, 1U);
  still.queries[place] = numbers[i];
  still.limits[place] = limits[i];
}

// Some queries of the search, as a search of their own.
struct Subset {
  Buffer<char> rows;
  Buffer<std::int64_t> numbers;
  Buffer<std::int64_t> exclude;
  Search search;
};
Subset subset_of(const Engine& engine, const Search& search, const std::int64_t* numbers, std::int64_t count) {
  Subset subset;
  subset.search = search;
  const std::int64_t row_bytes = search.queries.d * size_of(search.queries.dtype);
  subset.rows = Buffer<char>(engine, count * row_bytes);
  gather_rows<<<static_cast<unsigned>(count), 128, 0, engine.stream>>>(static_cast<const char*>(search.queries.data),
                                                                       numbers, row_bytes, subset.rows.data());
  check_launch("gather queries");
  subset.search.queries.data = subset.rows.data();
  subset.search.queries.n = count;
  subset.numbers = Buffer<std::int64_t>(engine, count);
  gather_numbers<<<blocks_for(count, 256), 256, 0, engine.stream>>>(search.numbers, search.first_query, numbers, count,
                                                                    subset.numbers.data());
  subset.search.numbers = subset.numbers.data();
  if (search.exclude != nullptr) {
    subset.exclude = Buffer<std::int64_t>(engine, count);
    gather_numbers<<<blocks_for(count, 256), 256, 0, engine.stream>>>(search.exclude, 0, numbers, count,
                                                                      subset.exclude.data());
    subset.search.exclude = subset.exclude.data();
  }
  check_launch("gather numbers");
  return subset;
}

// Queries [first, first + count) of the search.
Search slice_of(const Search& search, std::int64_t first, std::int64_t count) {
  Search part = search;
  part.queries.data =
      static_cast<const char*>(search.queries.data) + first * search.queries.d * size_of(search.queries.dtype);
  part.queries.n = count;
  part.first_query += first;
  if (search.numbers != nullptr) part.numbers += first;
  if (search.exclude != nullptr) part.exclude += first;
  return part;
}

// Bytes are multiplied as what they are, where that is less work than float16.
Quantization frame_of(const Engine& engine, const Search& search) {
  const bool bytes = core::byte_screen_serves(search.table.dtype, search.queries.dtype, search.metric, search.table.d,
                                              engine.compiled_for);
  return bytes && engine.ablation != core::Ablation::centring
             ? make_byte_frame(search.table, search.metric)
             : make_frame(engine, search.table, search.facts, search.metric,
                          engine.ablation != core::Ablation::centring);
}

class FusedSearch {
 public:
  /// `within`: of a search for all rows within a key; null: `lists` are filled.
  FusedSearch(const Engine& engine, const Search& search, const KLists& lists, const DirectTask* within)
      : engine_(engine),
        search_(search),
        lists_(lists),
        within_(within),
        sizes_(engine, search.table.n, search.table.d, search.queries.n, lists.k, engine.memory_limit),
        frame_(frame_of(engine, search)),
        passed_(engine, stream_count(engine) * sizes_.stream),
        passed_counts_(engine, stream_count(engine)),
        survivors_(engine, 1) {
    if (search.filter != nullptr) {
      chosen_ = choose_filtered(engine, search.table.n, search.filter, search.first_row);
    } else {
      chosen_.view.count = search.table.n;
    }
    table_ = pack_table(engine, search.table, chosen_.view, frame_);
    survivors_.zero();
  }

  void run(Counters& counters) {
    const std::int64_t m = search_.queries.n;
    for (std::int64_t first = 0; first < m; first += sizes_.queries) {
      const std::int64_t count = std::min(sizes_.queries, m - first);
      engine_.host.check_cancelled();
      run_batch(first, count, counters);
      engine_.host.progress("search", static_cast<double>(first + count) / static_cast<double>(m));
    }
    unsigned long long survivors = 0;
    check(cudaMemcpyAsync(&survivors, survivors_.data(), sizeof survivors, cudaMemcpyDeviceToHost, engine_.stream),
          "read a counter");
    engine_.synchronize();
    counters.survivors += static_cast<std::int64_t>(survivors);
  }

 private:
  /// What a batch is asked for: a part of the search, and where its answers go.
  struct Part {
    Search search;
    KLists lists;
    DirectTask within;
  };
  Part part_of(std::int64_t first, std::int64_t count) const {
    Part part{slice_of(search_, first, count), lists_, {}};
    if (within_ == nullptr) {
      part.lists.ids += first * lists_.k;
      part.lists.distances += first * lists_.k;
      return part;
    }
    part.within = *within_;
    part.within.counts += first;
    if (part.within.offsets != nullptr) {
      part.within.offsets += first;
    } else if (part.within.keys != nullptr) {
      part.within.keys += first * part.within.room;
      part.within.ids += first * part.within.room;
    }
    return part;
  }

  /// Queries that wait, and how many: known to the device, and to the host when it asked.
  struct Left {
    Waiting waiting;
    Buffer<std::uint32_t> count;
    Left(const Engine& engine, std::int64_t capacity) : waiting(engine, capacity), count(engine, 1) { count.zero(); }
    [[nodiscard]] Unanswered takes() const { return {count.data(), waiting.numbers.data(), waiting.limits.data()}; }
    [[nodiscard]] std::int64_t size(const Engine& engine) const {
      std::uint32_t left = 0;
      check(cudaMemcpyAsync(&left, count.data(), sizeof left, cudaMemcpyDeviceToHost, engine.stream), "read a counter");
      engine.synchronize();
      return left;
    }
  };

  /// Screens of one batch: k lists start from the limits given, or from a sample.
  PackedQueries screened(const Search& queries_of, const TablePack& table, const Quantization& frame,
                         std::uint32_t capacity, const double* limits) {
    PackedQueries queries = pack_queries(engine_, queries_of.queries, frame, capacity);
    queries.view.eligible = queries_of;
    queries.view.eligible.filter = nullptr;  // what it leaves out is not chosen
    const std::int64_t tiles = table.view.tile_count;
    const int k = static_cast<int>(lists_.k);
    std::int64_t seen = std::min(tiles, std::clamp(tiles / 16, kMinSample, kMaxSample));
    if (within_ != nullptr) {
      aim(engine_, queries, within_->largest_key);
      // Piece by piece, because nobody knows how many there are, and each begins with empty streams.
      for (std::int64_t piece = 0; piece < kPieces; ++piece) {
        screen_tiles(table, queries, tiles * piece / kPieces, tiles * (piece + 1) / kPieces);
      }
      return queries;
    }
    if (limits != nullptr) {
      resume(engine_, queries, limits);
    } else if (engine_.ablation == core::Ablation::sample) {
      seen = std::min<std::int64_t>(tiles, capacity / kTableTile);
      screen_tiles(table, queries, 0, seen);
      if (seen < tiles) tighten(engine_, search_.table, table.view.chosen, queries, k);
    } else {
      // The lists are empty yet: their memory takes the best of the sample, of some four groups of rows a neighbor.
      auto* best = reinterpret_cast<float*>(queries.survivors.data());
      int parts = 2;
      while (parts < kMaxParts && bests_a_tile(parts) * seen < 4 * k) parts *= 2;
      screen_best(engine_, table.view, queries.view, 0, seen, parts, best);
      seed(engine_, search_.table, table.view, queries, k, best, static_cast<int>(seen), parts);
    }
    std::int64_t done = engine_.ablation == core::Ablation::sample && limits == nullptr ? seen : 0;
    const double growth = growth_of(tiles, seen);
    auto reach = static_cast<double>(seen);
    while (done < tiles) {
      reach *= growth;
      // Rounded by less than a tile, unless that is all.
      const bool last = engine_.ablation == core::Ablation::tightening || reach > static_cast<double>(tiles) - 1;
      const std::int64_t end = last ? tiles : std::max(done + 1, static_cast<std::int64_t>(reach));
      screen_tiles(table, queries, done, end);
      done = end;
      if (done < tiles) tighten(engine_, search_.table, table.view.chosen, queries, k);
    }
    return queries;
  }

  /// In runs that are short enough for a cancel.
  void screen_tiles(const TablePack& table, const PackedQueries& queries, std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    const double tile_work =
        2.0 * kTableTile * table.view.columns * kQueryTile * static_cast<double>(queries.view.tile_count);
    const auto run = std::max<std::int64_t>(1, static_cast<std::int64_t>(kScreenWork / tile_work));
    const Streams streams{passed_.data(), passed_counts_.data(), sizes_.stream};
    if (engine_.ablation == core::Ablation::fusion) return unfused(table, queries, begin, end);
    if (run >= end - begin) return screen(engine_, table.view, queries.view, begin, end, streams);
    Pace pace(engine_);
    for (std::int64_t tile = begin; tile < end; tile += run) {
      screen(engine_, table.view, queries.view, tile, std::min(end, tile + run), streams);
      pace.step();
    }
  }

  /// Scores written out, and read again.
  void unfused(const TablePack& table, const PackedQueries& queries, std::int64_t begin, std::int64_t end) {
    const std::int64_t tile_scores = kTableTile * queries.view.rows;
    const std::int64_t run = std::clamp<std::int64_t>(kMaxScores / tile_scores, 1, end - begin);
    const Buffer<float> scores(engine_, run * tile_scores);
    for (std::int64_t tile = begin; tile < end; tile += run) {
      const std::int64_t last = std::min(end, tile + run);
      screen_all(engine_, table.view, queries.view, tile, last, scores.data());
      pick(engine_, table.view, queries.view, tile, last, scores.data());
      engine_.host.check_cancelled();
    }
  }

  /// Answers, or numbers of those that wait still. `outputs`: numbers of the queries within the part, null: all.
  void settle(const Part& part, const Chosen& chosen, PackedQueries& queries, const std::int64_t* outputs,
              const Left& left) {
    if (within_ != nullptr) {
      return collect(engine_, search_.table, chosen, queries, part.within, outputs, survivors_.data(), left.takes());
    }
    finish(engine_, search_.table, chosen, queries, part.lists, outputs, survivors_.data(), left.takes());
  }

  void run_batch(std::int64_t first, std::int64_t count, Counters& counters) {
    const Part part = part_of(first, count);
    Left left(engine_, count);
    {
      PackedQueries queries = screened(part.search, table_, frame_, sizes_.capacity, nullptr);
      settle(part, chosen_.view, queries, nullptr, left);
    }
    std::int64_t waiting = left.size(engine_);
    if (waiting == 0) return;
    counters.escalated += waiting;
    if (pack_better()) {
      left = again(part, left, waiting, sizes_.capacity, sizes_.queries, frame_.numbers.shortens);
      waiting = left.size(engine_);
      if (waiting == 0) return;
    }
    left = again(part, left, waiting, sizes_.wide_capacity, sizes_.wide_queries);
    waiting = left.size(engine_);
    if (waiting == 0) return;
    if (within_ == nullptr && centred(search_.metric) && sizes_.ladder > 0 &&
        engine_.ablation != core::Ablation::balls) {
      left = ball_by_ball(part, std::move(left), waiting);
      waiting = left.size(engine_);
      if (waiting == 0) return;
    }
    counters.uncertified += waiting;
    in_float64(part, left, waiting);
  }

  static bool centred(Metric metric) { return metric == Metric::euclidean || metric == Metric::sqeuclidean; }

  /// Once a search: equal rows once, and a scale for the many where few rows are far out. Whether either pays.
  bool pack_better() {
    if (std::exchange(packed_better_, true)) return false;
    std::optional<ChosenRows> distinct;
    if (sizes_.ladder > 0 && engine_.ablation != core::Ablation::grouping) {
      distinct = choose_distinct(engine_, search_.table, chosen_.view);
    }
    std::optional<Quantization> frame = frame_of_the_many();
    if (!distinct && !frame) return false;
    table_ = {};
    if (distinct) chosen_ = *std::move(distinct);
    if (frame) frame_ = *std::move(frame);
    table_ = pack_table(engine_, search_.table, chosen_.view, frame_);
    return true;
  }

  /// Where the scale of the longest row leaves little of all others.
  std::optional<Quantization> frame_of_the_many() const {
    if (!centred(search_.metric) || frame_.numbers.bytes) return std::nullopt;
    TableFacts facts = search_.facts;
    facts.longest = usual_radius(engine_, search_.table, chosen_.view, frame_.numbers.centre);
    if (!(facts.longest > 0 && facts.longest <= search_.facts.longest / kFarOut)) return std::nullopt;
    Quantization frame =
        make_frame(engine_, search_.table, facts, search_.metric, engine_.ablation != core::Ablation::centring);
    frame.numbers.shortens = true;
    return frame;
  }

  /// Screens queries again, `most` at a time, with room for `capacity` survivors each, from the limits that they have;
  /// `anew`: from a sample, because a scale that showed nothing gave them.
  Left again(const Part& part, const Left& left, std::int64_t waiting, std::uint32_t capacity, std::int64_t most,
             bool anew = false) {
    Left still(engine_, waiting);
    for (std::int64_t first = 0; first < waiting; first += most) {
      engine_.host.check_cancelled();
      screen_some(part, table_, frame_, left.waiting, first, std::min(most, waiting - first), capacity, still, anew);
    }
    return still;
  }
  void screen_some(const Part& part, const TablePack& table, const Quantization& frame, const Waiting& waiting,
                   std::int64_t first, std::int64_t count, std::uint32_t capacity, const Left& still,
                   bool anew = false) {
    const std::int64_t* numbers = waiting.numbers.data() + first;
    const Subset some = subset_of(engine_, part.search, numbers, count);
    PackedQueries queries =
        screened(some.search, table, frame, capacity, anew ? nullptr : waiting.limits.data() + first);
    settle(part, table.view.chosen, queries, numbers, still);
  }

  /// The same, ball by ball, each with the rows that may be answers in it.
  Left ball_by_ball(const Part& part, Left left, std::int64_t waiting) {
    const bool narrow = search_.table.dtype != DType::float64;
    const Buffer<double> centre(engine_, search_.table.d);
    const Buffer<std::uint8_t> flags(engine_, chosen_.view.count);
    Left still(engine_, waiting);
    std::int64_t done = 0;
    for (int balls = 0; balls < kMaxBalls && done < waiting; ++balls) {
      engine_.host.check_cancelled();
      const Ball ball =
          next_ball(engine_, part.search.queries, narrow, left.waiting, done, waiting - done, centre.data());
      const std::int64_t end = done + ball.queries;
      if (std::isfinite(ball.radius)) {
        flag_ball(engine_, search_.table, chosen_.view, centre.data(), ball.radius, flags.data());
        const ChosenRows rows = choose(engine_, chosen_.view, flags.data());
        if (rows.view.count <= chosen_.view.count / 2) {
          TableFacts facts = search_.facts;
          facts.centre = centre.data();
          facts.longest = ball.radius;
          const Quantization frame = make_frame(engine_, search_.table, facts, search_.metric);
          const TablePack table = pack_table(engine_, search_.table, rows.view, frame);
          for (; done < end; done += std::min(sizes_.wide_queries, end - done)) {
            screen_some(part, table, frame, left.waiting, done, std::min(sizes_.wide_queries, end - done),
                        sizes_.wide_capacity, still);
          }
          continue;
        }
      }
      keep(left.waiting, done, end, still);
      done = end;
    }
    keep(left.waiting, done, waiting, still);
    return still;
  }
  /// Leaves some queries waiting.
  void keep(const Waiting& waiting, std::int64_t begin, std::int64_t end, const Left& still) {
    if (begin == end) return;
    keep_kernel<<<blocks_for(end - begin, 256), 256, 0, engine_.stream>>>(
        waiting.numbers.data() + begin, waiting.limits.data() + begin, end - begin, still.takes());
    check_launch("keep queries");
  }

  void in_float64(const Part& part, const Left& left, std::int64_t waiting) {
    const std::int64_t* numbers = left.waiting.numbers.data();
    const Subset rest = subset_of(engine_, part.search, numbers, waiting);
    Engine engine = engine_;
    engine.host.report = nullptr;
    std::uint64_t taken = sizes_.packed + passed_.bytes() + kSpareBytes + rest.rows.bytes() + sizes_.ladder;
    if (within_ != nullptr) {
      engine.memory_limit -= std::min(engine.memory_limit, taken);
      DirectTask task = part.within;
      task.search = &rest.search;
      task.slots = numbers;
      return direct_pass(engine, task);
    }
    const std::int64_t k = lists_.k;
    const Buffer<std::int64_t> ids(engine_, waiting * k);
    const Buffer<double> distances(engine_, waiting * k);
    taken += 2 * ids.bytes();
    engine.memory_limit -= std::min(engine.memory_limit, taken);
    direct_k_lists(engine, rest.search, {k, ids.data(), distances.data()});
    scatter_lists<<<static_cast<unsigned>(waiting), 128, 0, engine_.stream>>>(ids.data(), distances.data(), numbers, k,
                                                                              part.lists.ids, part.lists.distances);
    check_launch("scatter answers");
  }

  const Engine& engine_;
  const Search& search_;
  const KLists& lists_;
  const DirectTask* within_;
  Sizes sizes_;
  Quantization frame_;
  ChosenRows chosen_;
  TablePack table_;
  Buffer<Passed> passed_;
  Buffer<std::uint32_t> passed_counts_;
  Buffer<unsigned long long> survivors_;
  bool packed_better_ = false;
};

}  // namespace

bool fused_serves(const Engine& engine, Metric metric, std::int64_t n, std::int64_t d, std::int64_t k) {
  const bool product = metric == Metric::euclidean || metric == Metric::sqeuclidean ||
                       metric == Metric::inner_product || metric == Metric::cosine;
  if (!product || engine.sums.model.width == 0) return false;
  if (n > kMaxScreenRows || d > core::kLargestHalfColumns || k > kMaxNeighbors) return false;
  if (!can_refine(engine, static_cast<int>(d), static_cast<int>(k))) return false;
  // A third of the limit for the packed rows leaves as much for the table and for the passes.
  const auto columns = static_cast<std::uint64_t>(core::half_columns(d));
  return static_cast<std::uint64_t>(n) * columns * sizeof(__half) <= engine.memory_limit / 3;
}

std::uint64_t fused_bytes(const Engine& engine, const Search& search, std::int64_t m, std::int64_t k,
                          std::uint64_t limit) {
  const Sizes sizes(engine, search.table.n, search.table.d, m, k, limit);
  return sizes.packed + sizes.passes + sizes.ladder + kSpareBytes;
}

void fused_k_lists(const Engine& engine, const Search& search, const KLists& lists, Counters& counters) {
  if (search.queries.n == 0) return;
  FusedSearch(engine, search, lists, nullptr).run(counters);
}

void fused_within(const Engine& engine, const Search& search, const DirectTask& task, Counters& counters) {
  if (search.queries.n == 0) return;
  const KLists none;
  FusedSearch(engine, search, none, &task).run(counters);
}

}  // namespace vicinal::cuda

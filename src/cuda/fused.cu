// k nearest neighbors by a screen on the matrix unit and an exact finish. Rows are packed once; then, for a batch of
// queries: scores of a sample give the first thresholds, screens over runs of the table that grow by a fixed ratio let
// some k times that ratio rows through, and between them the exact keys of the k best of these lower the thresholds
// (refine.cu). Queries whose survivors do not fit their list are screened again from the thresholds they have, with
// room for more; whoever is left meets every row in float64 (direct.cu). Contract clause 3: a weak bound costs time,
// never an answer. Cost: 2 m n K products; (d + 5 columns, 2 bytes) a row and `kCapacity` survivors a query of memory.
#include <algorithm>
#include <string>

#include "core/byte_screen.hpp"
#include "cuda/pack.hpp"
#include "cuda/pack_bytes.hpp"
#include "cuda/refine.hpp"
#include "cuda/screen.hpp"
#include "cuda/task.hpp"

namespace vicinal::cuda {
namespace {

constexpr std::int64_t kMostNeighbors = 1024;
constexpr std::int64_t kMostRows = std::int64_t{1} << 31;  // numbered in 32 bits
constexpr std::int64_t kSampleTiles = 32;
constexpr std::int64_t kGrowth = 6;               // of the part of the table that was seen, from one screen to the next
constexpr std::uint32_t kCapacity = 2048;         // survivors a query, at least
constexpr std::uint32_t kWideCapacity = 1 << 14;  // where lists overflowed; a quarter can be ranked in shared memory
constexpr std::int64_t kMostQueries = 1 << 15;    // a batch
constexpr std::uint64_t kLeastStream = 64;        // entries that a warp of the screen may leave in its stream
constexpr std::uint64_t kUsualStream = 1 << 11;
constexpr std::uint64_t kMostStream = 1 << 13;
constexpr std::uint64_t kSpareBytes = 1 << 20;  // for what is small

// Lists hold twice the survivors that are expected, k x kGrowth.
std::uint32_t capacity_for(std::int64_t k) {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(kCapacity, (k * kGrowth * 2 + 127) / 128 * 128));
}

std::uint64_t bytes_a_query(std::int64_t d, std::int64_t capacity) {
  return static_cast<std::uint64_t>(d * 8 + core::half_columns(d) * 2 + 256 +
                                    capacity * static_cast<std::int64_t>(sizeof(Survivor)));
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

  Sizes(const Engine& engine, std::int64_t n, std::int64_t d, std::int64_t m, std::int64_t k, std::uint64_t limit) {
    const auto tiles = static_cast<std::uint64_t>((n + kTableTile - 1) / kTableTile);
    packed = tiles * kTableTile * static_cast<std::uint64_t>(core::half_columns(d)) * sizeof(__half);
    capacity = capacity_for(k);
    const auto streams = static_cast<std::uint64_t>(stream_count(engine));
    const std::uint64_t least =
        packed + streams * kLeastStream * sizeof(Passed) + kQueryTile * bytes_a_query(d, capacity) + kSpareBytes;
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
    queries = fitting(bytes_a_query(d, capacity), kMostQueries);
    // Twice what is expected, if all warps let as much through.
    const std::uint64_t wanted = static_cast<std::uint64_t>(4 * std::min(m, queries) * k * kGrowth) / streams;
    const std::uint64_t room = passes / 8 / (streams * sizeof(Passed));
    stream = static_cast<std::uint32_t>(
        std::max(kLeastStream, std::min(room, std::clamp<std::uint64_t>(wanted, kUsualStream, kMostStream))));
    wide_capacity = kWideCapacity;
    while (wide_capacity > capacity && kQueryTile * bytes_a_query(d, wide_capacity) > lists) wide_capacity /= 2;
    wide_capacity = std::max(wide_capacity, capacity);
    wide_queries = fitting(bytes_a_query(d, wide_capacity), kMostQueries / 8);
    passes =
        streams * stream * sizeof(Passed) +
        std::max(static_cast<std::uint64_t>(std::min(m, queries) + kQueryTile) * bytes_a_query(d, capacity),
                 static_cast<std::uint64_t>(std::min(m, wide_queries) + kQueryTile) * bytes_a_query(d, wide_capacity));
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
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
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

unsigned blocks_for(std::int64_t count) {
  return static_cast<unsigned>((count + 255) / 256);
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
  const std::int64_t row_bytes = search.queries.d * size_of_type(search.queries.dtype);
  subset.rows = Buffer<char>(engine, count * row_bytes);
  gather_rows<<<static_cast<unsigned>(count), 128, 0, engine.stream>>>(static_cast<const char*>(search.queries.data),
                                                                       numbers, row_bytes, subset.rows.data());
  check_launch("gather queries");
  subset.search.queries.data = subset.rows.data();
  subset.search.queries.n = count;
  subset.numbers = Buffer<std::int64_t>(engine, count);
  gather_numbers<<<blocks_for(count), 256, 0, engine.stream>>>(search.numbers, search.first_query, numbers, count,
                                                               subset.numbers.data());
  subset.search.numbers = subset.numbers.data();
  if (search.exclude != nullptr) {
    subset.exclude = Buffer<std::int64_t>(engine, count);
    gather_numbers<<<blocks_for(count), 256, 0, engine.stream>>>(search.exclude, 0, numbers, count,
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
      static_cast<const char*>(search.queries.data) + first * search.queries.d * size_of_type(search.queries.dtype);
  part.queries.n = count;
  part.first_query += first;
  if (search.numbers != nullptr) part.numbers += first;
  if (search.exclude != nullptr) part.exclude += first;
  return part;
}

// Bytes are multiplied as what they are, where that is less work than float16.
Frame frame_of(const Engine& engine, const Search& search) {
  const bool bytes = core::byte_screen_serves(search.table.dtype, search.queries.dtype, search.metric, search.table.d,
                                              engine.compute_capability);
  return bytes ? make_byte_frame(search.table, search.metric)
               : make_frame(engine, search.table, search.facts, search.metric);
}

class FusedSearch {
 public:
  FusedSearch(const Engine& engine, const Search& search, const KLists& lists)
      : engine_(engine),
        search_(search),
        lists_(lists),
        sizes_(engine, search.table.n, search.table.d, search.queries.n, lists.k, engine.memory_limit),
        frame_(frame_of(engine, search)),
        table_(pack_table(engine, search.table, frame_)),
        passed_(engine, stream_count(engine) * sizes_.stream),
        passed_counts_(engine, stream_count(engine)),
        survivors_(engine, 1),
        count_(engine, 1),
        unanswered_(engine, std::min(search.queries.n, sizes_.queries)),
        limits_(engine, unanswered_.size()) {
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
  // The screens of one batch, the first from thresholds that `limits` gives or a sample.
  PackedQueries screened(const Search& part, std::uint32_t capacity, const double* limits) {
    PackedQueries queries = pack_queries(engine_, part.queries, frame_, capacity);
    queries.view.eligible = Eligible(part);
    const std::int64_t tiles = table_.view.tile_count;
    std::int64_t seen = std::min(kSampleTiles, tiles);
    if (limits != nullptr) {
      resume(engine_, queries, limits);
    } else {
      // The lists are empty yet: their memory takes the sample's scores.
      auto* scores = reinterpret_cast<float*>(queries.survivors.data());
      screen_all(engine_, table_.view, queries.view, 0, seen, scores);
      seed(engine_, search_.table, table_.view, queries, static_cast<int>(lists_.k), scores,
           static_cast<int>(seen * kTableTile));
    }
    std::int64_t done = 0;
    while (done < tiles) {
      seen *= kGrowth;
      const std::int64_t end = seen + seen / 2 >= tiles ? tiles : seen;
      screen(engine_, table_.view, queries.view, done, end, {passed_.data(), passed_counts_.data(), sizes_.stream});
      done = end;
      if (done < tiles) tighten(engine_, search_.table, queries, static_cast<int>(lists_.k));
    }
    return queries;
  }

  std::int64_t finished(PackedQueries& queries, const KLists& lists, const std::int64_t* outputs) {
    count_.zero();
    finish(engine_, search_.table, queries, lists, outputs, survivors_.data(),
           {count_.data(), unanswered_.data(), limits_.data()});
    std::uint32_t left = 0;
    check(cudaMemcpyAsync(&left, count_.data(), sizeof left, cudaMemcpyDeviceToHost, engine_.stream), "read a counter");
    engine_.synchronize();
    return left;
  }

  void run_batch(std::int64_t first, std::int64_t count, Counters& counters) {
    const Search part = slice_of(search_, first, count);
    const KLists lists{lists_.k, lists_.ids + first * lists_.k, lists_.distances + first * lists_.k};
    std::int64_t left = 0;
    {
      PackedQueries queries = screened(part, sizes_.capacity, nullptr);
      left = finished(queries, lists, nullptr);
    }
    if (left == 0) return;
    counters.escalated += left;
    left = again(part, lists, left);
    if (left == 0) return;
    counters.uncertified += left;
    const Subset rest = subset_of(engine_, part, unanswered_.data(), left);
    Buffer<std::int64_t> ids(engine_, left * lists.k);
    Buffer<double> distances(engine_, left * lists.k);
    Engine engine = engine_;
    engine.memory_limit -= std::min(
        engine.memory_limit, sizes_.packed + passed_.bytes() + kSpareBytes + rest.rows.bytes() + 2 * ids.bytes());
    engine.host.report = nullptr;
    direct_k_lists(engine, rest.search, {lists.k, ids.data(), distances.data()});
    scatter_lists<<<static_cast<unsigned>(left), 128, 0, engine_.stream>>>(
        ids.data(), distances.data(), unanswered_.data(), lists.k, lists.ids, lists.distances);
    check_launch("scatter answers");
  }

  // Screens the unanswered queries again, from the limits that they have, with room for more survivors. Leaves those
  // that are unanswered still in the same arrays, and returns their number.
  std::int64_t again(const Search& part, const KLists& lists, std::int64_t left) {
    Buffer<std::int64_t> numbers = std::move(unanswered_);
    Buffer<double> limits = std::move(limits_);
    unanswered_ = Buffer<std::int64_t>(engine_, numbers.size());
    limits_ = Buffer<double>(engine_, limits.size());
    Buffer<std::int64_t> still(engine_, left);
    std::int64_t kept = 0;
    for (std::int64_t first = 0; first < left; first += sizes_.wide_queries) {
      const std::int64_t count = std::min(sizes_.wide_queries, left - first);
      engine_.host.check_cancelled();
      const Subset some = subset_of(engine_, part, numbers.data() + first, count);
      PackedQueries queries = screened(some.search, sizes_.wide_capacity, limits.data() + first);
      const std::int64_t failed = finished(queries, lists, numbers.data() + first);
      check(cudaMemcpyAsync(still.data() + kept, unanswered_.data(),
                            static_cast<std::size_t>(failed) * sizeof(std::int64_t), cudaMemcpyDeviceToDevice,
                            engine_.stream),
            "keep query numbers");
      kept += failed;
    }
    unanswered_ = Buffer<std::int64_t>(engine_, numbers.size());
    check(cudaMemcpyAsync(unanswered_.data(), still.data(), static_cast<std::size_t>(kept) * sizeof(std::int64_t),
                          cudaMemcpyDeviceToDevice, engine_.stream),
          "keep query numbers");
    return kept;
  }

  const Engine& engine_;
  const Search& search_;
  const KLists& lists_;
  Sizes sizes_;
  Frame frame_;
  TablePack table_;
  Buffer<Passed> passed_;
  Buffer<std::uint32_t> passed_counts_;
  Buffer<unsigned long long> survivors_;
  Buffer<std::uint32_t> count_;
  Buffer<std::int64_t> unanswered_;
  Buffer<double> limits_;
};

}  // namespace

bool fused_serves(const Engine& engine, Metric metric, std::int64_t n, std::int64_t d, std::int64_t k) {
  const bool product = metric == Metric::euclidean || metric == Metric::sqeuclidean ||
                       metric == Metric::inner_product || metric == Metric::cosine;
  if (!product || engine.sums.model.width == 0) return false;
  if (n > kMostRows || d > core::kLargestHalfColumns || k > kMostNeighbors) return false;
  if (!can_refine(engine, static_cast<int>(d), static_cast<int>(k))) return false;
  // A third of the limit for the packed rows leaves as much for the table and for the passes.
  const auto columns = static_cast<std::uint64_t>(core::half_columns(d));
  return static_cast<std::uint64_t>(n) * columns * sizeof(__half) <= engine.memory_limit / 3;
}

std::uint64_t fused_bytes(const Engine& engine, const Search& search, std::int64_t m, std::int64_t k,
                          std::uint64_t limit) {
  const Sizes sizes(engine, search.table.n, search.table.d, m, k, limit);
  return sizes.packed + sizes.passes + kSpareBytes;
}

void fused_k_lists(const Engine& engine, const Search& search, const KLists& lists, Counters& counters) {
  if (search.queries.n == 0) return;
  FusedSearch(engine, search, lists).run(counters);
}

}  // namespace vicinal::cuda

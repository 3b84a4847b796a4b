// k nearest neighbors by a screen on the matrix unit and an exact finish. Rows are packed once; then, for a batch of
// queries: scores of a sample give the first thresholds, screens over runs of the table that grow by a fixed ratio let
// some k times that ratio rows through, and between them the exact keys of the k best of these lower the thresholds
// (refine.cu). Queries whose survivors do not fit their list are screened again from the thresholds they have, with room
// for more; whoever is left meets every row in float64 (direct.cu). Contract clause 3: a weak bound costs time, never
// an answer. Cost: 2 m n K products; (d + 5 columns, 2 bytes) a row and `kCapacity` survivors a query of memory.
#include <algorithm>
#include <vector>
#include <cstdlib>

#include "cuda/pack.hpp"
#include "cuda/refine.hpp"
#include "cuda/screen.hpp"
#include "cuda/task.hpp"

namespace vicinal::cuda {
namespace {

constexpr std::int64_t kMostNeighbors = 1024;
constexpr std::int64_t kSampleTiles = 32;
inline std::int64_t lab_growth(){ const char* e=getenv("LAB_GROWTH"); return e?atoi(e):8; }
#define kGrowth lab_growth()
//              // of the part of the table that was seen, from one screen to the next
constexpr std::uint32_t kCapacity = 2048;        // survivors a query, at least
constexpr std::uint32_t kMostCapacity = 1 << 14; // a quarter of them can be ranked in shared memory
constexpr std::int64_t kMostQueries = 1 << 15;   // a batch
constexpr std::int64_t kStreamRows = 1 << 13;    // that a warp of the screen may leave in its stream

// Lists hold twice the survivors that are expected, k x kGrowth.
std::uint32_t capacity_for(std::int64_t k) {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(kCapacity, (k * kGrowth * 2 + 127) / 128 * 128));
}

std::int64_t bytes_a_query(std::int64_t d, std::uint32_t capacity) {
  return d * 8 + core::half_columns(d) * 2 + static_cast<std::int64_t>(sizeof(QueryFacts)) + 64 +
         static_cast<std::int64_t>(capacity) * static_cast<std::int64_t>(sizeof(Survivor));
}

// Rows of any type, by number.
__global__ void gather_rows(const char* from, const std::int64_t* numbers, std::int64_t row_bytes, char* to) {
  const char* row = from + numbers[blockIdx.x] * row_bytes;
  char* out = to + blockIdx.x * row_bytes;
  for (std::int64_t i = threadIdx.x; i < row_bytes; i += blockDim.x) out[i] = row[i];
}
__global__ void gather_numbers(const std::int64_t* from, const std::int64_t* numbers, std::int64_t count,
                               std::int64_t* to) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[numbers[i]];
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
  Buffer<std::int64_t> self;
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
  const auto gathered = [&](const std::int64_t* from, Buffer<std::int64_t>& to) -> const std::int64_t* {
    if (from == nullptr) return nullptr;
    to = Buffer<std::int64_t>(engine, count);
    gather_numbers<<<blocks_for(count), 256, 0, engine.stream>>>(from, numbers, count, to.data());
    check_launch("gather ids");
    return to.data();
  };
  subset.search.self = gathered(search.self, subset.self);
  subset.search.exclude = gathered(search.exclude, subset.exclude);
  return subset;
}

// Queries [first, first + count) of the search.
Search slice_of(const Search& search, std::int64_t first, std::int64_t count) {
  Search part = search;
  part.queries.data =
      static_cast<const char*>(search.queries.data) + first * search.queries.d * size_of_type(search.queries.dtype);
  part.queries.n = count;
  if (search.self != nullptr) part.self += first;
  if (search.exclude != nullptr) part.exclude += first;
  return part;
}

class FusedSearch {
 public:
  FusedSearch(const Engine& engine, const Search& search, const KLists& lists)
      : engine_(engine),
        search_(search),
        lists_(lists),
        frame_(make_frame(engine, search.table, search.facts, search.metric)),
        table_(pack_table(engine, search.table, frame_)),
        survivors_(engine, 1),
        count_(engine, 1) {
    survivors_.zero();
  }

  void run(Counters& counters) {
    const std::int64_t m = search_.queries.n;
    const std::uint32_t capacity = capacity_for(lists_.k);
    const std::int64_t most = std::min<std::int64_t>(kMostQueries, queries_that_fit(capacity));
    // Twice what is expected, if all warps let as much through.
    const std::int64_t streams = stream_count(engine_);
    stream_capacity_ = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(4 * std::min(m, most) * lists_.k * kGrowth / streams, 2048, kStreamRows));
    passed_ = Buffer<Passed>(engine_, streams * stream_capacity_);
    passed_counts_ = Buffer<std::uint32_t>(engine_, streams);
    unanswered_ = Buffer<std::int64_t>(engine_, std::min(m, most));
    limits_ = Buffer<double>(engine_, std::min(m, most));
    for (std::int64_t first = 0; first < m; first += most) {
      const std::int64_t count = std::min(most, m - first);
      engine_.host.check_cancelled();
      run_batch(first, count, capacity, counters);
      engine_.host.progress("search", static_cast<double>(first + count) / static_cast<double>(m));
    }
    unsigned long long survivors = 0;
    check(cudaMemcpyAsync(&survivors, survivors_.data(), sizeof survivors, cudaMemcpyDeviceToHost, engine_.stream),
          "read a counter");
    engine_.synchronize();
    counters.survivors += static_cast<std::int64_t>(survivors);
  }

 private:
  [[nodiscard]] std::int64_t queries_that_fit(std::uint32_t capacity) const {
    const std::uint64_t taken = static_cast<std::uint64_t>(table_.tiles.bytes());
    const std::uint64_t room = engine_.memory_limit > taken ? engine_.memory_limit - taken : 0;
    const auto fit = static_cast<std::int64_t>(room / 2) / bytes_a_query(frame_.numbers.d, capacity);
    return std::max<std::int64_t>(fit / kQueryTile * kQueryTile, kQueryTile);
  }

  // The screens of one batch, the first from thresholds that `limits` gives or a sample.
  PackedQueries screened(const Search& part, std::uint32_t capacity, const double* limits) {
    PackedQueries queries = pack_queries(engine_, part.queries, frame_, capacity);
    queries.view.self = part.self;
    queries.view.exclude = part.exclude;
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
      screen(engine_, table_.view, queries.view, done, end, {passed_.data(), passed_counts_.data(), stream_capacity_});
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
    check(cudaMemcpyAsync(&left, count_.data(), sizeof left, cudaMemcpyDeviceToHost, engine_.stream),
          "read a counter");
    engine_.synchronize();
    return left;
  }

  void run_batch(std::int64_t first, std::int64_t count, std::uint32_t capacity, Counters& counters) {
    const Search part = slice_of(search_, first, count);
    const KLists lists{lists_.k, lists_.ids + first * lists_.k, lists_.distances + first * lists_.k};
    std::int64_t left = 0;
    {
      PackedQueries queries = screened(part, capacity, nullptr);
      left = finished(queries, lists, nullptr);
    }
    if (left == 0) return;
    counters.escalated += left;
    left = again(part, lists, capacity * 8, left);
    if (left == 0) return;
    counters.uncertified += left;
    const Subset rest = subset_of(engine_, part, unanswered_.data(), left);
    Buffer<std::int64_t> ids(engine_, left * lists.k);
    Buffer<double> distances(engine_, left * lists.k);
    direct_k_lists(engine_, rest.search, {lists.k, ids.data(), distances.data()});
    scatter_lists<<<static_cast<unsigned>(left), 128, 0, engine_.stream>>>(ids.data(), distances.data(),
                                                                          unanswered_.data(), lists.k, lists.ids,
                                                                          lists.distances);
    check_launch("scatter answers");
  }

  // Screens the unanswered queries again, from the limits that they have, with room for more survivors. Leaves those
  // that are unanswered still in the same arrays, and returns their number.
  std::int64_t again(const Search& part, const KLists& lists, std::uint32_t capacity, std::int64_t left) {
    capacity = std::min(capacity, kMostCapacity);
    Buffer<std::int64_t> numbers = std::move(unanswered_);
    Buffer<double> limits = std::move(limits_);
    unanswered_ = Buffer<std::int64_t>(engine_, numbers.size());
    limits_ = Buffer<double>(engine_, limits.size());
    Buffer<std::int64_t> still(engine_, left);
    std::int64_t kept = 0;
    const std::int64_t most = std::min<std::int64_t>(kMostQueries / 8, queries_that_fit(capacity));
    for (std::int64_t first = 0; first < left; first += most) {
      const std::int64_t count = std::min(most, left - first);
      engine_.host.check_cancelled();
      const Subset some = subset_of(engine_, part, numbers.data() + first, count);
      PackedQueries queries = screened(some.search, capacity, limits.data() + first);
      const std::int64_t failed = finished(queries, lists, numbers.data() + first);
      check(cudaMemcpyAsync(still.data() + kept, unanswered_.data(), static_cast<std::size_t>(failed) * sizeof(std::int64_t),
                            cudaMemcpyDeviceToDevice, engine_.stream),
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
  Frame frame_;
  TablePack table_;
  Buffer<unsigned long long> survivors_;
  Buffer<std::uint32_t> count_;
  Buffer<std::int64_t> unanswered_;
  Buffer<double> limits_;
  Buffer<Passed> passed_;
  Buffer<std::uint32_t> passed_counts_;
  std::uint32_t stream_capacity_ = 0;
};

}  // namespace

bool fused_serves(const Engine& engine, Metric metric, std::int64_t d, std::int64_t k) {
  const bool product = metric == Metric::euclidean || metric == Metric::sqeuclidean ||
                       metric == Metric::inner_product || metric == Metric::cosine;
  return product && d <= core::kLargestHalfColumns && k <= kMostNeighbors && engine.compute_capability == 90 &&
         !engine.portable;
}

void fused_k_lists(const Engine& engine, const Search& search, const KLists& lists, Counters& counters) {
  if (search.queries.n == 0) return;
  FusedSearch(engine, search, lists).run(counters);
}

}  // namespace vicinal::cuda

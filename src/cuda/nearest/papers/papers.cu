// Blocks of queries through the papers' methods. See papers.hpp.
#include <algorithm>
#include <string>

#include "core/philox.hpp"
#include "cuda/nearest/papers/cublas.hpp"
#include "cuda/nearest/papers/papers.hpp"
#include "cuda/nearest/papers/product.hpp"
#include "cuda/nearest/papers/selection.hpp"
#include "cuda/nearest/select.hpp"
#include "formulas/nearest/method_kind.hpp"

namespace vicinal::cuda {
namespace {

using namespace papers;

constexpr std::int64_t kMaxQueries = 16384;  // of a block
constexpr double kWork = 1e11;               // columns of pairs of one launch: some ten milliseconds
constexpr double kProductWork = 1e12;
constexpr double kPowerWork = 150;        // columns that a power costs
constexpr std::int64_t kTileRows = 4096;  // that tiled_insertion takes in at once
constexpr std::int64_t kMaxRows = (std::int64_t{1} << 31) - 1;

// Threads run along queries, or along rows.
bool along_queries(Method method) {
  return method == Method::insertion || method == Method::tiled_insertion;
}
bool by_column(Method method) {
  return !kernels::is_product(method) && method != Method::tiled_insertion;
}

// Bytes of the table's side, and of each query of a block.
struct Needs {
  std::uint64_t table = 0;
  std::uint64_t query = 0;

  explicit Needs(const PaperTask& task) {
    const double column = task.search->metric == Metric::minkowski ? kPowerWork : 1;
    const double work = column * static_cast<double>(task.search->table.n) * static_cast<double>(task.search->table.d);
    most_ = std::clamp<std::int64_t>(
        static_cast<std::int64_t>((kernels::is_product(task.method) ? kProductWork : kWork) / work), 1, kMaxQueries);
    const auto n = static_cast<std::uint64_t>(task.search->table.n);
    const auto d = static_cast<std::uint64_t>(task.search->table.d);
    const auto k = static_cast<std::uint64_t>(task.lists.k);
    const std::uint64_t wide = (by_column(task.method) ? 16 : 8) * d + 1;
    table = n * wide + 8 * d;
    query = wide + 64;
    if (kernels::is_product(task.method)) {
      table += n * (4 * d + sizeof(core::FloatRow));
      query += 4 * d + sizeof(core::FloatRow) + sizeof(core::FloatQuery) + 16;
      query += n * (4 + 8 + 8) + k * 8;  // scores, rows, keys, chosen
      query +=
          sizeof(ScoredRow) * static_cast<std::uint64_t>(sorted_size(task.search->table.n));  // the larger of the two
      query += 16 + 4 * k;                                                                    // of the lists
    } else if (task.method == Method::tiled_insertion) {
      query += 8 * std::min<std::uint64_t>(n, kTileRows) + k * 16;
    } else {
      query += 8 * n + k * 16;
    }
  }
  [[nodiscard]] std::int64_t queries(std::int64_t m, std::uint64_t limit) const {
    if (limit < table + query) {
      throw Failure{ErrorCode::over_memory, "the search needs " + std::to_string(table + query) +
                                                " bytes of device memory for one query, but " + std::to_string(limit) +
                                                " are left within the limit"};
    }
    return std::min({m, most_, static_cast<std::int64_t>((limit - table) / query)});
  }

 private:
  std::int64_t most_ = kMaxQueries;
};

// Device time between two points of the stream.
class Stopwatch {
 public:
  explicit Stopwatch(const Engine& engine) : engine_(engine) {
    check(cudaEventCreate(&start_), "create an event");
    check(cudaEventCreate(&stop_), "create an event");
  }
  ~Stopwatch() {
    if (start_ != nullptr) static_cast<void>(cudaEventDestroy(start_));
    if (stop_ != nullptr) static_cast<void>(cudaEventDestroy(stop_));
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  void start() { check(cudaEventRecord(start_, engine_.stream), "record an event"); }
  void stop() { check(cudaEventRecord(stop_, engine_.stream), "record an event"); }
  /// Waits for the second point.
  [[nodiscard]] double seconds() const {
    check(cudaEventSynchronize(stop_), "search");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start_, stop_), "read a time");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  const Engine& engine_;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

class Run {
 public:
  Run(const Engine& engine, const PaperTask& task, PaperStats& stats)
      : engine_(engine),
        task_(task),
        search_(*task.search),
        stats_(stats),
        watch_(engine),
        method_(task.method),
        n_(search_.table.n),
        k_(task.lists.k),
        most_(Needs(task).queries(search_.queries.n, engine.memory_limit)),
        overflow_(engine, 1) {
    check(cudaMemsetAsync(overflow_.data(), 0xff, overflow_.bytes(), engine_.stream), "clear results");
  }

  void run() {
    if (kernels::is_product(method_)) {
      if (n_ > kMaxRows || search_.table.d > core::kLargestFloatColumns) {
        throw Failure{ErrorCode::invalid_argument,
                      "method: a product of matrices serves up to 2^31 rows of 2^20 columns"};
      }
      require_products(engine_);
    }
    table_ = widen_rows(engine_, search_.metric, search_.table, 0, n_, by_column(method_));
    if (kernels::is_product(method_)) {
      scale_ = float_scale(engine_, search_);
      rounded_ = round_rows(engine_, scale_, table_.view(n_), search_.table.d, false);
      typical_ = typical_norm(engine_, rounded_);
    }
    if (method_ == Method::product_timed) method_ = quicker_selection();
    const std::int64_t m = search_.queries.n;
    for (std::int64_t begin = 0; begin < m; begin += most_) {
      const std::int64_t count = std::min(most_, m - begin);
      search_block(begin, count);
      engine_.host.check_cancelled();
      engine_.host.progress("search", static_cast<double>(begin + count) / static_cast<double>(m));
    }
    finish_lists(engine_, search_.metric, search_.root, task_.lists.distances, task_.lists.ids, nullptr, k_, m);
    refuse_overflow();
  }

 private:
  [[nodiscard]] Pairs pairs_of(const WideMemory& queries, std::int64_t begin, std::int64_t count) const {
    Pairs pairs;
    pairs.queries = queries.view(count);
    pairs.table = table_.view(n_);
    pairs.d = search_.table.d;
    pairs.p = search_.p;
    pairs.first_query = begin;
    pairs.may = search_;
    pairs.overflow = overflow_.data();
    return pairs;
  }

  void search_block(std::int64_t begin, std::int64_t count) {
    const WideMemory queries = widen_rows(engine_, search_.metric, search_.queries, begin, count, by_column(method_));
    const Pairs pairs = pairs_of(queries, begin, count);
    double* list_keys = task_.lists.distances + begin * k_;
    std::int64_t* list_ids = task_.lists.ids + begin * k_;
    if (kernels::is_product(method_)) {
      search_products(pairs, list_keys, list_ids);
    } else if (along_queries(method_)) {
      insert(pairs, list_keys, list_ids);
    } else {
      const Buffer<double> keys(engine_, count * n_);
      keys_by_columns(engine_, search_.metric, pairs, 0, n_, {keys.data(), n_, 1});
      stats_.ranked += count * n_;
      watch_.start();
      if (method_ == Method::block_heap) {
        select_by_block_heap(engine_, keys.data(), count, n_, k_, list_keys, list_ids);
      } else {
        select_by_filter(engine_, keys.data(), count, n_, task_.sequence, task_.sequence_size, k_, list_keys, list_ids);
      }
      watch_.stop();
      stats_.selection_seconds += watch_.seconds();
    }
  }

  void insert(const Pairs& pairs, double* list_keys, std::int64_t* list_ids) {
    const std::int64_t count = pairs.queries.count;
    const std::int64_t rows = method_ == Method::insertion ? n_ : std::min(n_, kTileRows);
    const Buffer<double> matrix(engine_, rows * count);
    const Buffer<double> keys(engine_, count * k_);
    const Buffer<std::int64_t> ids(engine_, count * k_);
    const Buffer<std::int64_t> sizes(engine_, count);
    sizes.zero();
    const ThreadLists lists{keys.data(), ids.data(), sizes.data(), count, k_};
    const KeyMatrix to{matrix.data(), 1, count};
    for (std::int64_t begin = 0; begin < n_; begin += rows) {
      const std::int64_t here = std::min(rows, n_ - begin);
      if (method_ == Method::insertion) {
        keys_by_columns(engine_, search_.metric, pairs, begin, here, to);
      } else {
        keys_by_tiles(engine_, search_.metric, pairs, begin, here, to);
      }
      watch_.start();
      insert_keys(engine_, to, here, begin, lists);
      watch_.stop();
      stats_.selection_seconds += watch_.seconds();
      engine_.host.check_cancelled();
    }
    stats_.ranked += count * n_;
    gather_lists(engine_, lists, list_keys, list_ids);
  }

  // What a block of products works in.
  struct ProductMemory {
    FloatRows rounded;
    Buffer<core::FloatQuery> limits;
    Buffer<double> seeds;
    Buffer<float> scores;
    Buffer<std::int64_t> rows;
    Buffer<double> keys;
    Buffer<unsigned long long> counts;
    Buffer<std::int64_t> chosen;
    Buffer<ScoredRow> sorted;  // of the sort, and of the search's winners
    ProductBlock block;
  };

  void prepare_products(const Pairs& pairs, ProductMemory& memory) const {
    const std::int64_t count = pairs.queries.count;
    memory.rounded = round_rows(engine_, scale_, pairs.queries, pairs.d, true);
    memory.limits = Buffer<core::FloatQuery>(engine_, count);
    memory.seeds = Buffer<double>(engine_, count);
    memory.scores = Buffer<float>(engine_, count * n_);
    memory.rows = Buffer<std::int64_t>(engine_, count * n_);
    memory.keys = Buffer<double>(engine_, count * n_);
    memory.counts = Buffer<unsigned long long>(engine_, count);
    memory.chosen = Buffer<std::int64_t>(engine_, count * k_);
    memory.sorted = Buffer<ScoredRow>(engine_, count * sorted_size(n_));
    memory.block = {&pairs,
                    search_.metric,
                    k_,
                    scale_.exponent,
                    typical_,
                    &rounded_,
                    &memory.rounded,
                    memory.limits.data(),
                    memory.seeds.data(),
                    memory.scores.data(),
                    memory.rows.data(),
                    memory.keys.data(),
                    memory.counts.data()};
    seed_block(engine_, memory.block);
    score_block(engine_, memory.block);
  }

  void select(const ProductMemory& memory, std::int64_t count, Method method) const {
    const ScoreMatrix matrix{memory.scores.data(), count, n_};
    if (method == Method::product_kmin) {
      static_assert(sizeof(ChunkWinner) <= 2 * sizeof(ScoredRow));  // every chunk has room for two sorted rows
      auto* winners = reinterpret_cast<ChunkWinner*>(memory.sorted.data());
      select_by_kmin(engine_, matrix, k_, winners, memory.chosen.data());
    } else {
      select_by_bitonic(engine_, matrix, k_, memory.sorted.data(), memory.chosen.data());
    }
  }

  void search_products(const Pairs& pairs, double* list_keys, std::int64_t* list_ids) {
    const std::int64_t count = pairs.queries.count;
    ProductMemory memory;
    prepare_products(pairs, memory);
    watch_.start();
    select(memory, count, method_);
    collect_block(engine_, memory.block, memory.chosen.data());
    const Buffer<std::int64_t> sizes(engine_, count);
    const Buffer<double> limits(engine_, count);
    const Buffer<std::int32_t> holes(engine_, count * std::min(k_, n_));
    const RunningLists lists{k_, list_keys, list_ids, sizes.data(), limits.data()};
    clear_lists(engine_, lists, count);
    take_candidates(engine_, lists, {memory.keys.data(), memory.rows.data(), memory.counts.data(), n_, holes.data()},
                    count);
    watch_.stop();
    stats_.selection_seconds += watch_.seconds();
    stats_.ranked += count * (std::min(n_, 4 * k_ + 64) + 2 * k_);
  }

  // Times both on one query, drawn by Philox.
  Method quicker_selection() {
    const auto m = static_cast<double>(search_.queries.n);
    const auto drawn = static_cast<std::int64_t>(core::philox_uniform(0, 0, 0) * m);
    const WideMemory query = widen_rows(engine_, search_.metric, search_.queries, drawn, 1, false);
    const Pairs pairs = pairs_of(query, drawn, 1);
    ProductMemory memory;
    prepare_products(pairs, memory);
    double seconds[2] = {};
    for (int turn = 0; turn < 4; ++turn) {  // the first two load the kernels
      watch_.start();
      select(memory, 1, turn % 2 == 0 ? Method::product_kmin : Method::product_bitonic);
      watch_.stop();
      seconds[turn % 2] = watch_.seconds();
    }
    return seconds[0] <= seconds[1] ? Method::product_kmin : Method::product_bitonic;
  }

  void refuse_overflow() const {
    unsigned long long code = 0;
    check(cudaMemcpyAsync(&code, overflow_.data(), sizeof code, cudaMemcpyDeviceToHost, engine_.stream),
          "fetch results");
    engine_.synchronize();
    if (code == ~0ULL) return;
    const auto query = static_cast<std::int64_t>(code >> Pairs::kRowBits);
    const auto row = static_cast<std::int64_t>(code & ((1ULL << Pairs::kRowBits) - 1));
    throw Failure{ErrorCode::bad_data, "the distance of query row " +
                                           std::to_string(search_.first_id + search_.first_query + query) +
                                           " and table row " + std::to_string(search_.first_id + row) +
                                           " overflows float64; scale the data down"};
  }

  const Engine& engine_;
  const PaperTask& task_;
  const Search& search_;
  PaperStats& stats_;
  Stopwatch watch_;
  Method method_;
  std::int64_t n_;
  std::int64_t k_;
  std::int64_t most_;  // queries of a block
  Buffer<unsigned long long> overflow_;
  WideMemory table_;
  FloatScale scale_;
  FloatRows rounded_;
  double typical_ = 0;
};

}  // namespace

void paper_k_lists(const Engine& engine, const PaperTask& task, PaperStats& stats) {
  Run(engine, task, stats).run();
}

std::uint64_t paper_bytes(const PaperTask& task, std::int64_t queries, std::uint64_t limit) {
  const Needs needs(task);
  return needs.table + needs.query * static_cast<std::uint64_t>(needs.queries(queries, limit));
}

}  // namespace vicinal::cuda

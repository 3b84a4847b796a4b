// C functions around the library, so that the scripts beside this file can hand it rows that lie in device memory, in
// host memory, or nowhere: rows that are made when they are asked for. library.py has the same structs in Python.
//   c++ -std=c++20 -O3 -mavx2 -shared -fPIC resident.cpp -I include -I src -L FOLDER -l:libvicinal.so.0 -pthread
// Every function returns 0, or 1 and leaves a sentence in Done::sentence.
#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>
#include <vicinal/vicinal.hpp>

/// Rows as a script hands them over.
struct Rows {
  const void* data;  ///< [rows, cols]; where rows are made: [period, cols] of float32 in host memory
  std::int64_t rows;
  std::int64_t cols;
  std::int32_t dtype;   ///< number of a vicinal::DType
  std::int32_t memory;  ///< number of a vicinal::Memory
  std::int64_t period;  ///< 0: all rows lie at `data`; else row i is row i % period of them plus a shift, in float32
  const float* shifts;  ///< [ceil(rows / period), cols]: that of row i is row i / period
};

/// What a call has to tell.
struct Done {
  std::int64_t survivors;
  std::int64_t escalated;
  std::int64_t uncertified;
  std::int64_t distinct_rows;
  double prepare_seconds;
  double search_seconds;
  double selection_seconds;
  std::uint64_t memory;
  std::uint64_t device_memory;
  char method[32];
  char screens[96];
  char sentence[512];  ///< why this method, or what went wrong
};

namespace {

template <std::size_t Size>
void put(char (&to)[Size], std::string_view text) {
  const std::size_t length = std::min(text.size(), Size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = 0;
}

template <class Work>
int guarded(Done* done, Work work) try {
  work();
  return 0;
} catch (const std::exception& error) {
  put(done->sentence, error.what());
  return 1;
}

/// Threads that make rows; they wait between two blocks, because making one takes less than starting a thread would.
class Makers {
 public:
  explicit Makers(int count) : start_(count + 1), done_(count + 1) {
    for (int number = 0; number < count; ++number) {
      threads_.emplace_back([this, number] {
        for (;;) {
          start_.arrive_and_wait();
          if (stopped_) return;
          work_(number);
          done_.arrive_and_wait();
        }
      });
    }
  }
  ~Makers() {
    stopped_ = true;
    start_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }
  Makers(const Makers&) = delete;
  Makers& operator=(const Makers&) = delete;

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(threads_.size()); }
  /// Calls work(number) on every one of them.
  void run(std::function<void(int)> work) {
    work_ = std::move(work);
    start_.arrive_and_wait();
    done_.arrive_and_wait();
  }

 private:
  std::barrier<> start_;
  std::barrier<> done_;
  std::function<void(int)> work_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

/// Rows [begin, end) of made rows, on the calling thread.
void make_some(const Rows& of, std::int64_t begin, std::int64_t end, float* to) {
  for (std::int64_t row = begin; row < end; ++row, to += of.cols) {
    const float* from = static_cast<const float*>(of.data) + row % of.period * of.cols;
    const float* shift = of.shifts + row / of.period * of.cols;
    for (std::int64_t col = 0; col < of.cols; ++col) to[col] = from[col] + shift[col];
  }
}

/// The same, on all threads where it is worth it.
void make_rows(const Rows& of, std::int64_t begin, std::int64_t end, float* to) {
  constexpr std::int64_t kMinRows = 1024;
  static Makers makers(std::clamp(static_cast<int>(std::thread::hardware_concurrency()) - 3, 1, 24));
  if (end - begin < kMinRows) return make_some(of, begin, end, to);
  makers.run([&](int number) {
    const std::int64_t first = begin + (end - begin) * number / makers.count();
    const std::int64_t last = begin + (end - begin) * (number + 1) / makers.count();
    make_some(of, first, last, to + (first - begin) * of.cols);
  });
}

vicinal::TableView view_of(const Rows& rows) {
  if (rows.period > 0) {
    return vicinal::TableView::blocks(vicinal::DType::float32, rows.rows, rows.cols,
                                      [rows](std::int64_t begin, std::int64_t end, void* to) {
                                        make_rows(rows, begin, end, static_cast<float*>(to));
                                      });
  }
  return {rows.data, static_cast<vicinal::DType>(rows.dtype),  rows.rows, rows.cols, rows.cols,
          1,         static_cast<vicinal::Memory>(rows.memory)};
}

const vicinal::Context& context_of(const void* context) {
  return *static_cast<const vicinal::Context*>(context);
}

vicinal::KnnOptions options_of(std::int64_t k, const char* method) {
  vicinal::KnnOptions options;
  options.k = k;
  options.method = vicinal::method_from(method);
  return options;
}

void note(const vicinal::Plan& plan, const vicinal::SearchStats& stats, Done* done) {
  done->survivors = stats.survivors;
  done->escalated = stats.escalated;
  done->uncertified = stats.uncertified;
  done->distinct_rows = stats.distinct_rows;
  done->prepare_seconds = stats.prepare_seconds;
  done->search_seconds = stats.search_seconds;
  done->selection_seconds = stats.selection_seconds;
  done->memory = plan.memory;
  done->device_memory = plan.device_memory;
  put(done->method, vicinal::name_of(plan.method));
  put(done->screens, plan.screens);
  put(done->sentence, plan.reason);
}

}  // namespace

/// A context on "cuda" or "cpu", with limits in bytes (0: the library's own) and host threads (0: all).
extern "C" int vicinal_bench_open(const char* device, std::uint64_t device_memory_limit, std::uint64_t memory_limit,
                                  std::int32_t threads, void** context, Done* done) {
  return guarded(done, [&] {
    vicinal::CudaOptions cuda;
    cuda.device_memory_limit = device_memory_limit;
    cuda.memory_limit = memory_limit;
    cuda.threads = threads;
    vicinal::CpuOptions cpu;
    cpu.memory_limit = memory_limit;
    cpu.threads = threads;
    *context = new vicinal::Context(std::string_view(device) == "cpu" ? vicinal::Context::cpu(cpu)
                                                                      : vicinal::Context::cuda(cuda));
  });
}
extern "C" void vicinal_bench_close(void* context) {
  delete static_cast<vicinal::Context*>(context);
}

/// One whole call. queries null: the table within itself. ids and distances [m, k] lie in `memory`.
extern "C" int vicinal_bench_knn(const void* context, const Rows* table, const Rows* queries, std::int64_t k,
                                 const char* method, std::int64_t* ids, double* distances, std::int32_t memory,
                                 Done* done) {
  return guarded(done, [&] {
    const vicinal::KnnOptions options = options_of(k, method);
    const vicinal::KnnOutput output{ids, distances, static_cast<vicinal::Memory>(memory)};
    const auto& ctx = context_of(context);
    const auto summary = queries == nullptr
                             ? vicinal::knn_into(ctx, view_of(*table), options, output)
                             : vicinal::knn_into(ctx, view_of(*table), view_of(*queries), options, output);
    note(summary.plan, summary.stats, done);
  });
}

/// An index of a table, which must live as long; and a call that asks it. queries null: the table within itself.
extern "C" int vicinal_bench_index(const void* context, const Rows* table, void** index, Done* done) {
  return guarded(done, [&] { *index = new vicinal::Index(context_of(context), view_of(*table)); });
}
extern "C" void vicinal_bench_drop_index(void* index) {
  delete static_cast<vicinal::Index*>(index);
}
extern "C" int vicinal_bench_ask(const void* context, const void* index, const Rows* queries, std::int64_t k,
                                 const char* method, std::int64_t* ids, double* distances, std::int32_t memory,
                                 Done* done) {
  return guarded(done, [&] {
    const vicinal::KnnOptions options = options_of(k, method);
    const vicinal::KnnOutput output{ids, distances, static_cast<vicinal::Memory>(memory)};
    const auto& ctx = context_of(context);
    const auto& asked = *static_cast<const vicinal::Index*>(index);
    const auto summary = queries == nullptr ? vicinal::knn_into(ctx, asked, options, output)
                                            : vicinal::knn_into(ctx, asked, view_of(*queries), options, output);
    note(summary.plan, summary.stats, done);
  });
}

/// The same with the lists in vectors of the library's own, as `vicinal-bench knn` has them.
extern "C" int vicinal_bench_knn_on_host(const void* context, const Rows* table, const Rows* queries, std::int64_t k,
                                         const char* method, std::int64_t* ids, double* distances, Done* done) {
  return guarded(done, [&] {
    const vicinal::KnnOptions options = options_of(k, method);
    const auto& ctx = context_of(context);
    const auto graph = queries == nullptr ? vicinal::knn(ctx, view_of(*table), options)
                                          : vicinal::knn(ctx, view_of(*table), view_of(*queries), options);
    std::copy(graph.ids.begin(), graph.ids.end(), ids);
    std::copy(graph.distances.begin(), graph.distances.end(), distances);
    note(graph.plan, graph.stats, done);
  });
}

/// Classification, k nearest with equal weights: labels [n] and codes [m] on the host. The labels of a process are
/// those of its first call: they are encoded once, as a program would do it.
extern "C" int vicinal_bench_classify(const void* context, const Rows* table, const Rows* queries, std::int64_t k,
                                      const std::int64_t* labels, std::int32_t* codes, Done* done) {
  return guarded(done, [&] {
    static const std::vector<vicinal::Labels> kOutputs = {
        vicinal::encode_labels(std::span<const std::int64_t>(labels, static_cast<std::size_t>(table->rows)))};
    const auto result = vicinal::classify(context_of(context), view_of(*table), view_of(*queries),
                                          std::span<const vicinal::Labels>(kOutputs), {.k = k});
    const auto& found = result.votes.front().codes;
    std::copy(found.begin(), found.end(), codes);
    note(result.plan, result.stats, done);
  });
}

/// Rows [begin, end) of made rows, as the library asks for them: `to` [end - begin, cols] in host memory.
extern "C" void vicinal_bench_make(const Rows* rows, std::int64_t begin, std::int64_t end, float* to) {
  make_rows(*rows, begin, end, to);
}

/// k-means from given centers [clusters, cols] float64 on the host, `iterations` of them at most and no other end but
/// that no label changes: labels [rows] and the centers after it, both on the host. Done: `survivors` are the rows that
/// keys decided, `distinct_rows` those assigned, `escalated` the iterations; seconds of the iterations alone.
extern "C" int vicinal_bench_kmeans(const void* context, const Rows* table, std::int64_t clusters,
                                    std::int64_t iterations, double* centres, std::int32_t* labels, Done* done) {
  return guarded(done, [&] {
    vicinal::KMeansOptions options;
    options.clusters = clusters;
    options.init = vicinal::KMeansInit::given;
    options.centres = vicinal::TableView(centres, clusters, table->cols);
    options.max_iterations = iterations;
    options.tolerance = 0;
    const vicinal::KMeans found = vicinal::kmeans(context_of(context), view_of(*table), options);
    std::copy(found.centres.begin(), found.centres.end(), centres);
    std::copy(found.labels.begin(), found.labels.end(), labels);
    done->survivors = found.stats.rechecked;
    done->distinct_rows = found.stats.assigned;
    done->escalated = found.iterations;
    done->search_seconds = found.stats.iterate_seconds;
    done->device_memory = found.plan.device_memory;
    put(done->screens, found.plan.screens);
  });
}

/// Seconds that first centers took (search_seconds), and the inertia of all rows' assignment to them.
extern "C" int vicinal_bench_seed(const void* context, const Rows* table, std::int64_t clusters, const char* init,
                                  std::uint64_t seed, double* inertia, Done* done) {
  return guarded(done, [&] {
    vicinal::KMeansOptions options;
    options.clusters = clusters;
    options.init = std::string(init) == "k-means||" ? vicinal::KMeansInit::parallel : vicinal::KMeansInit::plus_plus;
    options.seed = seed;
    options.max_iterations = 1;
    options.history = true;
    const vicinal::KMeans found = vicinal::kmeans(context_of(context), view_of(*table), options);
    *inertia = found.history.front();
    done->search_seconds = found.stats.seed_seconds;
    done->device_memory = found.plan.device_memory;
  });
}

namespace {

vicinal::LofOptions lof_options(std::int64_t k, std::int64_t k_to, const char* score) {
  vicinal::LofOptions options;
  options.k = k;
  options.k_to = k_to;
  options.score = vicinal::outlier_score_from(score);
  return options;
}

}  // namespace

/// Scores [n] in host memory; score_seconds: what came after the search.
extern "C" int vicinal_bench_lof(const void* context, const Rows* table, std::int64_t k, std::int64_t k_to,
                                 const char* score, double* scores, double* score_seconds, Done* done) {
  return guarded(done, [&] {
    const vicinal::Lof found = vicinal::lof(context_of(context), view_of(*table), lof_options(k, k_to, score));
    std::copy(found.scores.begin(), found.scores.end(), scores);
    *score_seconds = found.score_seconds;
    note(found.plan, found.stats, done);
  });
}

/// The same of lists [n, width] in host memory.
extern "C" int vicinal_bench_lof_of_lists(const void* context, const Rows* table, const std::int64_t* ids,
                                          const double* distances, std::int64_t width, std::int64_t k,
                                          std::int64_t k_to, const char* score, double* scores, double* score_seconds,
                                          Done* done) {
  return guarded(done, [&] {
    vicinal::NeighborGraph graph;
    graph.rows = graph.table_rows = table->rows;
    graph.k = width;
    graph.ids.assign(ids, ids + table->rows * width);
    graph.distances.assign(distances, distances + table->rows * width);
    const vicinal::Lof found = vicinal::lof(context_of(context), graph, view_of(*table), lof_options(k, k_to, score));
    std::copy(found.scores.begin(), found.scores.end(), scores);
    *score_seconds = found.score_seconds;
    note(found.plan, found.stats, done);
  });
}

/// The edges [n - 1] of a minimum spanning tree in host memory; tree_seconds: what came after the search.
extern "C" int vicinal_bench_spanning_tree(const void* context, const Rows* table, std::int64_t min_samples,
                                           const char* method, std::int64_t* a, std::int64_t* b, double* lengths,
                                           double* tree_seconds, Done* done) {
  return guarded(done, [&] {
    const vicinal::SpanningTree found = vicinal::minimum_spanning_tree(
        context_of(context), view_of(*table), {.min_samples = min_samples, .method = vicinal::method_from(method)});
    std::copy(found.a.begin(), found.a.end(), a);
    std::copy(found.b.begin(), found.b.end(), b);
    std::copy(found.lengths.begin(), found.lengths.end(), lengths);
    *tree_seconds = found.tree_seconds;
    note(found.plan, found.stats, done);
  });
}

/// Labels [n] of HDBSCAN in host memory; seconds[0]: of the tree after the search, [1]: of the clusters after the tree.
extern "C" int vicinal_bench_hdbscan(const void* context, const Rows* table, std::int64_t min_cluster_size,
                                     std::int64_t min_samples, const char* method, std::int64_t* labels,
                                     double* seconds, Done* done) {
  return guarded(done, [&] {
    const vicinal::Hdbscan found = vicinal::hdbscan(
        context_of(context), view_of(*table),
        {.min_cluster_size = min_cluster_size, .min_samples = min_samples, .method = vicinal::method_from(method)});
    std::copy(found.labels.begin(), found.labels.end(), labels);
    seconds[0] = found.tree_seconds;
    seconds[1] = found.cluster_seconds;
    note(found.plan, found.stats, done);
  });
}

/// Labels [n] and core rows [n] of DBSCAN in host memory; cluster_seconds: after the rows were made ready.
extern "C" int vicinal_bench_dbscan(const void* context, const Rows* table, double eps, std::int64_t min_samples,
                                    const char* method, std::int64_t* labels, std::uint8_t* core,
                                    double* cluster_seconds, Done* done) {
  return guarded(done, [&] {
    const vicinal::Dbscan found =
        vicinal::dbscan(context_of(context), view_of(*table),
                        {.eps = eps, .min_samples = min_samples, .method = vicinal::method_from(method)});
    std::copy(found.labels.begin(), found.labels.end(), labels);
    std::copy(found.core.begin(), found.core.end(), core);
    *cluster_seconds = found.cluster_seconds;
    note(found.plan, found.stats, done);
  });
}

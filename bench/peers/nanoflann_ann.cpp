// nanoflann and libann behind the same four C functions each, for knn.py: NAME_version (null: not built in), NAME_note,
// NAME_build, NAME_query, NAME_free. Rows are float64, row-major; they are borrowed until NAME_free.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#if __has_include(<nanoflann.hpp>)
#include <nanoflann.hpp>
#define HAS_NANOFLANN 1
#else
#define HAS_NANOFLANN 0
#endif
#if __has_include(<ANN/ANN.h>)
#include <ANN/ANN.h>
#define HAS_ANN 1
#else
#define HAS_ANN 0
#endif

namespace {

#if HAS_NANOFLANN

struct Rows {
  const double* data;
  std::int64_t rows, cols;

  std::size_t kdtree_get_point_count() const { return static_cast<std::size_t>(rows); }
  double kdtree_get_pt(std::size_t row, std::size_t col) const { return data[row * cols + col]; }
  template <class Box>
  bool kdtree_get_bbox(Box&) const {
    return false;
  }
};

struct Tree {
  virtual ~Tree() = default;
  virtual void query(const double* query, std::int64_t k, std::uint32_t* ids, double* squared) const = 0;
  std::int64_t cols = 0;
};

/// The number of columns is known when it is compiled where it can be, as nanoflann advises.
template <int Cols>
struct TreeOf final : Tree {
  using Metric =
      std::conditional_t<Cols == -1, nanoflann::L2_Adaptor<double, Rows>, nanoflann::L2_Simple_Adaptor<double, Rows>>;
  using Index = nanoflann::KDTreeSingleIndexAdaptor<Metric, Rows, Cols, std::uint32_t>;

  TreeOf(const Rows& given, [[maybe_unused]] int threads)
      : rows(given),
#if NANOFLANN_VERSION >= 0x150
        index(static_cast<int>(given.cols), rows,
              nanoflann::KDTreeSingleIndexAdaptorParams(10, nanoflann::KDTreeSingleIndexAdaptorFlags::None, threads))
#else
        index(static_cast<int>(given.cols), rows, nanoflann::KDTreeSingleIndexAdaptorParams(10))
#endif
  {
#if NANOFLANN_VERSION < 0x150
    index.buildIndex();
#endif
    cols = given.cols;
  }

  void query(const double* query, std::int64_t k, std::uint32_t* ids, double* squared) const override {
    (void)index.knnSearch(query, static_cast<std::size_t>(k), ids, squared);
  }

  Rows rows;
  Index index;
};

template <int... Cols>
std::unique_ptr<Tree> make_tree(const Rows& rows, int threads, std::integer_sequence<int, Cols...>) {
  std::unique_ptr<Tree> tree;
  ((rows.cols == Cols ? void(tree = std::make_unique<TreeOf<Cols>>(rows, threads)) : void()), ...);
  if (!tree) tree = std::make_unique<TreeOf<-1>>(rows, threads);
  return tree;
}

#endif

#if HAS_ANN
struct AnnTree {
  std::vector<ANNpoint> rows;
  std::unique_ptr<ANNkd_tree> tree;
};
#endif

}  // namespace

extern "C" {

const char* nanoflann_version() {
#if HAS_NANOFLANN
  static char text[32];
  const unsigned version = NANOFLANN_VERSION;  // 0xMmP, from 1.10.0 on 0xMMmmPP
  if (version < 0x1000) {
    std::snprintf(text, sizeof text, "%u.%u.%u", version >> 8, version >> 4 & 15, version & 15);
  } else {
    std::snprintf(text, sizeof text, "%u.%u.%u", version >> 16, version >> 8 & 255, version & 255);
  }
  return text;
#else
  return nullptr;
#endif
}

const char* nanoflann_note() {
#if HAS_NANOFLANN && NANOFLANN_VERSION >= 0x150
  return "float64, leaf size 10, columns known to the compiler up to 8; its threaded build, queries on all threads";
#else
  return "float64, leaf size 10, columns known to the compiler up to 8; build on one thread (this version has no "
         "other), "
         "queries on all";
#endif
}

#if HAS_NANOFLANN
void* nanoflann_build(const double* data, std::int64_t rows, std::int64_t cols, int threads) {
  return make_tree({data, rows, cols}, threads, std::integer_sequence<int, 1, 2, 3, 4, 5, 6, 7, 8>()).release();
}

void nanoflann_query(const void* handle, const double* queries, std::int64_t count, std::int64_t k, int threads,
                     std::int64_t* ids, double* distances) {
  const Tree& tree = *static_cast<const Tree*>(handle);
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    constexpr std::int64_t kChunk = 256;
    std::vector<std::uint32_t> found(static_cast<std::size_t>(k));
    for (;;) {
      const std::int64_t begin = next.fetch_add(kChunk);
      if (begin >= count) return;
      for (std::int64_t i = begin; i < std::min(begin + kChunk, count); ++i) {
        tree.query(queries + i * tree.cols, k, found.data(), distances + i * k);
        for (std::int64_t j = 0; j < k; ++j) {
          ids[i * k + j] = found[j];
          distances[i * k + j] = std::sqrt(distances[i * k + j]);
        }
      }
    }
  };
  std::vector<std::thread> helpers;
  for (int t = 1; t < threads; ++t) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
}

void nanoflann_free(void* handle) {
  delete static_cast<Tree*>(handle);
}
#endif

const char* libann_version() {
#if HAS_ANN
  return ANNversion;
#else
  return nullptr;
#endif
}

const char* libann_note() {
  return "float64, kd-tree with its defaults, eps 0; one thread: it keeps its search in globals";
}

#if HAS_ANN
void* libann_build(const double* data, std::int64_t rows, std::int64_t cols, int) {
  auto* tree = new AnnTree;
  tree->rows.resize(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i) tree->rows[i] = const_cast<double*>(data) + i * cols;
  tree->tree = std::make_unique<ANNkd_tree>(tree->rows.data(), static_cast<int>(rows), static_cast<int>(cols));
  return tree;
}

void libann_query(void* handle, const double* queries, std::int64_t count, std::int64_t k, int, std::int64_t* ids,
                  double* distances) {
  ANNkd_tree& tree = *static_cast<AnnTree*>(handle)->tree;
  std::vector<ANNidx> found(static_cast<std::size_t>(k));
  for (std::int64_t i = 0; i < count; ++i) {
    tree.annkSearch(const_cast<double*>(queries) + i * tree.theDim(), static_cast<int>(k), found.data(),
                    distances + i * k);
    for (std::int64_t j = 0; j < k; ++j) {
      ids[i * k + j] = found[j];
      distances[i * k + j] = std::sqrt(distances[i * k + j]);
    }
  }
}

void libann_free(void* handle) {
  delete static_cast<AnnTree*>(handle);
}
#endif
}

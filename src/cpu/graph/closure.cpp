// The closure of a bipartite graph, a bit an element (contract clause 16; Zhang et al. 2013): the adjacency matrix
// C = [[I, R], [R', I]] is squared until its ones stay as many; row v of C C is then the "or" of the rows that row v
// names, and the first one of a row is its label. Powers double, so that ceil(log2 diameter) products and one more do.
// Cost of a product: a row of n / 64 words for each one of the matrix, but of equal rows only once and of rows that a
// product left as they were no more; memory: n^2 / 4 bytes.
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/aligned.hpp"
#include "core/parallel.hpp"
#include "core/seconds.hpp"
#include "cpu/graph/graphs.hpp"
#include "simd/union_kernels.hpp"

namespace vicinal::cpu {
namespace {

using Word = std::uint64_t;
constexpr std::int64_t kWordBits = 64;
constexpr std::int64_t kTaskWords = std::int64_t{1} << 15;  // of rows written; each takes n rows read at most
constexpr std::int64_t kLook = 512;                         // words of a row between two looks at the cancel token

/// n x n bits; every row begins a cache line and ends in zeros.
class BitMatrix {
 public:
  explicit BitMatrix(std::int64_t n) : n_(n), stride_((n + 511) / 512 * 8), words_(n * stride_) {}

  [[nodiscard]] std::int64_t n() const noexcept { return n_; }
  [[nodiscard]] std::int64_t stride() const noexcept { return stride_; }
  [[nodiscard]] Word* row(std::int64_t v) noexcept { return words_.data() + v * stride_; }
  [[nodiscard]] const Word* row(std::int64_t v) const noexcept { return words_.data() + v * stride_; }
  /// The first one of a row, which has one.
  [[nodiscard]] std::int64_t first_of(std::int64_t v) const noexcept {
    const Word* word = row(v);
    while (*word == 0) ++word;
    return (word - row(v)) * kWordBits + std::countr_zero(*word);
  }
  /// False where it is set already.
  bool set(std::int64_t v, std::int64_t w) noexcept {
    Word& word = row(v)[w / kWordBits];
    const Word bit = Word{1} << (w % kWordBits);
    const bool fresh = (word & bit) == 0;
    word |= bit;
    return fresh;
  }

 private:
  std::int64_t n_;
  std::int64_t stride_;
  core::AlignedArray<Word> words_;
};

/// body(begin, end) for the rows of each task.
template <class Body>
void for_tasks(const Context& ctx, const BitMatrix& matrix, const Body& body) {
  const std::int64_t rows = std::max<std::int64_t>(1, kTaskWords / matrix.stride());
  core::parallel_for(ctx, (matrix.n() + rows - 1) / rows, [&](std::int64_t task, int /*worker*/) {
    body(task * rows, std::min(matrix.n(), (task + 1) * rows));
  });
}

template <class Body>
void for_rows(const Context& ctx, const BitMatrix& matrix, const Body& body) {
  for_tasks(ctx, matrix, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t v = begin; v < end; ++v) body(v);
  });
}

/// What is known of each row from product to product. A row that a product leaves as it was names a whole component. It
/// lies in both matrices then and is not looked at again, and any row that names it becomes like it.
class Rows {
 public:
  std::vector<std::int64_t> ones;

  void assign(std::int64_t n) {
    ones.assign(static_cast<std::size_t>(n), 1);
    closed_.assign(static_cast<std::size_t>(n), 0);
  }
  /// Asked by other workers, too, which find the same whether or not they see the last product's.
  [[nodiscard]] bool is_closed(std::int64_t v) { return closed(v).load(std::memory_order_relaxed) != 0; }
  /// Row v has `count` ones after a product, which takes none away.
  void update(std::int64_t v, std::int64_t count) {
    std::int64_t& own = ones[static_cast<std::size_t>(v)];
    if (own == count) {
      closed(v).store(1, std::memory_order_relaxed);
    } else {
      own = count;
    }
  }

 private:
  std::atomic_ref<std::uint8_t> closed(std::int64_t v) {
    return std::atomic_ref<std::uint8_t>(closed_[static_cast<std::size_t>(v)]);
  }
  std::vector<std::uint8_t> closed_;
};

/// Rows of the square, made one after the other by one worker.
class Squaring {
 public:
  Squaring(const Context& ctx, const BitMatrix& from, BitMatrix& to, Rows& rows, std::int64_t first_row)
      : ctx_(ctx), from_(from), to_(to), rows_(rows), first_row_(first_row) {}

  /// Row v, which comes after the rows made before: the "or" of the rows that it names. Returns its ones.
  std::int64_t make(std::int64_t v) {
    if (!rows_.is_closed(v)) rows_.update(v, square_of(v));
    return rows_.ones[static_cast<std::size_t>(v)];
  }

 private:
  std::int64_t square_of(std::int64_t v) {
    // A row like that of the first member it names has that one's square, too: of a closed group one row is made.
    const std::int64_t first = from_.first_of(v);
    const auto bytes = static_cast<std::size_t>(from_.stride()) * sizeof(Word);
    if (first >= first_row_ && first < v && std::memcmp(from_.row(v), from_.row(first), bytes) == 0) {
      std::memcpy(to_.row(v), to_.row(first), bytes);
      return rows_.ones[static_cast<std::size_t>(first)];
    }
    const std::int64_t closed = name_rows(v);
    if (closed < 0) return unite(to_.row(v));
    std::memcpy(to_.row(v), from_.row(closed), bytes);
    return rows_.ones[static_cast<std::size_t>(closed)];
  }
  /// Or a closed one of them, -1 where there is none.
  std::int64_t name_rows(std::int64_t v) {
    names_.clear();
    const Word* const own = from_.row(v);
    for (std::int64_t w = 0; w < from_.stride(); ++w) {
      for (Word left = own[w]; left != 0; left &= left - 1) {
        const std::int64_t name = w * kWordBits + std::countr_zero(left);
        if (rows_.is_closed(name)) return name;
        names_.push_back(name);
      }
    }
    return -1;
  }
  std::int64_t unite(Word* to) const {
    std::int64_t ones = 0;
    for (std::int64_t word = 0; word < from_.stride(); word += kUnionWords) {
      if (word % kLook == 0) ctx_.check_cancelled();
      ones += unite_rows_(from_.row(0) + word, from_.stride(), names_.data(), std::ssize(names_), to + word);
    }
    return ones;
  }

  const Context& ctx_;
  const BitMatrix& from_;
  BitMatrix& to_;
  Rows& rows_;
  std::int64_t first_row_;
  UniteRowsFn unite_rows_ = unite_rows(ctx_.isa());
  std::vector<std::int64_t> names_;  // members that are ones of a row
};

BitMatrix adjacency(const Context& ctx, const BipartiteEdges& edges, Rows& rows) {
  BitMatrix matrix(edges.n_a() + edges.n_b());
  rows.assign(matrix.n());
  for_rows(ctx, matrix, [&](std::int64_t v) {
    std::fill_n(matrix.row(v), matrix.stride(), Word{0});
    matrix.set(v, v);
  });
  for (std::int64_t e = 0; e < edges.size(); ++e) {
    if (e % kTaskWords == 0) ctx.check_cancelled();
    kernels::require_in_range(edges, e);
    const std::int64_t b = edges.n_a() + edges.b(e);
    if (!matrix.set(edges.a(e), b)) continue;
    matrix.set(b, edges.a(e));
    ++rows.ones[static_cast<std::size_t>(edges.a(e))];
    ++rows.ones[static_cast<std::size_t>(b)];
  }
  return matrix;
}

}  // namespace

std::uint64_t closure_bytes(const kernels::GraphTask& task) {
  const auto n = static_cast<std::uint64_t>(task.members());
  return kernels::matrix_bytes(n, 2 * ((n + 511) / 512 * 64) + sizeof(std::int64_t) + 1);
}

void label_by_bits(const Context& ctx, const kernels::GraphTask& task, kernels::GraphLabels& labels) {
  const BipartiteEdges& edges = *task.edges;
  Rows rows;
  BitMatrix matrix = adjacency(ctx, edges, rows);
  BitMatrix square(matrix.n());
  timespec t0;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t0);
  std::atomic<std::int64_t> ones = std::accumulate(rows.ones.begin(), rows.ones.end(), std::int64_t{0});
  std::int64_t before = 0;
  while (ones != before) {
    before = ones.exchange(0);
    for_tasks(ctx, matrix, [&](std::int64_t begin, std::int64_t end) {
      Squaring squaring(ctx, matrix, square, rows, begin);
      std::int64_t own = 0;
      for (std::int64_t v = begin; v < end; ++v) own += squaring.make(v);
      ones += own;
    });
    std::swap(matrix, square);
    labels.nonzeros.push_back(ones);
    ctx.report("closure", static_cast<double>(before) / static_cast<double>(ones));
  }
  for_rows(ctx, matrix, [&](std::int64_t v) {
    const bool in_a = v < edges.n_a();
    (in_a ? labels.a : labels.b)[static_cast<std::size_t>(in_a ? v : v - edges.n_a())] = matrix.first_of(v);
  });
  timespec t1;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t1);
  labels.seconds = double(t1.tv_sec - t0.tv_sec) + 1e-9 * double(t1.tv_nsec - t0.tv_nsec);
}

}  // namespace vicinal::cpu

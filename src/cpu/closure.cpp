// The closure of a bipartite graph, a bit an element (contract clause 14; Zhang et al. 2013): the adjacency matrix
// C = [[I, R], [R', I]] is squared until its ones stay as many; row v of C C is then the "or" of the rows that row v
// names, and the first one of a row is its label. Powers double, so that ceil(log2 diameter) products and one more do.
// Cost of a product: a row of n / 64 words for each one of the matrix; memory: n^2 / 4 bytes.
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>

#include "core/aligned.hpp"
#include "core/parallel.hpp"
#include "cpu/graphs.hpp"

namespace vicinal::cpu {
namespace {

using Word = std::uint64_t;
constexpr std::int64_t kBits = 64;
constexpr std::int64_t kTaskWords = std::int64_t{1} << 15;  // of rows written; each takes n rows read at most
constexpr std::int64_t kBlock = 512;                        // words of a row in the works: a core's first cache

/// n x n bits; every row begins a cache line and ends in zeros.
class BitMatrix {
 public:
  explicit BitMatrix(std::int64_t n) : n_(n), stride_((n + 511) / 512 * 8), words_(n * stride_) {}

  [[nodiscard]] std::int64_t n() const noexcept { return n_; }
  [[nodiscard]] std::int64_t stride() const noexcept { return stride_; }
  [[nodiscard]] Word* row(std::int64_t v) noexcept { return words_.data() + v * stride_; }
  [[nodiscard]] const Word* row(std::int64_t v) const noexcept { return words_.data() + v * stride_; }
  void set(std::int64_t v, std::int64_t w) noexcept { row(v)[w / kBits] |= Word{1} << (w % kBits); }

 private:
  std::int64_t n_;
  std::int64_t stride_;
  core::AlignedArray<Word> words_;
};

std::int64_t rows_of_task(const BitMatrix& matrix) {
  return std::max<std::int64_t>(1, kTaskWords / matrix.stride());
}

template <class Body>
void for_rows(const Context& ctx, const BitMatrix& matrix, const Body& body) {
  const std::int64_t rows = rows_of_task(matrix);
  core::parallel_for(ctx, (matrix.n() + rows - 1) / rows, [&](std::int64_t task, int /*worker*/) {
    for (std::int64_t v = task * rows; v < std::min(matrix.n(), (task + 1) * rows); ++v) body(v);
  });
}

/// Row v of the square: the "or" of the rows that `from` names in row v, and how many ones it has. Eight words, a
/// vector or two, stay in registers over all of them.
std::int64_t square_row(const Context& ctx, const BitMatrix& from, std::int64_t v, Word* to) {
  const std::int64_t words = from.stride();
  const Word* const own = from.row(v);
  std::int64_t ones = 0;
  for (std::int64_t block = 0; block < words; block += 8) {
    if (block % kBlock == 0) ctx.check_cancelled();
    Word sum[8] = {};
    for (std::int64_t w = 0; w < words; ++w) {
      for (Word left = own[w]; left != 0; left &= left - 1) {
        const Word* const other = from.row(w * kBits + std::countr_zero(left)) + block;
        for (int i = 0; i < 8; ++i) sum[i] |= other[i];
      }
    }
    for (int i = 0; i < 8; ++i) {
      to[block + i] = sum[i];
      ones += std::popcount(sum[i]);
    }
  }
  return ones;
}

BitMatrix adjacency(const Context& ctx, const BipartiteEdges& edges) {
  BitMatrix matrix(edges.n_a() + edges.n_b());
  for_rows(ctx, matrix, [&](std::int64_t v) {
    std::fill_n(matrix.row(v), matrix.stride(), Word{0});
    matrix.set(v, v);
  });
  for (std::int64_t e = 0; e < edges.size(); ++e) {
    if (e % kTaskWords == 0) ctx.check_cancelled();
    kernels::require_in_range(edges, e);
    const std::int64_t b = edges.n_a() + edges.b(e);
    matrix.set(edges.a(e), b);
    matrix.set(b, edges.a(e));
  }
  return matrix;
}

}  // namespace

std::uint64_t closure_bytes(const kernels::GraphTask& task) {
  const auto n = static_cast<std::uint64_t>(task.members());
  return kernels::matrix_bytes(n, 2 * ((n + 511) / 512 * 64));
}

void label_by_bits(const Context& ctx, const kernels::GraphTask& task, kernels::GraphLabels& labels) {
  const BipartiteEdges& edges = *task.edges;
  BitMatrix matrix = adjacency(ctx, edges);
  BitMatrix square(matrix.n());
  const auto start = std::chrono::steady_clock::now();
  std::atomic<std::int64_t> ones{0};
  for_rows(ctx, matrix, [&](std::int64_t v) {
    std::int64_t own = 0;
    for (std::int64_t w = 0; w < matrix.stride(); ++w) own += std::popcount(matrix.row(v)[w]);
    ones += own;
  });
  std::int64_t before = 0;
  while (ones != before) {
    before = ones.exchange(0);
    for_rows(ctx, matrix, [&](std::int64_t v) { ones += square_row(ctx, matrix, v, square.row(v)); });
    std::swap(matrix, square);
    labels.nonzeros.push_back(ones);
    ctx.report("closure", static_cast<double>(before) / static_cast<double>(ones));
  }
  for_rows(ctx, matrix, [&](std::int64_t v) {
    std::int64_t w = 0;
    while (matrix.row(v)[w] == 0) ++w;
    const std::int64_t label = w * kBits + std::countr_zero(matrix.row(v)[w]);
    const bool in_a = v < edges.n_a();
    (in_a ? labels.a : labels.b)[static_cast<std::size_t>(in_a ? v : v - edges.n_a())] = label;
  });
  labels.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace vicinal::cpu

// The paper's closure (Zhang et al. 2013; contract clause 16): the adjacency matrix with self loops as integers,
// multiplied by itself, what is not 0 set to 1, until the ones stay as many. product_serial is its serial program,
// three loops of which the innermost walks down a column; product_global gives each row to a worker; product_tiled
// multiplies tiles that fit a core's first cache. Cost: n^3 products of integers each time, 8 n^2 bytes.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "core/aligned.hpp"
#include "core/parallel.hpp"
#include "core/seconds.hpp"
#include "cpu/graph/graphs.hpp"

namespace vicinal::cpu {
namespace {

using Matrix = core::AlignedArray<std::int32_t>;      // [n, n]; counts are at most n, which memory keeps below 2^31
constexpr std::int64_t kTile = 64;                    // three tiles of 16 KiB
constexpr std::int64_t kColumns = 64;                 // between two looks at the cancel token: of 10,000 rows, 5 ms
constexpr std::int64_t kEdgesBetweenLooks = 1 << 20;  // likewise

/// Row i of the product; ones in it.
std::int64_t plain_row(const Context& ctx, const Matrix& from, std::int64_t n, std::int64_t i, Matrix& to) {
  std::int64_t ones = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    if (j % kColumns == 0) ctx.check_cancelled();
    std::int32_t sum = 0;
    for (std::int64_t l = 0; l < n; ++l) sum += from[i * n + l] * from[l * n + j];
    to[i * n + j] = sum != 0 ? 1 : 0;
    ones += sum != 0 ? 1 : 0;
  }
  return ones;
}

/// Rows of tile `task` of the product; ones in them.
std::int64_t tiled_rows(const Context& ctx, const Matrix& from, std::int64_t n, std::int64_t task, Matrix& to) {
  const std::int64_t top = task * kTile;
  const std::int64_t bottom = std::min(n, top + kTile);
  std::int64_t ones = 0;
  for (std::int64_t left = 0; left < n; left += kTile) {
    ctx.check_cancelled();
    const std::int64_t right = std::min(n, left + kTile);
    std::int32_t sums[kTile][kTile] = {};
    for (std::int64_t begin = 0; begin < n; begin += kTile) {
      const std::int64_t end = std::min(n, begin + kTile);
      for (std::int64_t i = top; i < bottom; ++i) {
        for (std::int64_t l = begin; l < end; ++l) {
          const std::int32_t factor = from[i * n + l];
          for (std::int64_t j = left; j < right; ++j) sums[i - top][j - left] += factor * from[l * n + j];
        }
      }
    }
    for (std::int64_t i = top; i < bottom; ++i) {
      for (std::int64_t j = left; j < right; ++j) {
        to[i * n + j] = sums[i - top][j - left] != 0 ? 1 : 0;
        ones += to[i * n + j];
      }
    }
  }
  return ones;
}

std::int64_t multiply(const Context& ctx, CoclusterMethod method, const Matrix& from, std::int64_t n, Matrix& to) {
  std::atomic<std::int64_t> ones{0};
  if (method == CoclusterMethod::product_serial) {
    for (std::int64_t i = 0; i < n; ++i) ones += plain_row(ctx, from, n, i, to);
  } else if (method == CoclusterMethod::product_global) {
    core::parallel_for(ctx, n, [&](std::int64_t i, int /*worker*/) { ones += plain_row(ctx, from, n, i, to); });
  } else {
    core::parallel_for(ctx, (n + kTile - 1) / kTile,
                       [&](std::int64_t task, int /*worker*/) { ones += tiled_rows(ctx, from, n, task, to); });
  }
  return ones;
}

}  // namespace

std::uint64_t product_bytes(const kernels::GraphTask& task) {
  const auto n = static_cast<std::uint64_t>(task.members());
  return kernels::matrix_bytes(n, 2 * n * sizeof(std::int32_t));
}

void label_by_products(const Context& ctx, const kernels::GraphTask& task, kernels::GraphLabels& labels) {
  const BipartiteEdges& edges = *task.edges;
  const std::int64_t n = task.members();
  Matrix matrix(n * n);
  Matrix product(n * n);
  core::parallel_for(ctx, n, [&](std::int64_t v, int /*worker*/) {
    std::fill_n(matrix.data() + v * n, n, 0);
    matrix[v * n + v] = 1;
  });
  std::int64_t ones = n;
  for (std::int64_t e = 0; e < edges.size(); ++e) {
    if (e % kEdgesBetweenLooks == 0) ctx.check_cancelled();
    kernels::require_in_range(edges, e);
    const std::int64_t a = edges.a(e);
    const std::int64_t b = edges.n_a() + edges.b(e);
    ones += matrix[a * n + b] == 0 ? 2 : 0;
    matrix[a * n + b] = matrix[b * n + a] = 1;
  }
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t before = 0; ones != before;) {
    before = ones;
    ones = multiply(ctx, task.method, matrix, n, product);
    std::swap(matrix, product);
    labels.nonzeros.push_back(ones);
    ctx.report("closure", static_cast<double>(before) / static_cast<double>(ones));
  }
  for (std::int64_t v = 0; v < n; ++v) {
    const std::int32_t* const row = matrix.data() + v * n;
    const std::int64_t label = std::find(row, row + n, 1) - row;
    const bool in_a = v < edges.n_a();
    (in_a ? labels.a : labels.b)[static_cast<std::size_t>(in_a ? v : v - edges.n_a())] = label;
  }
  labels.seconds = seconds_since(start);
}

}  // namespace vicinal::cpu

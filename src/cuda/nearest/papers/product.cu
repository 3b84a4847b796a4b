// Rounding, limits, scores and the certificate of the papers' products. See product.hpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/distance.hpp"
#include "core/ordered_bits.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/nearest/papers/cublas.hpp"
#include "cuda/nearest/papers/product.hpp"

namespace vicinal::cuda::papers {
namespace {

unsigned lines(std::int64_t queries) {
  return static_cast<unsigned>(std::min(queries, kMaxLines));
}

// A warp a row.
__global__ void round_kernel(const double* rows, std::int64_t count, std::int64_t d, const double* centre, double scale,
                             bool queries, float* values, core::FloatRow* terms) {
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * blockDim.x / 32;
  const auto lane = static_cast<std::int64_t>(threadIdx.x % 32);
  for (std::int64_t i = (own_number()) / 32; i < count; i += warps) {
    core::FloatSums sums;
    for (std::int64_t j = lane; j < d; j += 32) {
      values[i * d + j] = core::add_float((rows[i * d + j] - centre[j]) * scale, sums);
    }
    for (int step = 16; step > 0; step /= 2) {
      sums.exact_sq += __shfl_xor_sync(kWholeWarp, sums.exact_sq, step);
      sums.rounded_sq += __shfl_xor_sync(kWholeWarp, sums.rounded_sq, step);
      sums.error_sq += __shfl_xor_sync(kWholeWarp, sums.error_sq, step);
    }
    const core::FloatRow row = core::float_row(sums);
    if (lane == 0) terms[i] = row;
    if (queries ? core::float_usable(row) : core::float_fits(row, d)) continue;
    for (std::int64_t j = lane; j < d; j += 32) values[i * d + j] = 0;
  }
}

// The k-th smallest of a query's keys by as many rounds of halving as a double has bits: one block a query.
__global__ void kth_kernel(const double* all_keys, std::int64_t queries, std::int64_t count, std::int64_t room,
                           std::int64_t k, double* kth) {
  __shared__ int below;
  for (std::int64_t q = blockIdx.x; q < queries; q += gridDim.x) {
    const double* keys = all_keys + q * room;
    std::int64_t low = core::ordered_bits(-INFINITY);
    std::int64_t high = core::ordered_bits(INFINITY);  // that many keys are not above it
    while (low < high) {
      const std::int64_t middle = (low & high) + ((low ^ high) >> 1);
      const double threshold = core::from_ordered_bits(middle);
      if (threadIdx.x == 0) below = 0;
      __syncthreads();
      int mine = 0;
      for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) mine += keys[i] <= threshold ? 1 : 0;
      if (mine > 0) atomicAdd(&below, mine);
      __syncthreads();
      const bool enough = below >= k;
      __syncthreads();
      if (enough) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    if (threadIdx.x == 0) kth[q] = core::from_ordered_bits(high);
  }
}

__global__ void spread_kernel(std::int64_t queries, std::int64_t n, std::int64_t count, std::int64_t room,
                              std::int64_t* rows) {
  const std::int64_t i = own_number();
  if (i >= count) return;
  for (std::int64_t q = blockIdx.y; q < queries; q += gridDim.y) rows[q * room + i] = i * (n / count);
}

// A cosine key is half a sum of squares.
__device__ double sum_of(Metric metric, double key) {
  return metric == Metric::cosine ? 2 * key : key;
}

__global__ void limit_kernel(ProductBlock block, const core::FloatRow* queries, std::int64_t count, std::int64_t d,
                             const std::uint8_t* zero) {
  const std::int64_t q = own_number();
  if (q >= count) return;
  // A query of zeros is at cosine distance 1 from everything: no product says so.
  const double key = zero != nullptr && zero[q] != 0 ? INFINITY : sum_of(block.metric, block.seeds[q]);
  block.limits[q] =
      core::float_query(queries[q], block.metric == Metric::inner_product, key, block.typical, d, block.exponent);
}

__global__ void start_kernel(Pairs pairs, const core::FloatQuery* limits, const core::FloatRow* table, float* scores) {
  const std::int64_t n = pairs.table.count;
  const std::int64_t row = own_number();
  if (row >= n) return;
  const core::FloatRow terms = table[row];
  const bool always = pairs.table.zero != nullptr && pairs.table.zero[row] != 0;
  for (std::int64_t q = blockIdx.y; q < pairs.queries.count; q += gridDim.y) {
    float start = always ? INFINITY : core::float_start(limits[q], terms, pairs.d);
    if (!pairs.eligible(q, row)) start = -INFINITY;
    scores[q * n + row] = start;
  }
}

// One block a query: the largest key of the rows chosen is a limit, too.
__global__ void tighten_kernel(ProductBlock block, const core::FloatRow* queries, std::int64_t count, std::int64_t d,
                               const double* keys) {
  for (std::int64_t q = blockIdx.x; q < count; q += gridDim.x) {
    double most = -INFINITY;
    for (std::int64_t i = threadIdx.x; i < block.k; i += blockDim.x) most = fmax(most, keys[q * block.k + i]);
    for (int step = 16; step > 0; step /= 2) most = fmax(most, __shfl_xor_sync(kWholeWarp, most, step));
    if (threadIdx.x != 0) continue;
    core::FloatQuery& old = block.limits[q];
    if (!(old.t > -INFINITY) || !(most < block.seeds[q])) continue;
    const core::FloatQuery now = core::float_query(queries[q], block.metric == Metric::inner_product,
                                                   sum_of(block.metric, most), block.typical, d, block.exponent);
    // A threshold of other a and b (it may change its form) is not one of these scores.
    if (now.a <= old.a && now.b <= old.b && now.t > old.t) old.t = now.t;
  }
}

__global__ void collect_kernel(Pairs pairs, const core::FloatQuery* limits, const float* scores, std::int64_t* rows,
                               unsigned long long* counts) {
  const std::int64_t n = pairs.table.count;
  const std::int64_t row = own_number();
  if (row >= n) return;
  for (std::int64_t q = blockIdx.y; q < pairs.queries.count; q += gridDim.y) {
    if (scores[q * n + row] < limits[q].t || !pairs.eligible(q, row)) continue;
    rows[q * n + static_cast<std::int64_t>(atomicAdd(&counts[q], 1ULL))] = row;
  }
}

}  // namespace

FloatScale float_scale(const Engine& engine, const Search& search) {
  const std::int64_t d = search.table.d;
  std::vector<double> centre(static_cast<std::size_t>(d));
  check(cudaMemcpyAsync(centre.data(), search.facts.centre, centre.size() * sizeof(double), cudaMemcpyDeviceToHost,
                        engine.stream),
        "fetch the center");
  engine.synchronize();
  double largest = search.facts.largest;
  if (search.metric == Metric::cosine) {
    largest = core::normalize_row(centre.data(), d, centre.data()) ? 2 : 1;
  } else if (search.metric == Metric::inner_product) {
    largest = search.facts.largest_value;
    std::fill(centre.begin(), centre.end(), 0.0);
  }
  FloatScale scale;
  scale.exponent = largest > 0 ? -std::clamp(std::ilogb(largest) + 1, -1000, 1000) : 0;
  scale.centre = Buffer<double>(engine, d);
  check(cudaMemcpyAsync(scale.centre.data(), centre.data(), centre.size() * sizeof(double), cudaMemcpyHostToDevice,
                        engine.stream),
        "copy the center");
  engine.synchronize();  // `centre` ends here
  return scale;
}

FloatRows round_rows(const Engine& engine, const FloatScale& scale, const WideBlock& rows, std::int64_t d,
                     bool queries) {
  FloatRows rounded;
  rounded.count = rows.count;
  rounded.values = Buffer<float>(engine, rows.count * d);
  rounded.terms = Buffer<core::FloatRow>(engine, rows.count);
  round_kernel<<<std::min(blocks_for(rows.count * 32, kThreads), 1U << 16), kThreads, 0, engine.stream>>>(
      rows.rows, rows.count, d, scale.centre.data(), core::power_of_two(scale.exponent), queries, rounded.values.data(),
      rounded.terms.data());
  check_launch("round rows");
  return rounded;
}

double typical_norm(const Engine& engine, const FloatRows& table) {
  const std::int64_t count = std::min<std::int64_t>(table.count, 1024);
  std::vector<core::FloatRow> sample(static_cast<std::size_t>(count));
  check(
      cudaMemcpy2DAsync(sample.data(), sizeof(core::FloatRow), table.terms.data(),
                        static_cast<std::size_t>(table.count / count) * sizeof(core::FloatRow), sizeof(core::FloatRow),
                        static_cast<std::size_t>(count), cudaMemcpyDeviceToHost, engine.stream),
      "fetch lengths");
  engine.synchronize();
  double sum = 0;
  for (const core::FloatRow& row : sample) sum += row.norm;
  return std::isfinite(sum) ? sum / static_cast<double>(count) : 0;
}

void seed_block(const Engine& engine, const ProductBlock& block) {
  const Pairs& pairs = *block.pairs;
  const std::int64_t n = pairs.table.count;
  const std::int64_t queries = pairs.queries.count;
  const std::int64_t count = std::min(n, 4 * block.k + 64);
  spread_kernel<<<dim3(blocks_for(count, kThreads), lines(queries)), kThreads, 0, engine.stream>>>(queries, n, count, n,
                                                                                                   block.rows);
  check_launch("choose some rows");
  keys_of_chosen(engine, block.metric, pairs, block.rows, nullptr, count, n, block.keys);
  // Where fewer than k of them are eligible the limit is infinite, and every row will be ranked.
  kth_kernel<<<lines(queries), kThreads, 0, engine.stream>>>(block.keys, queries, count, n, block.k, block.seeds);
  check_launch("limits");
  limit_kernel<<<blocks_for(queries, kThreads), kThreads, 0, engine.stream>>>(block, block.queries->terms.data(),
                                                                              queries, pairs.d, pairs.queries.zero);
  check_launch("thresholds");
}

void score_block(const Engine& engine, const ProductBlock& block) {
  const Pairs& pairs = *block.pairs;
  const std::int64_t n = pairs.table.count;
  const std::int64_t queries = pairs.queries.count;
  start_kernel<<<dim3(blocks_for(n, kThreads), lines(queries)), kThreads, 0, engine.stream>>>(
      pairs, block.limits, block.table->terms.data(), block.scores);
  check_launch("start of the products");
  add_products(engine, block.queries->values.data(), queries, block.table->values.data(), n, pairs.d, block.scores);
}

void collect_block(const Engine& engine, const ProductBlock& block, const std::int64_t* chosen) {
  const Pairs& pairs = *block.pairs;
  const std::int64_t n = pairs.table.count;
  const std::int64_t queries = pairs.queries.count;
  keys_of_chosen(engine, block.metric, pairs, chosen, nullptr, block.k, block.k, block.keys);
  tighten_kernel<<<lines(queries), 32, 0, engine.stream>>>(block, block.queries->terms.data(), queries, pairs.d,
                                                           block.keys);
  check_launch("thresholds of the chosen");
  check(cudaMemsetAsync(block.counts, 0, static_cast<std::size_t>(queries) * sizeof(unsigned long long), engine.stream),
        "clear counts");
  collect_kernel<<<dim3(blocks_for(n, kThreads), lines(queries)), kThreads, 0, engine.stream>>>(
      pairs, block.limits, block.scores, block.rows, block.counts);
  check_launch("collect");
  keys_of_chosen(engine, block.metric, pairs, block.rows, block.counts, 0, n, block.keys);
}

}  // namespace vicinal::cuda::papers

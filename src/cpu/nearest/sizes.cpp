// Batches and blocks of bounded memory, and tasks that are neither too short nor too few. See sizes.hpp.
#include "cpu/nearest/sizes.hpp"

#include <algorithm>

#include "cpu/nearest/block.hpp"
#include "cpu/nearest/query_batch.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kBatchBytes = std::int64_t{64} << 20;  // queries of one round
constexpr std::int64_t kPanelBytes = std::int64_t{16} << 20;  // packed rows of one block
constexpr std::int64_t kLargestBlock = 2048;
constexpr std::int64_t kLargestSample = 16384;
constexpr std::int64_t kAlone = 1 << 17;                     // columns ranked, some 30 microseconds
constexpr std::int64_t kMostParts = 64;                      // of a round
constexpr std::int64_t kPartLists = std::int64_t{32} << 20;  // bytes of the lists of all parts
constexpr std::int64_t kFewestBlocks = 8;                    // of a table that is divided into parts
constexpr std::int64_t kMostWaiting = 6400;                  // neighbors of all queries, where rows wait
constexpr std::int64_t kRoundsShare = 6;                     // times as many rows wait in a part, about, at most

}  // namespace

Sizes::Sizes(const kernels::NearestTask& task, const SimdKernels& simd, const std::vector<ScreenType>& screens) {
  const bool screened = !screens.empty();
  const std::int64_t n = task.num_compared_rows();
  const std::int64_t m = task.queries.rows();
  const std::int64_t d = task.queries.cols();
  const std::int64_t quantum = kMaxTileRows;
  const std::int64_t fitting = std::clamp(kPanelBytes / (4 * d), std::int64_t{64}, kLargestBlock);
  block = std::clamp(n / 8, std::int64_t{64}, fitting) / quantum * quantum;
  // What is done before another thread is awake is not divided.
  if (!screened && m <= kAlone / (n * (d + 8))) block = (std::min(n, fitting) + quantum - 1) / quantum * quantum;
  if (task.metric == Metric::minkowski) block = 64;  // a power costs a hundred products: short tasks stay cancellable
  const auto per_query = static_cast<std::int64_t>(QueryBatch::bytes_a_query(task, screens));
  batch = std::min(m, std::max(kBatchBytes / per_query, std::int64_t{kMaxTileQueries}));
  if (task.collect != kernels::Collect::k_list) batch = std::min<std::int64_t>(batch, 4096);
  const std::int64_t tile = simd.tile_queries;
  group = d <= 4096 && m >= 16 * tile ? kGroupTiles * tile : tile;
  if (task.metric == Metric::minkowski) group = 4;
  sample = std::max({std::int64_t{256}, 4 * task.k, std::min(n / 64, kLargestSample)});
  if (!screened || !has_limit_from_sample(task) || !task.some_rows.empty() || sample > n / 4) sample = 0;
}

bool has_limit_from_sample(const kernels::NearestTask& task) {
  return task.collect == kernels::Collect::k_list;
}

bool splits_rows(const Context& ctx, const kernels::NearestTask& task, const Sizes& sizes, bool screened) {
  const std::int64_t m = task.queries.rows();
  return !screened && !task.index->table.is_block_source() && m <= sizes.batch && m < 2 * sizes.group * ctx.threads();
}

bool ranks_single_rows(const kernels::NearestTask& task, bool screened) {
  constexpr std::int64_t kRanked = 256;  // rows of the table that a query ranks, about
  if (!screened || task.index->table.is_block_source()) return false;
  if (RowReading::of(task.index->table, task.metric).borrow) return true;
  return task.kept_screens > 0 && task.queries.rows() <= task.index->distinct_rows() / kRanked;
}

std::int64_t parts_of(const kernels::NearestTask& task, const Sizes& sizes) {
  const std::int64_t blocks = (task.num_compared_rows() + sizes.block - 1) / sizes.block;
  const bool lists = task.collect == kernels::Collect::k_list && task.queries.rows() <= sizes.batch &&
                     task.k <= kPartLists / 16 / kMostParts / task.queries.rows();
  return task.kept_screens > 0 && task.some_rows.empty() && lists && blocks >= kFewestBlocks
             ? std::min(blocks, kMostParts)
             : 0;
}

std::int64_t waiting_rows(const kernels::NearestTask& task, const Sizes& sizes) {
  const bool distances = task.metric == Metric::euclidean || task.metric == Metric::sqeuclidean;
  const bool plain = !task.index->grouped() && task.filter.empty() && task.exclude.empty();
  const bool fits = task.k <= kMostWaiting / task.queries.rows() && task.index->table.rows() < std::int64_t{1} << 32;
  if (!distances || !plain || !fits || parts_of(task, sizes) == 0 || !ranks_single_rows(task, true)) return 0;
  return kRoundsShare * task.k * task.queries.rows() + 256;
}

std::uint64_t waiting_bytes(const kernels::NearestTask& task, const Sizes& sizes) {
  const std::int64_t rows = waiting_rows(task, sizes);
  if (rows == 0) return 0;
  const std::int64_t heaps = task.queries.rows() * (task.k * std::int64_t{sizeof(float)} + 8);
  return static_cast<std::uint64_t>(parts_of(task, sizes) * rows * kWaitingRowBytes + heaps);
}

}  // namespace vicinal::cpu

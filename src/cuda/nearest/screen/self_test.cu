// See self_test.hpp. The screen itself (screen_all, so the same instructions in the same order) multiplies the rows of
// formulas/nearest/sums_test.hpp: as wide as one step, as fits in shared memory, and wider.
#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "cuda/base/mma.cuh"
#include "cuda/nearest/screen/screen.hpp"
#include "cuda/nearest/screen/self_test.hpp"
#include "formulas/nearest/few_queries.hpp"
#include "formulas/nearest/sums_test.hpp"

namespace vicinal::cuda {
namespace {

constexpr std::int64_t kQueries = 32;
constexpr std::array<int, 3> kWidths = {16, 128, 512};

struct Model {
  core::Accumulation sums;
  const char* name;
};
constexpr std::array<Model, 3> kModels = {
    {{core::kHopperSums, "hopper"}, {core::kAmpereSums, "ampere"}, {core::kVoltaSums, "volta"}}};
/// What may be claimed for the instruction of the screens, the narrowest first. mma.sync is given no more than
/// Ampere's, on Turing Volta's.
std::span<const Model> models_of(const Engine& engine) {
  const std::size_t first = !engine.portable ? 0 : engine.compiled_for >= 80 ? 1 : 2;
  return std::span<const Model>(kModels).subspan(first);
}

/// One tile, its first rows the operands, in device memory.
Buffer<__half> tile_of(const Engine& engine, const core::SumsOperands& operands, int tile_rows) {
  std::vector<std::uint16_t> packed(static_cast<std::size_t>(tile_rows * operands.columns), 0);
  for (std::int64_t i = 0; i < operands.rows * operands.columns; ++i) {
    const auto row = static_cast<int>(i / operands.columns);
    const auto col = static_cast<int>(i % operands.columns);
    packed[static_cast<std::size_t>(packed_offset(tile_rows, row, col))] = operands.halves[static_cast<std::size_t>(i)];
  }
  Buffer<__half> tile(engine, static_cast<std::int64_t>(packed.size()));
  check(cudaMemcpyAsync(tile.data(), packed.data(), tile.bytes(), cudaMemcpyHostToDevice, engine.stream),
        "copy rows of the self-test");
  engine.synchronize();
  return tile;
}

double largest_error(const Engine& engine, int columns) {
  const core::SumsOperands x = core::sums_operands(true, kQueries, columns);
  const core::SumsOperands y = core::sums_operands(false, kTableTile, columns);
  const Buffer<__half> x_tile = tile_of(engine, x, kQueryTile);
  const Buffer<__half> y_tile = tile_of(engine, y, kTableTile);
  PackedTable table;
  table.tiles = y_tile.data();
  table.chosen.count = kTableTile;
  table.tile_count = 1;
  table.columns = columns;
  ScreenQueries queries;
  queries.tiles = x_tile.data();
  queries.rows = kQueries;
  queries.tile_count = 1;
  const Buffer<float> scores(engine, kQueries * kTableTile);
  // A sum that nobody writes is no number.
  check(cudaMemsetAsync(scores.data(), 0xFF, scores.bytes(), engine.stream), "set device memory");
  screen_all(engine, table, queries, 0, 1, scores.data());
  std::vector<float> sums(static_cast<std::size_t>(scores.size()));
  check(cudaMemcpyAsync(sums.data(), scores.data(), scores.bytes(), cudaMemcpyDeviceToHost, engine.stream),
        "copy sums of the self-test");
  engine.synchronize();
  return core::largest_sum_error(x, y, sums);
}

MatrixSums tested(const Engine& engine, std::span<const Model> models) {
  double largest = 0;
  for (const int columns : kWidths) largest = std::max(largest, largest_error(engine, columns));
  double error = 0;
  for (const Model& model : models) {
    error = largest / core::half_beta(model.sums);
    if (error <= 1) return {model.sums, model.name, error};
  }
  return {{}, "", error};
}

/// Sums of 16 rows and eight queries, in the order of few_products.cuh.
__global__ void tf32_kernel(const float* x, const float* y, int columns, int rows, float* sums) {
  const int g = static_cast<int>(threadIdx.x) / 4;
  const int t = static_cast<int>(threadIdx.x) % 4;
  const float* const query = x + (blockIdx.y * 8 + g) * columns;
  const float* const row = y + (blockIdx.x * 16 + g) * columns;
  float s[4] = {};
  for (int column = 4 * t; column < columns; column += 16) {
    for (int i = column; i < column + 4; i += 2) {
      const std::uint32_t a[4] = {mma::tf32(row[i]), mma::tf32(row[8 * columns + i]), mma::tf32(row[i + 1]),
                                  mma::tf32(row[8 * columns + i + 1])};
      mma::multiply_add_tf32(s, a, mma::tf32(query[i]), mma::tf32(query[i + 1]));
    }
  }
  for (int i = 0; i < 4; ++i) sums[(blockIdx.y * 8 + 2 * t + i % 2) * rows + blockIdx.x * 16 + i / 2 * 8 + g] = s[i];
}

Buffer<float> singles_of(const Engine& engine, const core::SumsOperands& operands) {
  std::vector<float> values;
  for (const std::uint16_t half : operands.halves) values.push_back(static_cast<float>(core::half_value(half)));
  Buffer<float> rows = uploaded(engine, values.data(), static_cast<std::int64_t>(values.size()));
  engine.synchronize();
  return rows;
}

/// Whether products of tf32, which holds every float16, add as the loosest model says.
bool tf32_holds(const Engine& engine) {
  if (engine.compiled_for < 80) return false;
  double largest = 0;
  for (const int columns : kWidths) {
    const core::SumsOperands x = core::sums_operands(true, kQueries, columns);
    const core::SumsOperands y = core::sums_operands(false, kTableTile, columns);
    const Buffer<float> queries = singles_of(engine, x);
    const Buffer<float> rows = singles_of(engine, y);
    const Buffer<float> found(engine, kQueries * kTableTile);
    check(cudaMemsetAsync(found.data(), 0xFF, found.bytes(), engine.stream), "set device memory");
    tf32_kernel<<<dim3(kTableTile / 16, kQueries / 8), 32, 0, engine.stream>>>(queries.data(), rows.data(), columns,
                                                                               kTableTile, found.data());
    check_launch("multiply rows of the self-test");
    std::vector<float> sums(static_cast<std::size_t>(found.size()));
    to_host(engine, sums.data(), found.data(), found.size());
    engine.synchronize();
    largest = std::max(largest, core::largest_sum_error(x, y, sums));
  }
  return largest <= core::half_beta(core::kFewProductsSums);
}

}  // namespace

void test_sums(Engine& engine) {
  struct Found {
    bool portable;
    MatrixSums sums;
    MatrixSums warp_sums;
    bool has_tf32;
  };
  static std::mutex mutex;
  static std::map<std::pair<int, bool>, Found> known;
  const std::lock_guard lock(mutex);
  const std::pair asked(engine.device, engine.portable);
  auto found = known.find(asked);
  if (found == known.end()) {
    MatrixSums warp_sums;
    if (!engine.portable) {
      // Beside wgmma mma.sync is of use where it adds as well.
      Engine by_warps = engine;
      by_warps.portable = true;
      warp_sums = tested(by_warps, models_of(engine));
    }
    engine.sums = tested(engine, models_of(engine));
    if (engine.sums.model.width == 0 && !engine.portable) {
      engine.portable = true;
      engine.sums = tested(engine, models_of(engine));
    }
    found = known.emplace(asked, Found{engine.portable, engine.sums, warp_sums, tf32_holds(engine)}).first;
  }
  engine.portable = found->second.portable;
  engine.sums = found->second.sums;
  engine.warp_sums = found->second.warp_sums;
  engine.has_tf32 = found->second.has_tf32;
}

}  // namespace vicinal::cuda

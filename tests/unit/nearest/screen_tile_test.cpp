// The int8 tile that an instruction set has without a dot product of bytes, which a machine that has one never calls:
// against the sums by definition, also at the widest values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "core/isa.hpp"
#include "simd/all_kernels.hpp"

namespace vicinal::cpu {
namespace {

class Tile {
 public:
  /// `row_byte`: that of all rows, whose queries are then 255; below 0: all are drawn.
  Tile(const SimdKernels& simd, std::int64_t words, int row_byte, std::uint64_t seed) : simd_(simd), words_(words) {
    std::mt19937_64 random(seed);
    const auto query_bytes = static_cast<std::size_t>(4 * words * simd.tile_queries);
    const auto row_bytes = static_cast<std::size_t>(4 * words * simd.tile_rows);
    for (std::size_t i = 0; i < query_bytes; ++i) {
      queries_.push_back(static_cast<std::byte>(row_byte >= 0 ? 255 : random() % 256));
    }
    for (std::size_t i = 0; i < row_bytes; ++i) {
      rows_.push_back(static_cast<std::byte>(row_byte >= 0 ? static_cast<std::uint64_t>(row_byte) : random() % 256));
    }
    for (int r = 0; r < simd.tile_rows; ++r) {
      // As a screen has it: queries are shifted by 128 to be positive.
      std::int32_t sum = 0;
      for (std::int64_t j = 0; j < 4 * words; ++j) sum += row_value(j / 4, r, j % 4);
      base_.push_back(-128 * sum + static_cast<std::int32_t>(random() % 2000) - 1000);
      rho_.push_back(static_cast<float>(r % 5));
      kappa_.push_back(r == 1 ? 0x1p40F : static_cast<float>(r % 3));  // at most 2^30 of that
    }
    for (int q = 0; q < simd.tile_queries; ++q) {
      for (int r = 0; r < simd.tile_rows; ++r) sums_.push_back(sum_of(q, r));
    }
  }

  /// {(query, row): score} of the survivors.
  [[nodiscard]] std::map<std::pair<int, int>, float> screen(int queries, int rows, std::int32_t least) const {
    const std::vector<float> a(static_cast<std::size_t>(simd_.tile_queries), 0.75F);
    const std::vector<float> b(static_cast<std::size_t>(simd_.tile_queries), 1.5F);
    const std::vector<std::int32_t> limits(static_cast<std::size_t>(simd_.tile_queries), least);
    const std::vector<float> none(static_cast<std::size_t>(simd_.tile_rows));
    std::vector<Survivor> survivors(static_cast<std::size_t>(queries * simd_.tile_rows));
    std::vector<std::int32_t> counts(static_cast<std::size_t>(queries));
    ScreenTile tile{};
    tile.queries = queries_.data();
    tile.rows = rows_.data();
    tile.start = none.data();
    tile.base = base_.data();
    tile.rho = rho_.data();
    tile.kappa = kappa_.data();
    tile.a = a.data();
    tile.b = b.data();
    tile.threshold = a.data();
    tile.least = limits.data();
    tile.words = words_;
    tile.valid_queries = queries;
    tile.valid_rows = rows;
    tile.first_row = 100;
    tile.survivors = survivors.data();
    tile.capacity = simd_.tile_rows;
    tile.counts = counts.data();
    simd_.screens[screen_index(ScreenType::int8)](tile);
    std::map<std::pair<int, int>, float> found;
    for (int q = 0; q < queries; ++q) {
      for (int i = 0; i < counts[static_cast<std::size_t>(q)]; ++i) {
        const Survivor& one = survivors[static_cast<std::size_t>(q * simd_.tile_rows + i)];
        found[{q, static_cast<int>(one.row) - 100}] = one.score;
      }
    }
    return found;
  }

  /// The same by definition.
  [[nodiscard]] std::map<std::pair<int, int>, float> expected(int queries, int rows, std::int32_t least) const {
    std::map<std::pair<int, int>, float> found;
    for (int q = 0; q < queries; ++q) {
      for (int r = 0; r < rows; ++r) {
        const std::int64_t sum = sums_[static_cast<std::size_t>(q * simd_.tile_rows + r)];
        if (sum >= least) found[{q, r}] = static_cast<float>(sum);
      }
    }
    return found;
  }

 private:
  [[nodiscard]] std::int64_t sum_of(int query, int row) const {
    const auto at = static_cast<std::size_t>(row);
    const float more = std::min(0.75F * rho_[at] + 1.5F * kappa_[at], 0x1p30F);
    std::int64_t sum = base_[at] + static_cast<std::int64_t>(more) + 1;
    for (std::int64_t j = 0; j < words_; ++j) {
      for (int byte = 0; byte < 4; ++byte) {
        const auto x = queries_[static_cast<std::size_t>(4 * (j * simd_.tile_queries + query) + byte)];
        sum += std::to_integer<std::int64_t>(x) * row_value(j, row, byte);
      }
    }
    return sum;
  }
  [[nodiscard]] std::int32_t row_value(std::int64_t word, std::int64_t row, std::int64_t byte) const {
    const auto at = static_cast<std::size_t>(4 * (word * simd_.tile_rows + row) + byte);
    return static_cast<std::int8_t>(std::to_integer<std::uint8_t>(rows_[at]));
  }

  const SimdKernels& simd_;
  std::int64_t words_;
  std::vector<std::byte> queries_;
  std::vector<std::byte> rows_;
  std::vector<std::int32_t> base_;
  std::vector<float> rho_;
  std::vector<float> kappa_;
  std::vector<std::int64_t> sums_;
};

void check(const SimdKernels& simd) {
  constexpr int kDrawn = -1;
  constexpr int kLowest = 128;  // -128
  constexpr int kHighest = 127;
  for (const std::int64_t words : {1, 2, 32, 257, 8192}) {  // to the most columns of an int8 screen
    for (const int row_byte : {kDrawn, kLowest, kHighest}) {
      const Tile tile(simd, words, row_byte, static_cast<std::uint64_t>(words));
      for (int queries = 1; queries <= simd.tile_queries; ++queries) {
        const int rows = queries % 2 == 0 ? simd.tile_rows : (simd.tile_rows + 1) / 2;
        for (const std::int32_t least : {-0x7fffffff, -20'000, 0, 30'000}) {
          EXPECT_EQ(tile.screen(queries, rows, least), tile.expected(queries, rows, least))
              << words << " words, " << queries << " queries, least " << least << ", rows of " << row_byte;
        }
      }
    }
  }
}

TEST(ScreenTile, OfInt8WithoutItsInstruction) {
  check(baseline_kernels().search);
#if defined(__x86_64__)
  if (core::has_isa(Isa::avx2)) check(avx2_kernels().search);
  if (core::has_isa(Isa::avx512)) check(avx512_kernels().search);
#endif
}

}  // namespace
}  // namespace vicinal::cpu

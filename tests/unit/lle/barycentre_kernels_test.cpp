// Standard weights of eight rows at once have the bits of those of each row, on every instruction set that runs here.
#include "simd/barycentre_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/philox.hpp"
#include "isas.hpp"
#include "ops/lle/embed.hpp"
#include "solver/weights.hpp"

namespace vicinal::cpu {
namespace {

class BarycentresOf : public ::testing::TestWithParam<Isa> {};

TEST_P(BarycentresOf, HaveTheBitsOfEachRowsOwn) {
  const BarycentresFn together = barycentres(GetParam());
  std::uint64_t stream = 0;
  for (const std::int64_t k : {1, 2, 5, 12, 30}) {
    for (const std::int64_t d : {1, 3, 40}) {
      for (const double reg : {1e-3, 1e-1}) {
        std::vector<double> differences(static_cast<std::size_t>(k * d * kBarycentreRows));
        ++stream;
        for (std::size_t e = 0; e < differences.size(); ++e) {
          differences[e] = core::philox_uniform(2, stream, e) - 0.5;
        }
        // In range, so that the row's own way multiplies by 1; of one row all neighbors are equal to it.
        for (std::int64_t lane = 0; lane < kBarycentreRows; ++lane) differences[lane] = 1.5;
        for (std::int64_t e = 0; e < k * d; ++e) differences[e * kBarycentreRows + 3] = 0;
        std::vector<double> gram(static_cast<std::size_t>(k * k * kBarycentreRows));
        std::vector<double> weights(static_cast<std::size_t>(k * kBarycentreRows));
        ASSERT_TRUE(together({k, d, reg, differences.data(), gram.data(), weights.data()})) << k << " " << d;
        for (std::int64_t lane = 0; lane < kBarycentreRows; ++lane) {
          solver::WeightRoom room;
          for (std::int64_t e = 0; e < k * d; ++e) room.neighbors.push_back(differences[e * kBarycentreRows + lane]);
          room.row.assign(static_cast<std::size_t>(d), 0.0);
          room.gram.resize(static_cast<std::size_t>(k * k));
          std::vector<double> alone(static_cast<std::size_t>(k));
          ASSERT_TRUE(solver::barycentre(room, k, d, reg, alone.data()));
          for (std::int64_t j = 0; j < k; ++j) {
            ASSERT_EQ(weights[j * kBarycentreRows + lane], alone[j]) << k << " " << d << ", row " << lane << ", " << j;
          }
        }
      }
    }
  }
}

TEST_P(BarycentresOf, TellThatARowsWeightsAreNotDetermined) {
  const BarycentresFn together = barycentres(GetParam());
  for (std::int64_t row = 0; row < kBarycentreRows; ++row) {
    std::vector<double> differences(2 * kBarycentreRows, 1.0);  // two neighbors in a column
    for (std::int64_t lane = 0; lane < kBarycentreRows; ++lane) differences[kBarycentreRows + lane] = -1;
    std::vector<double> gram(4 * kBarycentreRows);
    std::vector<double> weights(2 * kBarycentreRows);
    EXPECT_TRUE(together({2, 1, 1e-3, differences.data(), gram.data(), weights.data()})) << row;
    differences[kBarycentreRows + row] = NAN;
    EXPECT_FALSE(together({2, 1, 1e-3, differences.data(), gram.data(), weights.data()})) << row;
  }
}

// Rows of 4,000 columns are taken one by one, rows of three together.
TEST(StandardWeights, AreTheSameTogetherAndAlone) {
  constexpr std::int64_t kRows = 21;
  constexpr std::int64_t kNear = 5;
  for (const std::int64_t d : {3, 4000}) {
    std::vector<double> values(static_cast<std::size_t>(kRows * d));
    for (std::size_t e = 0; e < values.size(); ++e) values[e] = core::philox_uniform(2, 99, e) - 0.5;
    std::vector<solver::Point> ids;
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t j = 1; j <= kNear; ++j) ids.push_back(static_cast<solver::Point>((i + j) % kRows));
    }
    const TableView table(values.data(), kRows, d);
    const solver::LocalTask task{table, ids, kNear, 2, LleVariant::standard, 1e-3};
    const solver::LocalRows found = solver::local_rows(Context::cpu({.threads = 2}), task);
    for (std::int64_t i = 0; i < kRows; ++i) {
      solver::WeightRoom room;
      room.row.assign(values.begin() + i * d, values.begin() + (i + 1) * d);
      for (std::int64_t j = 0; j < kNear; ++j) {
        const auto from = values.begin() + ids[i * kNear + j] * d;
        room.neighbors.insert(room.neighbors.end(), from, from + d);
      }
      room.gram.resize(kNear * kNear);
      std::vector<double> alone(kNear);
      ASSERT_TRUE(solver::barycentre(room, kNear, d, 1e-3, alone.data()));
      for (std::int64_t j = 0; j < kNear; ++j) {
        ASSERT_EQ(found.values[i * (kNear + 1) + j + 1], -alone[j]) << d << ", row " << i << ", " << j;
      }
    }
  }
}

// With one more column each worker has a number more in a row, and one for each of ten neighbors, alone and of eight
// rows.
TEST(StandardWeights, ThePlanCountsTheRoomOfEachWorker) {
  const Context ctx = Context::cpu({.threads = 3});
  const LleOptions options{.k = 10};
  EXPECT_EQ(ops::embed_bytes(ctx, 100, 1001, options) - ops::embed_bytes(ctx, 100, 1000, options),
            3 * 8 * (9 * 10 + 1));
  // Of rows that are too wide only one is there at a time.
  EXPECT_EQ(ops::embed_bytes(ctx, 100, 9001, options) - ops::embed_bytes(ctx, 100, 9000, options), 3 * 8 * (10 + 1));
}

INSTANTIATE_TEST_SUITE_P(Everywhere, BarycentresOf, ::testing::ValuesIn(isas()),
                         [](const auto& isa) { return std::string(name_of(isa.param)); });

}  // namespace
}  // namespace vicinal::cpu

// Standard weights of eight rows at once have the bits of those of each row, on every instruction set that runs here.
#include "simd/barycentre_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/philox.hpp"
#include "isas.hpp"
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

INSTANTIATE_TEST_SUITE_P(Everywhere, BarycentresOf, ::testing::ValuesIn(isas()),
                         [](const auto& isa) { return std::string(name_of(isa.param)); });

}  // namespace
}  // namespace vicinal::cpu

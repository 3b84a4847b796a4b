// Rows that an embedding on a device sends there: those of the search, which the weights take from its memory.
// fake device: *
#include <gtest/gtest.h>

#include "device_check.hpp"
#include "device_memory.hpp"
#include "fake_count.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

class LleOnADevice : public DeviceTest {
 protected:
  static std::int64_t sent() { return fake_count("vicinal_fake_rows_sent"); }
};

TEST_F(LleOnADevice, IsSentTheTableOnce) {
  if (!is_fake()) GTEST_SKIP() << "only the fake device counts rows";
  constexpr std::int64_t kRows = 300;
  const Generated roll = generate(Context::cpu(), {.shape = vicinal::Shape::swiss_roll, .rows = kRows, .seed = 3});
  const TableView table(roll.points.data(), kRows, roll.cols);
  const LleOptions options{.k = 10, .solver = LleSolver::direct};
  std::int64_t before = sent();
  const Lle found = lle(cuda(), table, options);
  ASSERT_NE(found.plan.reason.find("solved on the device"), std::string::npos) << found.plan.reason;
  EXPECT_EQ(sent() - before, kRows);

  const NeighborGraph graph = knn(cpu(), table, {.k = options.k});
  before = sent();
  EXPECT_EQ(lle(cuda(), table, graph, options).embedding, found.embedding);
  EXPECT_EQ(sent() - before, kRows);

  const DeviceArray<double> array(roll.points);
  before = sent();
  const TableView there(array.data(), DType::float64, kRows, roll.cols, roll.cols, 1, Memory::cuda);
  EXPECT_EQ(lle(cuda(), there, options).embedding, found.embedding);
  EXPECT_EQ(sent() - before, 0);
}

}  // namespace
}  // namespace vicinal::contract

// The ADBench sets, in their own units: trees, labels and orders equal the reference's, ties or not (contract clauses
// 27 to 30). Many of their values are small whole numbers or occur often, so that many distances are equal.
// fake device: -*

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "check.hpp"
#include "density_check.hpp"
#include "reference/density.hpp"
#include "reference/reference.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

class DensityOfRealData : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("VICINAL_DATA");
    if (folder == nullptr) GTEST_SKIP() << "VICINAL_DATA is not set";
    const std::filesystem::path file = std::filesystem::path(folder) / "adbench" / (std::string(GetParam()) + ".npz");
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "VICINAL_DATA does not have " << GetParam();
    ReadOptions reading;
    reading.member = "X";
    const Table read = read_table(on(2), file, reading);
    const std::vector<double> all = reference::widen(read.view);
    cols_ = read.view.cols();
    // Rows from all parts of the file, which sorts some sets by class.
    const std::int64_t most = sanitized<std::int64_t>(400, 150);
    const std::int64_t step = std::max<std::int64_t>(1, read.view.rows() / most);
    for (std::int64_t row = 0; row < read.view.rows() && std::ssize(rows_) < most * cols_; row += step) {
      rows_.insert(rows_.end(), all.begin() + row * cols_, all.begin() + (row + 1) * cols_);
    }
  }

  std::int64_t cols_ = 0;
  std::vector<double> rows_;
};

TEST_P(DensityOfRealData, EqualsTheReference) {
  const PairTable data(rows_, cols_);
  const std::string name = GetParam();
  const std::vector<double> distances = pair_distances(data);
  std::uint64_t turn = 0;
  for (const Context& ctx : cpu_contexts(0)) {
    for (const std::int64_t least : {1, 5, 10}) {
      const SpanningTree expected = reference::minimum_spanning_tree(data.keys, {.min_samples = least});
      const SpanningTree got = minimum_spanning_tree(ctx, data.table.view(), {.min_samples = least});
      EXPECT_EQ(got.a, expected.a) << name << " " << least;
      EXPECT_EQ(got.b, expected.b) << name << " " << least;
      EXPECT_TRUE(same_bits(got.lengths, expected.lengths)) << name << " " << least;
      for (const ClusterSelection selection : {ClusterSelection::excess_of_mass, ClusterSelection::leaves}) {
        const HdbscanOptions options = {.min_cluster_size = 5, .min_samples = least, .selection = selection};
        const Hdbscan clusters = hdbscan(ctx, data.table.view(), options);
        const Hdbscan wanted = reference::hdbscan(expected, options);
        EXPECT_EQ(clusters.labels, wanted.labels) << name << " " << least;
        EXPECT_TRUE(same_bits(clusters.probabilities, wanted.probabilities)) << name << " " << least;
      }
    }
    for (const double share : {0.0, 0.0005, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.7, 1.0}) {
      const double eps = at_share(distances, share);  // the distance of two rows
      if (!(eps > 0)) continue;
      const DbscanOptions options = {.eps = eps, .min_samples = 2 + static_cast<std::int64_t>(turn++ % 7)};
      const Dbscan wanted = reference::dbscan(data.keys, options);
      const Dbscan found = dbscan(ctx, data.table.view(), options);
      EXPECT_EQ(found.labels, wanted.labels) << name << " " << eps;
      EXPECT_EQ(found.core, wanted.core) << name << " " << eps;
    }
    const Optics wanted = reference::optics(data.keys, {.min_samples = 5});
    const Optics order = optics(ctx, data.table.view(), {.min_samples = 5});
    EXPECT_EQ(order.ordering, wanted.ordering) << name;
    EXPECT_EQ(order.predecessors, wanted.predecessors) << name;
    EXPECT_TRUE(same_bits(order.reachability, wanted.reachability)) << name;
    if (HasFailure()) return;
  }
}

std::string test_name(const ::testing::TestParamInfo<const char*>& of) {
  const std::string name = of.param;
  return name.substr(name.find('_') + 1);
}
INSTANTIATE_TEST_SUITE_P(AdBench, DensityOfRealData,
                         ::testing::Values("2_annthyroid", "4_breastw", "6_cardio", "10_cover", "14_glass", "16_http",
                                           "23_mammography", "25_musk", "26_optdigits", "30_satellite", "32_shuttle",
                                           "34_smtp", "38_thyroid", "41_Waveform", "45_wine"),
                         test_name);

}  // namespace
}  // namespace vicinal::contract

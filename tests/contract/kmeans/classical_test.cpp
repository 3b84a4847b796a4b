// The classical parallel k-means tools: what they compute on their own data, and their faults, which ours must not
// have. Of those faults, lines of more than 1,023 characters and rows with too few columns are in
// tests/cli/kmeans/test_kmeans.py; that a device's errors are all asked for is in
// tests/contract/nearest/device_test.cpp and in the refusals of kmeans_test.cpp.
// fake device, sanitized: KMeansFaults.*:KMeansOnADevice.*:*EqualsTheSerialTool/*100
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "check.hpp"
#include "device_check.hpp"
#include "fake_count.hpp"
#include "reference/kmeans.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

/// The device, where there is one and none else is asked for, and one and three threads.
std::vector<Context> classical_contexts() {
  std::vector<Context> made;
  const char* const asked = std::getenv("VICINAL_TEST_DEVICE");
  const std::string device = asked != nullptr ? asked : "";
  if (device != "cpu" && cuda_missing().empty()) made.push_back(cuda_context());
  if (device == "cuda") return made;
  for (const int threads : {1, 3}) {
    if (threads >= kFewestThreads) made.push_back(Context::cpu({.threads = threads}));
  }
  return made;
}

KMeansOptions classical(std::int64_t clusters) {
  KMeansOptions options{
      .clusters = clusters, .init = KMeansInit::first_k, .max_iterations = 501, .changed_share = 0.001};
  options.rule = KMeansRule::classical;
  options.empty = EmptyClusters::keep;
  return options;
}

struct Objects {
  std::vector<float> values;
  std::int64_t n = 0;
  std::int64_t d = 0;
  [[nodiscard]] TableView view() const { return {values.data(), n, d}; }
};

/// Lines `id x1 ... xD`, or int32 N, int32 D and float32 values, packed or not.
Objects read_objects(const std::filesystem::path& path) {
  const FileBytes file = read_bytes(Context::cpu(), path);
  Objects objects;
  if (path.extension() != ".txt") {
    std::int32_t shape[2] = {};
    std::memcpy(shape, file.bytes.data(), sizeof shape);
    objects.n = shape[0];
    objects.d = shape[1];
    objects.values.resize(static_cast<std::size_t>(objects.n * objects.d));
    EXPECT_EQ(file.bytes.size(), sizeof shape + objects.values.size() * sizeof(float));
    std::memcpy(objects.values.data(), file.bytes.data() + sizeof shape, objects.values.size() * sizeof(float));
    return objects;
  }
  std::istringstream lines(std::string(file.bytes.begin(), file.bytes.end()));
  for (std::string line; std::getline(lines, line); ++objects.n) {
    std::istringstream numbers(line);
    double value = 0;
    numbers >> value;
    while (numbers >> value) objects.values.push_back(static_cast<float>(value));
  }
  objects.d = static_cast<std::int64_t>(objects.values.size()) / objects.n;
  return objects;
}

/// Same memberships after as many loops, and centers as near as the serial tool's rounding lets them be. Of a cluster
/// of s members it rounds s sums, each by at most s * largest * 2^-53, and divides by s; three more roundings are the
/// quotient's, ours and that of our sum.
void expect_classical(const Objects& objects, std::int64_t k, const std::string& what) {
  const auto serial = reference::classical_kmeans(objects.view(), k, 0.001);
  std::vector<double> sizes(static_cast<std::size_t>(k), 0);
  for (const std::int32_t label : serial.labels) ++sizes[static_cast<std::size_t>(label)];
  double largest = 0;
  for (const float value : objects.values) largest = std::max(largest, std::fabs(static_cast<double>(value)));
  for (const Context& ctx : classical_contexts()) {
    const std::string where = what + ", k " + std::to_string(k) + ", " + ctx.device();
    const KMeans got = kmeans(ctx, objects.view(), classical(k));
    EXPECT_EQ(got.labels, serial.labels) << where;
    EXPECT_EQ(got.iterations, serial.loops + 1) << where;
    ASSERT_EQ(got.centres.size(), serial.centres.size()) << where;
    std::int64_t far = 0;
    for (std::size_t i = 0; i < got.centres.size(); ++i) {
      const double s = sizes[i / static_cast<std::size_t>(objects.d)];
      const double tolerance = (s + 3) * largest * 0x1p-53;
      if (!(std::fabs(got.centres[i] - serial.centres[i]) <= tolerance)) ++far;
    }
    EXPECT_EQ(far, 0) << where;
  }
}

class KMeansClassicalData : public ::testing::TestWithParam<const char*> {};

TEST_P(KMeansClassicalData, EqualsTheSerialTool) {
  const char* folder = std::getenv("VICINAL_DATA");
  const std::filesystem::path file = std::filesystem::path(folder != nullptr ? folder : "") / "image_data" / GetParam();
  if (folder == nullptr) GTEST_SKIP() << "VICINAL_DATA is not set";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "VICINAL_DATA does not have " << GetParam();
  const Objects objects = read_objects(file);
  const std::vector<std::int64_t> many = {4, 64};
  const std::vector<std::int64_t> few = {2, 4, 8, 16, 32, 64, 100};
  for (const std::int64_t k : objects.n > 100 ? many : few) {
    expect_classical(objects, k, GetParam());
    if (HasFailure()) return;
  }
}

std::string test_name(const ::testing::TestParamInfo<const char*>& info) {
  const std::string name = info.param;
  return name.substr(0, name.find('.'));
}
INSTANTIATE_TEST_SUITE_P(KMeans, KMeansClassicalData,
                         ::testing::Values("color100.bin", "edge100.txt", "texture100.txt", "color17695.bin.xz",
                                           "edge17695.bin.xz", "texture17695.bin.xz"),
                         test_name);

// Fault: the count of changed memberships is lost where more than 1,024 blocks of 32 objects report, so that the loop
// ends too soon or never.
TEST(KMeansFaults, ChangesAreCountedBeyond32768Objects) {
  constexpr std::int64_t n = 40000;
  const Rows rows = make_rows(Family::clusters_1e2, {n, 2, 1}, 11);
  Objects objects{{rows.table.begin(), rows.table.end()}, n, 2};
  expect_classical(objects, 9, "40000 objects");
}

class KMeansOnADevice : public DeviceTest {};

// Fault: memberships go to the host in every loop, and the new centers are made there.
TEST_F(KMeansOnADevice, LabelsAreCopiedOnceWhateverTheIterations) {
  if (!is_fake()) GTEST_SKIP() << "only the fake device counts copies";
  const Rows rows = make_rows(Family::gaussian, {3000, 4, 1}, 3);
  const TableView table(rows.table.data(), 3000, 4);
  const KMeansOptions settled{.clusters = 12, .init = KMeansInit::first_k, .tolerance = 0};
  KMeansOptions classical = settled;
  classical.rule = KMeansRule::classical;
  KMeansOptions spherical = settled;
  spherical.metric = Metric::cosine;
  for (const KMeansOptions& options : {settled, classical, spherical}) {
    const std::int64_t before = fake_count("vicinal_fake_label_copies");
    ASSERT_GE(before, 0);
    const KMeans found = kmeans(cuda(), table, options);
    EXPECT_GT(found.iterations, 5);
    EXPECT_EQ(fake_count("vicinal_fake_label_copies") - before, 1);
  }
}

// Faults: a leak and a double free. Also where work ends by an error or a cancel; under ASan memory is looked at, too.
TEST_F(KMeansOnADevice, NothingIsLeftBehind) {
  if (!is_fake()) GTEST_SKIP() << "only the fake device counts what is there";
  const Rows rows = make_rows(Family::gaussian, {2000, 4, 1}, 4);
  const TableView table(rows.table.data(), 2000, 4);
  const KMeansOptions options{.clusters = 7, .runs = 2, .seed = 2, .tolerance = 0};
  const KMeans whole = kmeans(cuda(), table, options);
  EXPECT_EQ(fake_count("vicinal_fake_clusterings"), 0);
  CancelToken cancel;
  const Context stopped = small(64, cancel, [&](std::string_view, double) { cancel.cancel(); });
  EXPECT_THROW(kmeans(stopped, table, options), Error);
  EXPECT_EQ(fake_count("vicinal_fake_clusterings"), 0);
  std::vector<double> far(28, 1e300);
  KMeansOptions given = options;
  given.init = KMeansInit::given;
  given.centres = TableView(far.data(), 7, 4);
  EXPECT_THROW(kmeans(cuda(), table, given), Error);
  EXPECT_EQ(fake_count("vicinal_fake_clusterings"), 0);
  EXPECT_EQ(kmeans(cuda(), table, options).labels, whole.labels);
  EXPECT_EQ(fake_count("vicinal_fake_clusterings"), 0);
}

}  // namespace
}  // namespace vicinal::contract

// Describing a map ends as cancelled wherever the cancel comes: while GDAL reads the file, and between its layers. The
// poll is ours, so that each place is tried without a clock.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "plugin/gdal/geo.hpp"
#include "vicinal/context.hpp"
#include "vicinal/polygon_file.hpp"

namespace vicinal {
namespace {

/// Answers "cancelled" from poll number `last` on, or once so many layers are described.
struct DescribePolls {
  std::int64_t last = std::int64_t{1} << 40;
  int most_layers = 1000;
  std::int64_t count = 0;
  int layers = 0;
};

std::int32_t ask_describing(void* host) {
  auto& polls = *static_cast<DescribePolls*>(host);
  return ++polls.count > polls.last || polls.layers >= polls.most_layers ? 1 : 0;
}

void take_layer(void* host, const gdal::Description* /*layer*/) {
  ++static_cast<DescribePolls*>(host)->layers;
}

std::int32_t describe_with(const std::filesystem::path& path, DescribePolls& polls) {
  gdal::Status status{};
  const gdal::Describing describing = {path.c_str(), &polls, ask_describing, take_layer};
  plugin::geo_plugin().describe(&describing, &status);
  return status.code;
}

std::int32_t never(void* /*host*/) {
  return 0;
}

void keep_bytes(void* host, const char* /*ending*/, const void* bytes, std::int64_t count) {
  std::ofstream(*static_cast<std::filesystem::path*>(host), std::ios::binary)
      .write(static_cast<const char*>(bytes), count);
}

class DescribeCancelled : public testing::Test {
 protected:
  /// A map of a layer, and of two that have its features.
  void SetUp() override {
    if (const std::string missing = polygon_files_missing(); !missing.empty()) GTEST_SKIP() << missing;
    std::ofstream file(one_);
    file << R"({"type":"FeatureCollection","features":[)";
    for (int i = 0; i < 3000; ++i) {
      file << (i == 0 ? "" : ",\n")
           << R"({"type":"Feature","properties":{},"geometry":{"type":"Polygon","coordinates":[[)"
           << "[" << i << ",0],[" << i + 1 << ",0],[" << i + 1 << ",1],[" << i << ",0]]]}}";
    }
    file << "]}";
    file.close();
    const gdal::Functions& plugin = plugin::geo_plugin();
    gdal::Status status{};
    gdal::Source source{};
    source.path = one_.c_str();
    source.cancelled = never;
    void* const handle = plugin.open(&source, &status);
    ASSERT_EQ(status.code, gdal::kOk) << status.text;
    const gdal::Loading loading = {nullptr, false, 0, 0, nullptr, never};
    plugin.load(handle, &loading, &status);
    ASSERT_EQ(status.code, gdal::kOk) << status.text;
    const std::vector<gdal::Table> tables = {{"a", handle, nullptr, 0, 3000}, {"b", handle, nullptr, 0, 3000}};
    const gdal::Writing writing = {"two.gpkg", "two.gpkg", "GPKG", tables.data(), 2, &two_, never, keep_bytes};
    plugin.write(&writing, &status);
    ASSERT_EQ(status.code, gdal::kOk) << status.text;
    plugin.close(handle);
  }
  void TearDown() override {
    std::filesystem::remove(one_);
    std::filesystem::remove(two_);
  }

  // A process of its own for each test may run at the same time.
  const std::string stem_ = testing::TempDir() + "describe_cancelled_" + std::to_string(::getpid());
  const std::filesystem::path one_ = stem_ + ".geojson";
  std::filesystem::path two_ = stem_ + ".gpkg";
};

TEST_F(DescribeCancelled, AtEveryPoll) {
  for (const auto& path : {one_, two_}) {
    DescribePolls whole;
    ASSERT_EQ(describe_with(path, whole), gdal::kOk) << path;
    EXPECT_EQ(whole.layers, path == one_ ? 1 : 2);
    ASSERT_GT(whole.count, 2 * whole.layers);
    for (std::int64_t last = 0; last < whole.count; last += 1 + last / 8) {
      DescribePolls polls{.last = last};
      EXPECT_EQ(describe_with(path, polls), gdal::kCancelled) << path << ", poll " << last << " of " << whole.count;
    }
  }
}

TEST_F(DescribeCancelled, BetweenLayers) {
  DescribePolls polls{.most_layers = 1};
  EXPECT_EQ(describe_with(two_, polls), gdal::kCancelled);
  EXPECT_EQ(polls.layers, 1);
}

TEST_F(DescribeCancelled, ByTheContextsToken) {
  const CancelToken token;
  const Context ctx = Context::cpu({.threads = 1, .cancel = token});
  EXPECT_EQ(describe_polygon_file(ctx, two_).layers.size(), 2U);
  token.cancel();
  try {
    describe_polygon_file(ctx, two_);
    FAIL() << "not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
}

}  // namespace
}  // namespace vicinal

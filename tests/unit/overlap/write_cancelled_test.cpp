// Writing a map ends as cancelled wherever the cancel comes: while GDAL reads the source again, while it writes
// features, and while SQLite builds an index. The poll is ours, so that each place is tried without a clock.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "plugin/gdal/geo.hpp"
#include "vicinal/polygon_file.hpp"

namespace vicinal {
namespace {

/// Answers "cancelled" from poll number `last` on.
struct Polls {
  std::int64_t count = 0;
  std::int64_t last = 0;
  bool written = false;
};

std::int32_t ask(void* host) {
  auto& polls = *static_cast<Polls*>(host);
  return ++polls.count > polls.last ? 1 : 0;
}

void take(void* host, const char* /*ending*/, const void* /*bytes*/, std::int64_t /*count*/) {
  static_cast<Polls*>(host)->written = true;
}

constexpr int kFeatures = 3000;

void write_squares(const std::filesystem::path& path) {
  std::ofstream file(path);
  file << R"({"type":"FeatureCollection","features":[)";
  for (int i = 0; i < kFeatures; ++i) {
    file << (i == 0 ? "" : ",\n")
         << R"({"type":"Feature","properties":{},"geometry":{"type":"Polygon","coordinates":[[)"
         << "[" << 2 * i << ",0],[" << 2 * i + 1 << ",0],[" << 2 * i + 1 << ",1],[" << 2 * i << ",0]]]}}";
  }
  file << "]}";
}

TEST(WriteCancelled, AtEveryPoll) {
  if (const std::string missing = polygon_files_missing(); !missing.empty()) GTEST_SKIP() << missing;
  const gdal::Functions& plugin = plugin::geo_plugin();
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "write_cancelled.geojson";
  write_squares(path);
  Polls never{0, std::int64_t{1} << 40, false};
  gdal::Status status{};
  gdal::Source source{};
  source.path = path.c_str();
  source.host = &never;
  source.cancelled = ask;
  void* const handle = plugin.open(&source, &status);
  ASSERT_EQ(status.code, gdal::kOk) << status.text;
  const gdal::Loading loading = {nullptr, false, 0, 0, &never, ask};
  plugin.load(handle, &loading, &status);
  ASSERT_EQ(status.code, gdal::kOk) << status.text;

  const gdal::Table table = {"squares", handle, nullptr, 0, kFeatures};
  for (const auto& [name, driver] : {std::pair{"squares.gpkg", "GPKG"}, {"squares.geojson", "GeoJSON"}}) {
    const auto write = [&](Polls& polls) {
      const gdal::Writing writing = {name, name, driver, &table, 1, &polls, ask, take};
      plugin.write(&writing, &status);
      return status.code;
    };
    Polls whole{0, std::int64_t{1} << 40, false};
    ASSERT_EQ(write(whole), gdal::kOk) << status.text;
    EXPECT_TRUE(whole.written);
    ASSERT_GT(whole.count, kFeatures / 256);
    for (std::int64_t last = 0; last < whole.count; last += 1 + last / 8) {
      Polls polls{0, last, false};
      EXPECT_EQ(write(polls), gdal::kCancelled) << name << ", poll " << last << ": " << status.text;
      EXPECT_FALSE(polls.written) << name << ", poll " << last;
    }
  }
  plugin.close(handle);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace vicinal

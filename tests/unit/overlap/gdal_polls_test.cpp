// Cancel polls of GDAL's plug-in, counted: of the bytes that it reads and writes, of features, and of SQLite's steps.
// Nothing here takes time.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "plugin/gdal/geo.hpp"
#include "vicinal/polygon_file.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kSquares = 4096;
constexpr std::int64_t kBetweenPolls = 256;  // features

std::int32_t count_poll(void* count) {
  ++*static_cast<std::int64_t*>(count);
  return 0;
}

void forget(void* /*host*/, const char* /*ending*/, const void* /*bytes*/, std::int64_t /*count*/) {}

/// A map of squares, and the polls of what is done with it.
class Squares {
 public:
  explicit Squares(std::int64_t count, const char* projection = nullptr) : count_(count) {
    path_ = testing::TempDir() + "gdal_polls_" + std::to_string(::getpid()) + ".geojson";
    std::ofstream file(path_);
    file << R"({"type":"FeatureCollection","features":[)";
    for (std::int64_t i = 0; i < count; ++i) {
      file << (i == 0 ? "" : ",\n")
           << R"({"type":"Feature","properties":{},"geometry":{"type":"Polygon","coordinates":[[)"
           << "[" << x(i) << ",0],[" << x(i + 1) << ",0],[" << x(i + 1) << ",1],[" << x(i) << ",0]]]}}";
    }
    file << "]}";
    file.close();
    gdal::Source source{};
    source.path = path_.c_str();
    source.host = &polls_;
    source.cancelled = count_poll;
    handle_ = plugin_.open(&source, &status_);
    check();
    opened_ = polls_;
    const gdal::Loading loading = {projection, false, 0, 0, &polls_, count_poll};
    plugin_.load(handle_, &loading, &status_);
    check();
    loaded_ = polls_ - opened_;
  }
  ~Squares() {
    plugin_.close(handle_);
    std::filesystem::remove(path_);
  }
  Squares(const Squares&) = delete;
  Squares& operator=(const Squares&) = delete;

  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(std::filesystem::file_size(path_)); }
  [[nodiscard]] std::int64_t polls_of_opening() const { return opened_; }
  [[nodiscard]] std::int64_t polls_of_loading() const { return loaded_; }
  std::int64_t polls_of_writing(const char* driver, const char* name) {
    const std::int64_t before = polls_;
    const gdal::Table table = {"squares", handle_, nullptr, 0, count_};
    const gdal::Writing writing = {name, name, driver, &table, 1, &polls_, count_poll, forget};
    plugin_.write(&writing, &status_);
    check();
    return polls_ - before;
  }

 private:
  static double x(std::int64_t i) { return static_cast<double>(i) / kSquares; }
  void check() const { EXPECT_EQ(status_.code, gdal::kOk) << status_.text; }

  std::int64_t count_;
  std::string path_;
  const gdal::Functions& plugin_ = plugin::geo_plugin();
  gdal::Status status_{};
  void* handle_ = nullptr;
  std::int64_t polls_ = 0;
  std::int64_t opened_ = 0;
  std::int64_t loaded_ = 0;
};

class GdalPolls : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = polygon_files_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
};

// GDAL takes at most 64 KiB at a time, and of GeoJSON gives features while it reads.
TEST_F(GdalPolls, WhileAFileIsRead) {
  const Squares squares(kSquares);
  const std::int64_t reads = squares.bytes() / 65536;
  EXPECT_GE(squares.polls_of_opening(), reads);
  EXPECT_GE(squares.polls_of_loading(), kSquares / kBetweenPolls + reads);
  const Squares projected(kSquares, "+proj=laea +lat_0=0 +lon_0=0");
  EXPECT_GT(projected.polls_of_loading(), squares.polls_of_loading());
}

// Features are read and written. Of FlatGeobuf nothing is written before the end; GeoJSON is written feature by
// feature, and SQLite works step by step.
TEST_F(GdalPolls, WhileAFileIsWritten) {
  Squares squares(kSquares);
  const std::int64_t reads = squares.bytes() / 65536;
  const std::int64_t copied = squares.polls_of_writing("FlatGeobuf", "squares.fgb");
  EXPECT_GE(copied, 2 * kSquares / kBetweenPolls + reads);
  EXPECT_GE(squares.polls_of_writing("GeoJSON", "squares.geojson"), kSquares);
  EXPECT_GT(squares.polls_of_writing("GPKG", "squares.gpkg"), copied);
}

}  // namespace
}  // namespace vicinal

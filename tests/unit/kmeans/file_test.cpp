// The model file of k-means: what is saved comes back and labels the same, whatever else is refused.
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "vicinal/vicinal.hpp"

namespace vicinal {
namespace {

class KMeansFile : public ::testing::Test {
 protected:
  KMeansFile() {
    for (std::int64_t i = 0; i < kRows * 3; ++i) values_.push_back(static_cast<float>(i * 7919 % 101) - 50);
    std::filesystem::remove(path_);
  }
  ~KMeansFile() override { std::filesystem::remove(path_); }

  [[nodiscard]] TableView table() const { return TableView(values_.data(), kRows, 3); }
  [[nodiscard]] KMeans clusters(Metric metric) const {
    return kmeans(ctx_, table(), {.clusters = 5, .metric = metric, .seed = 3});
  }
  [[nodiscard]] std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// With the check sum that ends a file made right, so that what lies before it is looked at.
  void write(std::string content) const {
    if (content.size() > 4) {
      const auto sum = static_cast<std::uint32_t>(
          crc32_z(0, reinterpret_cast<const unsigned char*>(content.data()), content.size() - 4));
      std::memcpy(content.data() + content.size() - 4, &sum, sizeof sum);
    }
    std::ofstream(path_, std::ios::binary) << content;
  }
  void refuses(const std::string& content, const std::string& what) const {
    write(content);
    try {
      static_cast<void>(KMeansModel::load(ctx_, path_));
      ADD_FAILURE() << what << " was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data) << what << ": " << error.what();
      EXPECT_NE(std::string(error.what()).find(path_.string()), std::string::npos) << error.what();
    }
  }
  /// The same bytes with one text for another of the same length.
  [[nodiscard]] static std::string with(std::string content, const std::string& old, const std::string& now) {
    const std::size_t at = content.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    EXPECT_EQ(old.size(), now.size());
    return at == std::string::npos ? content : content.replace(at, old.size(), now);
  }

  static constexpr std::int64_t kRows = 90;
  const Context ctx_ = Context::cpu({.threads = 2});
  std::vector<float> values_;
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("clusters-" + std::to_string(::getpid()) + ".vkm");
};

TEST_F(KMeansFile, ComesBack) {
  for (const Metric metric : {Metric::euclidean, Metric::cosine}) {
    const KMeans saved = clusters(metric);
    KMeansModel{saved, "what the caller said"}.save(ctx_, path_);
    const KMeansModel read = KMeansModel::load(ctx_, path_);
    EXPECT_EQ(read.notes, "what the caller said");
    EXPECT_EQ(read.fitted.centres, saved.centres);
    EXPECT_EQ(read.fitted.metric, metric);
    EXPECT_EQ(read.fitted.sizes, saved.sizes);
    EXPECT_EQ(read.fitted.inertia, saved.inertia);
    EXPECT_EQ(read.fitted.iterations, saved.iterations);
    EXPECT_EQ(predict(ctx_, read.fitted, table()), saved.labels);
  }
}

TEST_F(KMeansFile, KeepsCentresThatAreEqual) {
  const std::vector<double> twice = {1, 2, 3, 1, 2, 3, -0.0, 1e-310, 5};
  KMeans model;
  model.clusters = 3;
  model.cols = 3;
  model.centres = twice;
  model.sizes = {4, 0, 2};
  KMeansModel{model}.save(ctx_, path_);
  const KMeansModel read = KMeansModel::load(ctx_, path_);
  EXPECT_EQ(std::memcmp(read.fitted.centres.data(), twice.data(), sizeof(double) * twice.size()), 0);
}

TEST_F(KMeansFile, IsNotWrittenForWhatIsNoModel) {
  const KMeans good = clusters(Metric::euclidean);
  const auto refused = [&](KMeans model, const char* what) {
    EXPECT_THROW(KMeansModel{std::move(model)}.save(ctx_, path_), Error) << what;
    EXPECT_FALSE(std::filesystem::exists(path_)) << what;
  };
  KMeans model = good;
  model.clusters = 4;
  refused(model, "clusters");
  model = good;
  model.cols = std::numeric_limits<std::int64_t>::max();
  refused(model, "columns");
  model = good;
  model.centres[2] = std::nan("");
  refused(model, "not a number");
  model = good;
  model.metric = Metric::manhattan;
  refused(model, "metric");
  model = good;
  model.sizes.pop_back();
  refused(model, "sizes");
  model = good;
  model.inertia = -1;
  refused(model, "inertia");
}

TEST_F(KMeansFile, RefusesWhatSaveDidNotWrite) {
  KMeansModel{clusters(Metric::euclidean), "x"}.save(ctx_, path_);
  const std::string good = bytes();
  refuses("", "nothing");
  for (std::size_t size = 1; size < good.size(); size += 13) refuses(good.substr(0, size), "a part of it");
  refuses(with(good, "\"euclidean\"", "\"manhattan\""), "another metric");
  refuses(with(good, "\"euclidean\"", "\"nowherean\""), "no metric");
  refuses(with(good, "vicinal-clusters", "vicinal-neighbor"), "another kind");
  refuses(with(good, "\"sizes\"", "\"sizer\""), "an array of another name");
  const Index index(ctx_, table());
  index.save(ctx_, path_);
  refuses(bytes(), "an index");
}

}  // namespace
}  // namespace vicinal

// The file of a LOF model: there and back, and thousands of damaged files refused.
#include "ops/lof/file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "check_sum.hpp"
#include "core/philox.hpp"
#include "refusal.hpp"
#include "vicinal/lof.hpp"

namespace vicinal {
namespace {

namespace fs = std::filesystem;

class LofFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("vicinal_lof_" + std::to_string(getpid()) + "_" +
                                              testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
    path_ = folder_ / "model.vlof";
    for (std::uint64_t i = 0; i < 60; ++i) data_.push_back(core::philox_uniform(5, 0, i));
    for (std::uint64_t i = 0; i < 30; ++i) queries_.push_back(2 * core::philox_uniform(5, 1, i));
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] LofModel model(LofOptions options) const {
    options.novelty = true;
    const Index index(ctx_, TableView(data_.data(), 20, 3));
    return {index, lof(ctx_, index, options), "notes \"of\" the caller, é"};
  }
  [[nodiscard]] std::string read() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  fs::path folder_;
  fs::path path_;
  Context ctx_ = Context::cpu({.threads = 2});
  std::vector<double> data_;
  std::vector<double> queries_;
};

TEST_F(LofFile, GoesToAFileAndBackForEveryKindOfScore) {
  const std::vector<LofOptions> kinds = {{.k = 4},
                                         {.k = 3, .k_to = 7, .across = AcrossK::mean},
                                         {.k = 4, .duplicates = Duplicates::cap},
                                         {.k = 4, .duplicates = Duplicates::distinct, .contamination = 0.1},
                                         {.k = 4, .score = OutlierScore::loop, .lambda = 2.5},
                                         {.k = 4, .score = OutlierScore::knn},
                                         {.k = 4, .score = OutlierScore::cof},
                                         {.k = 4, .ties = Ties::all, .metric = Metric::minkowski, .p = 1.1}};
  for (const LofOptions& options : kinds) {
    const LofModel wanted = model(options);
    wanted.save(ctx_, path_);
    const LofModel got = LofModel::load(ctx_, path_);
    EXPECT_EQ(got.notes, wanted.notes);
    EXPECT_EQ(got.fitted.scores, wanted.fitted.scores);
    EXPECT_EQ(got.fitted.threshold, wanted.fitted.threshold);
    EXPECT_EQ(got.fitted.outliers, wanted.fitted.outliers);
    EXPECT_EQ(got.fitted.copied, wanted.fitted.copied);
    EXPECT_EQ(got.fitted.caps, wanted.fitted.caps);
    EXPECT_EQ(got.fitted.spread, wanted.fitted.spread);
    const LofOptions& made = got.fitted.options;
    EXPECT_EQ(made.k, options.k);
    EXPECT_EQ(made.k_to, options.k_to);
    EXPECT_EQ(made.score, options.score);
    EXPECT_EQ(made.duplicates, options.duplicates);
    EXPECT_EQ(made.ties, options.ties);
    EXPECT_EQ(made.lambda, options.lambda);
    EXPECT_EQ(made.contamination, options.contamination);
    EXPECT_EQ(made.metric, options.metric);
    EXPECT_EQ(made.p, options.p);
    const TableView asked(queries_.data(), 10, 3);
    EXPECT_EQ(novelty(ctx_, got.index, got.fitted, asked), novelty(ctx_, wanted.index, wanted.fitted, asked));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1) << "a temporary is left";
  }
}

TEST_F(LofFile, InfiniteDensitiesAreKept) {
  std::fill(data_.begin(), data_.begin() + 30, 1.0);
  const LofModel wanted = model({.k = 4, .duplicates = Duplicates::infinite});
  EXPECT_NE(std::count(wanted.fitted.densities.begin(), wanted.fitted.densities.end(),
                       std::numeric_limits<double>::infinity()),
            0);
  wanted.save(ctx_, path_);
  EXPECT_EQ(LofModel::load(ctx_, path_).fitted.densities, wanted.fitted.densities);
}

TEST_F(LofFile, WhatCouldNotScoreIsNotSaved) {
  LofModel bad = model({.k = 4});
  bad.fitted.options.novelty = false;
  EXPECT_NE(refusal(ErrorCode::invalid_argument, [&] { bad.save(ctx_, path_); }).find("novelty"), std::string::npos);
  bad = model({.k = 4});
  bad.fitted.densities.pop_back();
  refusal(ErrorCode::invalid_argument, [&] { bad.save(ctx_, path_); });
  bad = model({.k = 4});
  bad.notes = "\xff";
  EXPECT_NE(refusal(ErrorCode::invalid_argument, [&] { bad.save(ctx_, path_); }).find("UTF-8"), std::string::npos);
  bad.notes = std::string(1 << 24, 'x');
  refusal(ErrorCode::invalid_argument, [&] { bad.save(ctx_, path_); });
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(LofFile, AnIndexIsNoModelAndAModelNoIndex) {
  const LofModel good = model({.k = 4});
  good.index.save(ctx_, path_);
  const std::string what = refusal(ErrorCode::bad_data, [&] { LofModel::load(ctx_, path_); });
  EXPECT_NE(what.find("model file"), std::string::npos) << what;
  good.save(ctx_, path_);
  refusal(ErrorCode::bad_data, [&] { Index::load(ctx_, path_); });
  std::string other = read();
  other.replace(other.find("\"version\":\"1\""), 13, "\"version\":\"2\"");
  write(summed(other));
  EXPECT_NE(refusal(ErrorCode::bad_data, [&] { LofModel::load(ctx_, path_); }).find("version is not 1"),
            std::string::npos);
  refusal(ErrorCode::io, [&] { LofModel::load(ctx_, folder_ / "nowhere"); });
}

class DamagedLofFile : public LofFile {
 protected:
  void SetUp() override {
    LofFile::SetUp();
    model({.k = 3, .k_to = 5, .duplicates = Duplicates::cap}).save(ctx_, path_);
    good_ = read();
    ctx_ = Context::cpu({.threads = 1});
  }
  /// Reading must end in a model that answers, or asks for other columns, or in bad_data that names the file.
  void load_or_refuse(const std::string& file, int& loaded) const {
    // Memory of exactly the file's size: what reads beyond it is found by the sanitizers.
    const std::vector<unsigned char> bytes(file.begin(), file.end());
    try {
      ops::ModelParts parts;
      const auto index =
          ops::read_index(ctx_, io::Bytes{bytes.data(), bytes.size(), nullptr, false}, "x.vlof", ops::kLofFile, &parts);
      ops::read_lof("x.vlof", index.table.rows(), parts);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data) << error.what();
      EXPECT_NE(std::string(error.what()).find("'x.vlof'"), std::string::npos) << error.what();
      return;
    }
    ++loaded;
    write(file);
    try {
      const LofModel got = LofModel::load(ctx_, path_);
      novelty(ctx_, got.index, got.fitted, TableView(queries_.data(), 10, 3));
    } catch (const Error& error) {
      const bool expected = error.code() == ErrorCode::bad_data || error.code() == ErrorCode::invalid_argument;
      EXPECT_TRUE(expected) << error.what();
    }
  }
  std::string good_;
};

TEST_F(DamagedLofFile, EveryTruncationAndFlippedBitIsRefused) {
  int loaded = 0;
  for (std::size_t i = 0; i < good_.size(); ++i) {
    load_or_refuse(good_.substr(0, i), loaded);
    std::string bytes = good_;
    bytes[i] = static_cast<char>(bytes[i] ^ 1 << i % 8);
    load_or_refuse(bytes, loaded);
  }
  load_or_refuse(good_ + '\0', loaded);
  EXPECT_EQ(loaded, 0);
}

TEST_F(DamagedLofFile, MutationsWithARightCheckSumAreRefusedOrAnswer) {
  const std::vector<std::string> words = {"0",        "-1",       "9223372036854775807",
                                          "1e300",    "nan",      "inf",
                                          "null",     "[]",       "{}",
                                          "\"I64\"",  "lof_caps", "distinct",
                                          "cosine",   ",",        "\"",
                                          "[[[[[[[[", "\xff"};
  std::uint64_t length = 0;
  std::memcpy(&length, good_.data(), 8);
  const std::size_t header = 8 + static_cast<std::size_t>(length);
  int loaded = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const auto x = core::philox(4, 0, i);
    std::string bytes = good_;
    for (std::uint32_t change = 0; change <= x[3] % 3; ++change) {
      const auto y = core::philox(4, 1 + change, i);
      const std::size_t at = y[0] % (y[1] % 2 == 0 ? header : bytes.size() - 4);
      if (y[2] % 2 == 0) {
        bytes[at] = static_cast<char>(y[3]);
      } else {
        const std::string& word = words[y[3] % words.size()];
        bytes.replace(at, std::min(word.size(), bytes.size() - at), word);  // keeps the length
      }
    }
    load_or_refuse(summed(bytes), loaded);
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, 3000);
}

TEST_F(DamagedLofFile, OptionsOutsideTheirDomainsAreRefused) {
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string bytes = good_;
    const std::size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    ASSERT_EQ(from.size(), to.size());
    bytes.replace(at, from.size(), to);
    write(summed(bytes));
    refusal(ErrorCode::bad_data, [&] { LofModel::load(ctx_, path_); });
  };
  refused("\"k\":\"3\"", "\"k\":\"0\"");
  refused("\"k\":\"3\"", "\"k\":\"7\"");
  refused("\"k\":\"3\"", "\"k\":\"x\"");
  refused("\"k_to\":\"5\"", "\"k_to\":\"3\"");
  refused("\"k_to\":\"5\"", "\"k_to\":\"6\"");
  refused("\"contamination\":\"0\"", "\"contamination\":\"1\"");
  refused("\"duplicates\":\"cap\"", "\"duplicates\":\"one\"");
  refused("\"metric\":\"euclidean\"", "\"metric\":\"euclidian\"");
  refused("\"threshold\":\"1.5\"", "\"threshold\":\"nan\"");
  refused("lof_scores", "lof_scares");
}

}  // namespace
}  // namespace vicinal

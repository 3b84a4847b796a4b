// The file of a model of lle: there and back, and damaged files refused.
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "refusal.hpp"
#include "vicinal/generate.hpp"
#include "vicinal/lle_model.hpp"

namespace vicinal {
namespace {

namespace fs = std::filesystem;

class LleFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("vicinal_lle_" + std::to_string(getpid()) + "_" +
                                              testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
    path_ = folder_ / "model.vlle";
    data_ = generate(ctx_, {.shape = Shape::s_curve, .rows = 80, .seed = 2}).points;
    for (std::size_t i = 50; i < 80; ++i) data_[3 * i] += 100;  // a second piece
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] LleModel model(const LleOptions& options) const {
    const TableView table(data_.data(), 80, 3);
    return {Index(ctx_, table), lle(ctx_, table, options), "notes \"of\" the caller, é"};
  }
  [[nodiscard]] std::string read() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Writes bytes with their check sum made right.
  void write(std::string bytes) const {
    const std::size_t size = bytes.size() - 4;
    const auto sum = static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), size));
    std::memcpy(bytes.data() + size, &sum, 4);
    std::ofstream(path_, std::ios::binary) << bytes;
  }

  fs::path folder_;
  fs::path path_;
  Context ctx_ = Context::cpu({.threads = 2});
  std::vector<double> data_;
};

TEST_F(LleFile, GoesToAFileAndBackForEveryVariant) {
  for (const LleVariant variant : {LleVariant::standard, LleVariant::modified, LleVariant::hessian, LleVariant::ltsa}) {
    const LleModel wanted = model({.k = 8, .variant = variant, .reg = 1e-2, .metric = Metric::manhattan});
    wanted.save(ctx_, path_);
    const LleModel got = LleModel::load(ctx_, path_);
    EXPECT_EQ(got.notes, wanted.notes);
    EXPECT_EQ(got.fitted.embedding, wanted.fitted.embedding);
    EXPECT_EQ(got.fitted.piece, wanted.fitted.piece);
    EXPECT_EQ(got.fitted.eigenvalue_sum, wanted.fitted.eigenvalue_sum);
    ASSERT_EQ(got.fitted.pieces.size(), 2U);
    EXPECT_EQ(got.fitted.pieces[1].rows, 30);
    EXPECT_EQ(got.fitted.pieces[1].singular_values, wanted.fitted.pieces[1].singular_values);
    const LleOptions& made = got.fitted.options;
    EXPECT_EQ(made.k, 8);
    EXPECT_EQ(made.variant, variant);
    EXPECT_EQ(made.reg, 1e-2);
    EXPECT_EQ(made.metric, Metric::manhattan);
    const TableView asked(data_.data() + 30, 20, 3);
    EXPECT_EQ(transform(ctx_, got.index, got.fitted, asked), transform(ctx_, wanted.index, wanted.fitted, asked));
    // Whatever reads an index reads this one, too.
    EXPECT_EQ(Index::load(ctx_, path_).rows(), 80);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1) << "a temporary is left";
  }
}

TEST_F(LleFile, WhatIsNoEmbeddingIsNotSaved) {
  const LleModel good = model({.k = 8});
  const auto refuses = [&](const std::function<void(Lle&)>& spoil, const std::string& part) {
    LleModel bad = good;
    spoil(bad.fitted);
    EXPECT_NE(refusal(ErrorCode::invalid_argument, [&] { bad.save(ctx_, path_); }).find(part), std::string::npos)
        << part;
    EXPECT_FALSE(fs::exists(path_));
  };
  refuses([](Lle& one) { one.embedding.pop_back(); }, "fitted");
  refuses([](Lle& one) { one.piece.pop_back(); }, "fitted");
  refuses([](Lle& one) { one.piece[0] = 1; }, "smallest rows");
  refuses([](Lle& one) { one.piece[3] = 2; }, "smallest rows");
  refuses([](Lle& one) { one.piece[3] = -1; }, "piece");
  refuses([](Lle& one) { one.embedding[5] = std::numeric_limits<double>::quiet_NaN(); }, "not finite");
  refuses([](Lle& one) { one.eigenvalue_sum = std::numeric_limits<double>::quiet_NaN(); }, "not finite");
  refuses([](Lle& one) { one.pieces[1].rows = 29; }, "rows or singular values");
  refuses([](Lle& one) { one.pieces[1].singular_values.pop_back(); }, "rows or singular values");
  refuses([](Lle& one) { one.pieces[0].singular_values[0] = -1; }, "rows or singular values");
  refuses([](Lle& one) { one.pieces.pop_back(); }, "smallest rows");
  refuses([](Lle& one) { one.options.reg = -1; }, "reg");
  refuses([](Lle& one) { one.options.k = 0; }, "fitted");
  LleModel bad = good;
  bad.notes = "\xff";
  refusal(ErrorCode::invalid_argument, [&] { bad.save(ctx_, path_); });
}

TEST_F(LleFile, DamagedFilesAreRefused) {
  model({.k = 8}).save(ctx_, path_);
  const std::string good = read();
  for (std::size_t size = 0; size < good.size(); size += 37) {
    std::ofstream(path_, std::ios::binary) << good.substr(0, size);
    EXPECT_NE(refusal(ErrorCode::bad_data, [&] { LleModel::load(ctx_, path_); }).find("model"), std::string::npos);
  }
  // Bytes of the header, the check sum made right: either refused, or what it says is another model that holds.
  const std::size_t header = good.find("}}");
  for (std::size_t at = 8; at < header + 2; at += 3) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    write(bytes);
    try {
      const LleModel got = LleModel::load(ctx_, path_);
      EXPECT_EQ(got.fitted.piece.size(), 80U);
      transform(ctx_, got.index, got.fitted, TableView(data_.data(), 2, 3));
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::bad_data) << at << ": " << error.what();
    }
  }
  std::string bytes = good;
  for (std::size_t at = header + 2; at + 8 < good.size(); at += 149) {
    bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x80);
    write(bytes);
    try {
      LleModel::load(ctx_, path_);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::bad_data) << at << ": " << error.what();
    }
  }
}

TEST_F(LleFile, OtherFilesAreNoModel) {
  const TableView table(data_.data(), 80, 3);
  Index(ctx_, table).save(ctx_, path_);
  EXPECT_NE(refusal(ErrorCode::bad_data, [&] { LleModel::load(ctx_, path_); }).find("not a model of vicinal lle"),
            std::string::npos);
}

}  // namespace
}  // namespace vicinal

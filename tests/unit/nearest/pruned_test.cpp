// Images of rows in few columns keep their bound, whatever the axes; and what an index keeps of its pruned rows: when,
// how much memory plans count for it, when it goes, its file, and what a cancelled search leaves.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/index_access.hpp"
#include "backend/nearest.hpp"
#include "core/philox.hpp"
#include "counted_polls.hpp"
#include "cpu/nearest/packed_table.hpp"
#include "cpu/nearest/projection.hpp"
#include "cpu/nearest/screen.hpp"
#include "isas.hpp"
#include "refusal.hpp"
#include "simd/kernels.hpp"
#include "vicinal/knn.hpp"

namespace vicinal {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPrunedRows = 6000;
constexpr std::int64_t kPrunedCols = 64;

double drawn(std::uint64_t stream, std::int64_t at) {
  return 2 * core::philox_uniform(3, stream, static_cast<std::uint64_t>(at)) - 1;
}

// Axes that are off: scaled by 1 + 2^-12. Rows that differ along one of them have images that are farther apart than
// they are, by much more than rounding makes of it.
TEST(Projection, BoundsHoldForAxesThatAreNotOrthonormal) {
  constexpr std::int64_t kColumns = 12;
  constexpr std::int64_t kAxes = 3;
  for (const double off : {0.0, 0x1p-12, -0x1p-12}) {
    std::vector<double> axes(static_cast<std::size_t>(kAxes * kColumns), 0);
    for (std::int64_t i = 0; i < kAxes; ++i) axes[i * kColumns + 2 * i] = 1 + off;
    const double longest = 100;
    const std::vector<double> centre(static_cast<std::size_t>(kColumns), 1e6);
    const cpu::Projection projection(axes, centre, longest, cpu::simd_kernels(Isa::baseline));
    ASSERT_TRUE(projection.serves());
    ASSERT_EQ(projection.columns(), kAxes + 1);
    for (std::int64_t pair = 0; pair < 200; ++pair) {
      std::vector<double> x(centre);
      std::vector<double> y(centre);
      for (std::int64_t j = 0; j < kColumns; ++j) {
        const double along = pair % 2 == 0 && j >= 2 * kAxes ? 0 : 1;
        x[j] += 16 * along * drawn(1, pair * kColumns + j);
        y[j] += pair % 4 == 0 && j > 0 ? x[j] - centre[j] : 16 * along * drawn(2, pair * kColumns + j);
      }
      double image_x[kAxes + 1];
      double image_y[kAxes + 1];
      const double length = projection.map(x.data(), image_x);
      projection.map(y.data(), image_y);
      double distance = 0;
      double product = 0;
      for (std::int64_t j = 0; j < kColumns; ++j) {
        distance += (x[j] - y[j]) * (x[j] - y[j]);
        product += (x[j] - centre[j]) * (y[j] - centre[j]);
      }
      double of_images = 0;
      double product_of_images = 0;
      for (std::int64_t j = 0; j <= kAxes; ++j) {
        of_images += (image_x[j] - image_y[j]) * (image_x[j] - image_y[j]);
        product_of_images += image_x[j] * image_y[j];
      }
      EXPECT_LE(std::sqrt(of_images), std::sqrt(distance) + projection.distance_slack(length)) << off << " " << pair;
      EXPECT_GE(product_of_images, product - projection.product_slack(length)) << off << " " << pair;
    }
  }
}

// Columns beyond those that are centred at a time; every instruction set adds in its own order.
TEST(Projection, ImagesOfWideRows) {
  for (const std::int64_t d : {513, 1031}) {
    std::vector<double> axes(static_cast<std::size_t>(2 * d), 0);
    axes[static_cast<std::size_t>(d - 1)] = 1;
    for (std::int64_t j = 0; j + 1 < d; ++j) {
      axes[static_cast<std::size_t>(d + j)] = 1 / std::sqrt(static_cast<double>(d - 1));
    }
    std::vector<double> centre(static_cast<std::size_t>(d));
    std::vector<double> row(static_cast<std::size_t>(d));
    long double along = 0;
    long double square = 0;
    for (std::int64_t j = 0; j < d; ++j) {
      const auto at = static_cast<std::size_t>(j);
      centre[at] = std::floor(9 * drawn(5, j));
      row[at] = centre[at] + 1 + std::floor(5 * drawn(6, j));
      const long double value = row[at] - centre[at];
      square += value * value;
      if (j + 1 < d) along += value / std::sqrt(static_cast<long double>(d - 1));
    }
    const long double last = row.back() - centre.back();
    const long double rest = std::sqrt(square - along * along - last * last);
    for (const Isa isa : isas()) {
      const cpu::Projection projection(axes, centre, 1e4, cpu::simd_kernels(isa));
      ASSERT_TRUE(projection.serves());
      double image[3];
      const double length = projection.map(row.data(), image);
      const double error = projection.error(length);
      EXPECT_LE(std::fabs(length - std::sqrt(square)), error) << name_of(isa);
      EXPECT_LE(std::fabs(image[0] - last), error) << name_of(isa);
      EXPECT_LE(std::fabs(image[1] - along), error) << name_of(isa);
      EXPECT_LE(std::fabs(image[2] - rest), error) << name_of(isa);
    }
  }
}

TEST(Projection, RefusesAxesThatAreFarOff) {
  const std::vector<double> centre(4, 0);
  const cpu::SimdKernels& simd = cpu::simd_kernels(Isa::baseline);
  EXPECT_FALSE(cpu::Projection(std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0}, centre, 1, simd).serves());
  EXPECT_FALSE(cpu::Projection(std::vector<double>{0, 0, 0, 0}, centre, 1, simd).serves());
  EXPECT_TRUE(cpu::Projection(std::vector<double>{0, 0, 1, 0}, centre, 1, simd).serves());
}

TEST(Projection, ValuesThatAreNotFiniteHaveNoLength) {
  const std::vector<double> centre(2, 0);
  const cpu::Projection projection(std::vector<double>{1, 0}, centre, 1, cpu::simd_kernels(Isa::baseline));
  double image[2];
  for (const double value : {1e200, HUGE_VAL, static_cast<double>(NAN)}) {
    const double row[] = {value, 1};
    EXPECT_EQ(projection.map(row, image), HUGE_VAL);
  }
}

/// A screen of one axis that is too long by 2^-12, whose images of whole coordinates are whole after scaling.
constexpr double kTooLong = 1 + 0x1p-12;
cpu::Screen off_screen(cpu::ScreenKind kind, double longest) {
  constexpr std::size_t kColumns = 8;
  std::vector<double> axis(kColumns, 0);
  axis[3] = kTooLong;
  auto projection = std::make_shared<const cpu::Projection>(axis, std::vector<double>(kColumns, 0), longest,
                                                            cpu::simd_kernels(Isa::baseline));
  return {ScreenType::int8, kind, 1 / kTooLong, {0, 0}, std::move(projection)};
}

// The row that is exactly as far as the key that bounds the answers, along the axis, and the one whose product is.
TEST(ScreenOfImages, KeepsARowAtTheLimit) {
  std::byte panel[64] = {};
  for (const cpu::ScreenKind kind : {cpu::ScreenKind::distance, cpu::ScreenKind::product}) {
    const cpu::Screen screen = off_screen(kind, 200);
    ASSERT_EQ(screen.columns(), 2);
    for (double at = 20; at <= 120; at += 10) {
      const bool is_distance = kind == cpu::ScreenKind::distance;
      const double y[8] = {0, 0, 0, at};
      const double x[8] = {0, 0, 0, is_distance ? 0 : -at};
      const cpu::RoundedRow row = screen.pack(y, cpu::Screen::Side::row, panel, 0, 1);
      const cpu::RowTerms terms = screen.row_terms(row);
      const cpu::RoundedRow rounded = screen.pack(x, cpu::Screen::Side::query, panel, 0, 1);
      const cpu::QueryTerms query = screen.query_terms(rounded);
      // No larger product than -at^2 is in the table, so that the limit's key is at^2.
      const cpu::Threshold limit = screen.threshold(query, at * at, is_distance ? 1e3 : 0);
      const double product = is_distance ? 0 : -at * at;
      const double score =
          product + terms.base + 128 * row.sum + std::ceil(limit.a * terms.rho + limit.b * terms.kappa);
      EXPECT_GE(score, cpu::integer_threshold(limit, limit.a, limit.b, terms.rho, terms.kappa)) << at;
    }
  }
}

// A row that is exactly as far as the key, whatever its rounding: with scale 1 the errors of rows are near 1.
TEST(ScreenOfImages, FinerImagesKeepARowAtTheLimit) {
  constexpr std::int64_t kColumns = 8;
  for (const cpu::ScreenKind kind : {cpu::ScreenKind::distance, cpu::ScreenKind::product}) {
    const bool is_distance = kind == cpu::ScreenKind::distance;
    const cpu::Screen screen(ScreenType::int8, kind, kColumns, 1.0, {});
    std::int64_t dropped = 0;
    for (std::int64_t pair = 0; pair < 2000; ++pair) {
      double x[kColumns];
      double y[kColumns];
      double key = 0;
      for (std::int64_t j = 0; j < kColumns; ++j) {
        x[j] = 20 * drawn(7, pair * kColumns + j);
        y[j] = 20 * drawn(8, pair * kColumns + j);
        key += is_distance ? (x[j] - y[j]) * (x[j] - y[j]) : -x[j] * y[j];
      }
      std::byte row_bytes[kColumns];
      std::byte query_bytes[kColumns];
      const cpu::RowTerms terms = screen.row_terms(screen.pack(y, cpu::Screen::Side::row, row_bytes, 0, 1));
      const cpu::QueryTerms query = screen.query_terms(screen.pack(x, cpu::Screen::Side::query, query_bytes, 0, 1));
      std::int32_t sum = terms.base;
      for (std::int64_t j = 0; j < kColumns; ++j) {
        sum += std::to_integer<int>(query_bytes[j]) * static_cast<std::int8_t>(std::to_integer<int>(row_bytes[j]));
      }
      for (const double norm : {0.0, 1e3}) {  // both forms
        EXPECT_FALSE(cpu::is_dropped_alone(sum, terms.rho, terms.kappa, screen.threshold(query, key, norm))) << pair;
        const double nearer = is_distance ? key / 4 : key - 200;
        dropped += cpu::is_dropped_alone(sum, terms.rho, terms.kappa, screen.threshold(query, nearer, norm)) ? 1 : 0;
      }
    }
    EXPECT_GT(dropped, 1000);
  }
}

TEST(ScreenOfImages, FinerImagesOfRowsThatAlwaysSurvive) {
  const cpu::RowTerms terms = cpu::Screen::always(cpu::RoundedRow{});
  EXPECT_FALSE(cpu::is_dropped_alone(0, terms.rho, terms.kappa, {1, 1, 1e9}));
  EXPECT_TRUE(cpu::is_dropped_alone(0, 1e-30F, 0, {1, 1, 1e9}));
}

TEST(FinerImage, TakesWholeCacheLines) {
  EXPECT_EQ(cpu::FinerTerms::image_bytes(1), 64);
  EXPECT_EQ(cpu::FinerTerms::image_bytes(52), 64);
  EXPECT_EQ(cpu::FinerTerms::image_bytes(53), 128);
  EXPECT_EQ(cpu::FinerTerms::image_bytes(116), 128);
}

TEST(FinerImage, ProductsOfBytes) {
  constexpr std::int64_t kBytes = 192;
  for (const Isa isa : isas()) {
    for (const int widest : {-1, 128, 127}) {  // of all rows; below 0: all are drawn
      std::vector<std::byte> query(kBytes);
      std::vector<std::byte> bytes(5 * kBytes);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        const auto random = static_cast<std::uint8_t>(127 * drawn(9, static_cast<std::int64_t>(i)) + 128);
        bytes[i] = static_cast<std::byte>(widest < 0 ? random : widest);
        if (i < query.size()) query[i] = static_cast<std::byte>(widest < 0 ? 255 - random : 255);
      }
      std::vector<const std::byte*> rows;
      for (std::int64_t r = 0; r < 5; ++r) rows.push_back(bytes.data() + r * kBytes);
      std::int32_t sums[5];
      cpu::simd_kernels(isa).byte_products(query.data(), rows.data(), 5, kBytes, sums);
      for (std::int64_t r = 0; r < 5; ++r) {
        std::int32_t wanted = 0;
        for (std::int64_t j = 0; j < kBytes; ++j) {
          wanted += std::to_integer<int>(query[j]) * static_cast<std::int8_t>(std::to_integer<int>(rows[r][j]));
        }
        EXPECT_EQ(sums[r], wanted) << name_of(isa) << " " << widest;
      }
    }
  }
}

TEST(ScreenOfImages, RowsLongerThanTheProjectionAllowsSurvive) {
  std::byte panel[64] = {};
  const double y[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  for (const double longest : {1.0, 10.0}) {
    const cpu::Screen screen = off_screen(cpu::ScreenKind::distance, longest);
    const cpu::RowTerms terms = screen.row_terms(screen.pack(y, cpu::Screen::Side::row, panel, 0, 1));
    EXPECT_EQ(terms.rho == 0, longest < 2);
  }
}

class PrunedByAnIndex : public testing::Test {
 protected:
  void SetUp() override {
    for (std::int64_t i = 0; i < kPrunedRows; ++i) {
      for (std::int64_t j = 0; j < kPrunedCols; ++j) {
        rows_.push_back(static_cast<float>(drawn(0, i * kPrunedCols + j) / static_cast<double>((j + 1) * (j + 1))));
      }
    }
    path_ = fs::path(testing::TempDir()) / ("vicinal_pruned_" + std::to_string(getpid()) + "_" +
                                            testing::UnitTest::GetInstance()->current_test_info()->name() + ".index");
    const Index index(ctx_, table(), {.pruned = Packing::now});
    if (!has_pruned(index)) GTEST_SKIP() << "no products of bytes on this instruction set";
  }
  void TearDown() override { fs::remove(path_); }
  [[nodiscard]] TableView table() const { return {rows_.data(), kPrunedRows, kPrunedCols}; }
  [[nodiscard]] TableView queries(std::int64_t count) const { return table().slice(100, 100 + count); }
  static const kernels::PackedSlot& packed(const Index& index) { return kernels::prepared_of(index).packed; }
  static bool has_pruned(const Index& index) {
    for (const auto& rows : packed(index).all()) {
      if (rows->kind().pruned) return rows->is_complete();
    }
    return false;
  }
  static bool is_pruned(const Plan& plan) { return plan.screens.find("rotated columns") != std::string::npos; }

  std::vector<float> rows_;
  fs::path path_;
  Context ctx_ = Context::cpu({.threads = 2});
};

TEST_F(PrunedByAnIndex, AreKeptWhenTheOptionSaysSo) {
  const Index never(ctx_, table());
  EXPECT_FALSE(is_pruned(knn(ctx_, never, queries(2), {.k = 3}).plan));
  const Index automatic(ctx_, table(), {.pruned = Packing::automatic});
  EXPECT_FALSE(has_pruned(automatic));
  EXPECT_TRUE(is_pruned(knn(ctx_, automatic, queries(2), {.k = 3}).plan));
  EXPECT_TRUE(has_pruned(automatic));
  EXPECT_FALSE(is_pruned(knn(ctx_, automatic, queries(65), {.k = 3}).plan)) << "many queries";
  EXPECT_FALSE(is_pruned(knn(ctx_, automatic, queries(2), {.k = 3, .method = Method::direct}).plan));
  const Index alone(ctx_, table(), {.packed = Packing::never, .pruned = Packing::now});
  EXPECT_TRUE(has_pruned(alone));
  EXPECT_EQ(packed(alone).all().size(), 1U);
  knn(ctx_, alone, queries(2), {.k = 3});
  knn(ctx_, alone, queries(70), {.k = 3});
  EXPECT_EQ(packed(alone).all().size(), 1U) << "packed rows are never kept";
  refusal(ErrorCode::invalid_argument, [&] { Index(ctx_, table(), {.pruned = static_cast<Packing>(3)}); });
}

TEST_F(PrunedByAnIndex, FlatSpectraHaveNone) {
  std::vector<float> flat;
  for (std::int64_t i = 0; i < kPrunedRows * kPrunedCols; ++i) flat.push_back(static_cast<float>(drawn(5, i)));
  const Index index(ctx_, {flat.data(), kPrunedRows, kPrunedCols}, {.packed = Packing::now, .pruned = Packing::now});
  EXPECT_FALSE(has_pruned(index));
  EXPECT_FALSE(is_pruned(knn(ctx_, index, queries(2), {.k = 3}).plan));
}

TEST_F(PrunedByAnIndex, PlansCountThemAndTheLimitDropsThem) {
  const Index index(ctx_, table(), {.packed = Packing::never, .pruned = Packing::now});
  const Index never(ctx_, table(), {.packed = Packing::never});
  const std::uint64_t bytes = packed(index).bytes();
  ASSERT_GT(bytes, static_cast<std::uint64_t>(kPrunedRows) * 16);
  const KnnOptions options = {.k = 3, .method = Method::fused};
  const NeighborGraph with = knn(ctx_, index, queries(2), options);
  EXPECT_GE(with.plan.memory, bytes);
  const std::uint64_t least = knn(ctx_, never, queries(2), options).plan.memory;
  const Context small = Context::cpu({.threads = 2, .memory_limit = least + packed(index).noted_bytes() + 4096});
  const NeighborGraph without = knn(small, index, queries(2), options);
  EXPECT_FALSE(is_pruned(without.plan));
  EXPECT_FALSE(has_pruned(index));
  EXPECT_LE(without.plan.memory, small.memory_limit());
  EXPECT_EQ(without.ids, with.ids);
  EXPECT_TRUE(is_pruned(knn(ctx_, index, queries(2), options).plan)) << "they are made again";
}

// What is packed has the bytes that were planned, finer images included.
TEST_F(PrunedByAnIndex, FinerImagesAreCounted) {
  static_cast<void>(setenv("VICINAL_ABLATION", "pruning-forecast", 1));  // whether or not they pay
  const Context always = Context::cpu({.threads = 2});
  static_cast<void>(unsetenv("VICINAL_ABLATION"));
  const Index index(always, table(), {.packed = Packing::never, .pruned = Packing::now});
  const auto pruning = packed(index).pruning(Metric::euclidean);
  ASSERT_TRUE(pruning);
  ASSERT_GT(pruning->finer_columns, pruning->columns);
  const std::int64_t finer = cpu::FinerTerms::image_bytes(pruning->finer_columns);
  EXPECT_GE(packed(index).bytes(), static_cast<std::uint64_t>(kPrunedRows * (pruning->columns + 12 + finer)));
  const NeighborGraph found = knn(always, index, queries(1), {.k = 3});
  EXPECT_NE(found.plan.screens.find(std::to_string(pruning->finer_columns) + " of the rows that they leave"),
            std::string::npos);
}

TEST_F(PrunedByAnIndex, FilesNameThem) {
  const Index index(ctx_, table(), {.pruned = Packing::now});
  const NeighborGraph wanted = knn(ctx_, index, queries(1), {.k = 3});
  index.save(ctx_, path_);
  const Index loaded = Index::load(ctx_, path_);
  EXPECT_TRUE(has_pruned(loaded));
  const NeighborGraph found = knn(ctx_, loaded, queries(1), {.k = 3});
  EXPECT_TRUE(is_pruned(found.plan));
  EXPECT_EQ(found.ids, wanted.ids);
  EXPECT_EQ(found.distances, wanted.distances);
  const Index never(ctx_, table());
  never.save(ctx_, path_);
  EXPECT_FALSE(packed(Index::load(ctx_, path_)).prunes());
}

TEST_F(PrunedByAnIndex, MakingThemPollsTheToken) {
  const Context one = Context::cpu({.threads = 1});
  const std::int64_t packed = polls_of([&] { (void)Index(one, table(), {.packed = Packing::now}); });
  const std::int64_t pruned = polls_of([&] { (void)Index(one, table(), {.pruned = Packing::now}); });
  // Both choose a rounding and pack all rows. For pruned rows a sample is read and mapped row by row, and 32 of its
  // rows ask the others.
  constexpr std::int64_t kSampled = 2048;
  constexpr std::int64_t kAskers = 32;
  EXPECT_GE(pruned, packed + 2 * kSampled + kAskers * kSampled / 64);
}

TEST_F(PrunedByAnIndex, SearchesThatAreRepeated) {
  const Index index(ctx_, table(), {.pruned = Packing::now});
  const KnnOptions options = {.k = 4};
  RepeatedKnn repeated(ctx_, index, queries(3), options);
  EXPECT_TRUE(is_pruned(repeated.plan()));
  std::vector<std::int64_t> ids(12);
  std::vector<double> distances(12);
  for (std::int64_t first = 0; first < 50; first += 7) {
    const TableView asked = table().slice(first, first + 3);
    repeated.find(asked, {ids.data(), distances.data()});
    const NeighborGraph wanted = knn(ctx_, table(), asked, {.k = 4, .method = Method::direct});
    EXPECT_EQ(ids, wanted.ids);
    EXPECT_EQ(distances, wanted.distances);
  }
}

}  // namespace
}  // namespace vicinal

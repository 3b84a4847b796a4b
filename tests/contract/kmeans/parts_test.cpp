// k-means of tables that a device has no room for: their rows pass through it in parts, and no bit may show it.
// fake device: -*FullWidth
// fake device, sanitized: -*FullWidth:KMeansInParts.TheSameBits
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "data.hpp"
#include "device_check.hpp"
#include "kmeans_check.hpp"

namespace vicinal::contract {
namespace {

class KMeansInParts : public DeviceTest {};

struct Shape {
  std::int64_t n, d, k;
  std::uint64_t megabytes;  ///< that the device may hold
};

bool says(const KMeans& found, const char* words) {
  return found.plan.reason.find(words) != std::string::npos;
}

// The CPU's bits, wherever the host has the rows and however the first centers are chosen.
TEST_F(KMeansInParts, TheSameBits) {
  const Shape shapes[] = {{40000, 16, 30, 2}, {9000, 300, 20, 4}, {30000, 64, 600, 8}, {45000, 3, 700, 1}};
  std::uint64_t seed = 0;
  for (const Shape& shape : shapes) {
    const auto family = ++seed % 2 == 0 ? Family::column_scales : Family::clusters_1e2;
    const Rows rows = make_rows(family, {shape.n, shape.d, 1}, seed);
    const std::vector<float> values = singles(rows.table);
    const TableView table(values.data(), shape.n, shape.d);
    const auto fill = [&](std::int64_t begin, std::int64_t end, void* to) {
      std::memcpy(to, values.data() + begin * shape.d,
                  static_cast<std::size_t>((end - begin) * shape.d) * sizeof(float));
    };
    std::vector<double> weights(static_cast<std::size_t>(shape.n));
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.3 + static_cast<double>(i % 7);
    for (const KMeansInit init :
         {KMeansInit::random, KMeansInit::first_k, KMeansInit::plus_plus, KMeansInit::parallel}) {
      KMeansOptions options{.clusters = shape.k, .init = init, .seed = seed, .max_iterations = 4, .tolerance = 0};
      if (init == KMeansInit::first_k) options.weights = weights;
      if (init == KMeansInit::plus_plus) options.clusters = 12;
      if (init == KMeansInit::parallel) options.clusters = 5;
      const std::string what = std::to_string(shape.d) + " columns, " + text(options);
      const KMeans expected = kmeans(cpu(), table, options);
      const Context narrow = small(shape.megabytes);
      for (const TableView& view : {table, TableView::blocks(DType::float32, shape.n, shape.d, fill)}) {
        const KMeans got = kmeans(narrow, view, options);
        expect_same(got, expected, what);
        EXPECT_TRUE(says(got, "rows at a time")) << got.plan.reason;
        const bool draws = init == KMeansInit::plus_plus || init == KMeansInit::parallel;
        EXPECT_EQ(says(got, "the host draws"), draws) << got.plan.reason;
        EXPECT_LE(got.plan.device_memory, shape.megabytes * kMegabyte) << what;
        EXPECT_EQ(predict(narrow, got, view), predict(cpu(), expected, table)) << what;
        EXPECT_EQ(score(narrow, got, view, options.weights), score(cpu(), expected, table, options.weights)) << what;
      }
      if (HasFailure()) return;
    }
  }
}

TEST_F(KMeansInParts, EveryOption) {
  constexpr std::int64_t n = 30000;
  constexpr std::int64_t d = 12;
  const Rows rows = make_rows(Family::gaussian, {n, d, 1}, 7);
  const TableView table(rows.table.data(), n, d);
  std::vector<double> weights(n, 1.25);
  for (std::size_t i = 0; i < weights.size(); i += 3) weights[i] = 0;
  // Forty centers of which most are so far away that they are empty.
  std::vector<double> far(40 * d, 1e3);
  for (std::size_t i = 0; i < far.size(); ++i) far[i] += static_cast<double>(i);
  const KMeansOptions plain{.clusters = 40, .init = KMeansInit::random, .seed = 3, .max_iterations = 5, .tolerance = 0};
  std::vector<KMeansOptions> all(7, plain);
  all[1].init = KMeansInit::given;
  all[1].centres = TableView(far.data(), 40, d);
  all[2].metric = Metric::cosine;
  all[3].weights = weights;
  all[4].batch_size = 400;
  all[5].history = true;
  all[6].rule = KMeansRule::classical;
  const Context narrow = small(2);
  for (const KMeansOptions& options : all) {
    const std::string what = "option " + std::to_string(&options - all.data());
    const KMeans expected = kmeans(cpu(), table, options);
    const KMeans got = kmeans(narrow, table, options);
    expect_same(got, expected, what);
    EXPECT_TRUE(says(got, "rows at a time")) << got.plan.reason;
    EXPECT_TRUE(same_bits(transform(narrow, got, TableView(rows.table.data(), 50, d)),
                          transform(cpu(), expected, TableView(rows.table.data(), 50, d))))
        << what;
  }
}

TEST_F(KMeansInParts, WhatGoesWrongOnTheWay) {
  constexpr std::int64_t n = 40000;
  constexpr std::int64_t d = 16;
  const Rows rows = make_rows(Family::gaussian, {n, d, 1}, 9);
  const TableView table(rows.table.data(), n, d);
  std::atomic<std::int64_t> read{0};
  std::atomic<std::int64_t> most{std::numeric_limits<std::int64_t>::max()};
  std::atomic<std::int64_t> last{std::numeric_limits<std::int64_t>::max()};
  CancelToken cancel;
  const TableView blocks = TableView::blocks(DType::float64, n, d, [&](std::int64_t begin, std::int64_t end, void* to) {
    if (read > last) cancel.cancel();
    if ((read += end - begin) > most) throw std::runtime_error("the source has run dry");
    std::memcpy(to, rows.table.data() + begin * d, static_cast<std::size_t>((end - begin) * d) * sizeof(double));
  });
  const KMeansOptions options{
      .clusters = 9, .init = KMeansInit::random, .seed = 1, .max_iterations = 6, .tolerance = 0};
  const KMeans expected = kmeans(cpu(), table, options);
  const Context ctx = small(2, cancel);
  expect_same(kmeans(ctx, blocks, options), expected, "a source");
  EXPECT_GE(read, n * (options.max_iterations + 1));  // each iteration reads it anew
  for (const std::int64_t rows_read : {n / 2, n + n / 2, 3 * n + n / 3}) {
    most = read + rows_read;
    EXPECT_THROW(kmeans(ctx, blocks, options), std::runtime_error);
  }
  most = std::numeric_limits<std::int64_t>::max();
  expect_same(kmeans(ctx, blocks, options), expected, "afterwards");
  std::vector<double> broken = rows.table;
  broken[39990 * d + 7] = 1e200;
  broken[39991 * d] = std::numeric_limits<double>::quiet_NaN();
  try {
    kmeans(ctx, TableView(broken.data(), n, d), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    if (!is_fake()) {
      EXPECT_NE(std::string(error.what()).find("row 39990, column 7"), std::string::npos) << error.what();
    }
  }
  last = read + 2 * n + n / 2;
  try {
    kmeans(ctx, blocks, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
  }
  EXPECT_LT(read, last + n);
}

// Parts so large that changes are put in order before they are added.
TEST(KMeans, PartsAtADevicesFullWidth) {
  if (!cuda_missing().empty()) GTEST_SKIP() << "no CUDA: " << cuda_missing();
  constexpr std::int64_t n = 530000;
  constexpr std::int64_t d = 128;
  std::vector<std::uint8_t> values(static_cast<std::size_t>(n * d));
  std::uint64_t state = 1;
  for (std::uint8_t& value : values) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    value = static_cast<std::uint8_t>(state >> 57);
  }
  const TableView table(static_cast<const void*>(values.data()), DType::uint8, n, d, d);
  const KMeansOptions options{
      .clusters = 300, .init = KMeansInit::random, .seed = 2, .max_iterations = 3, .tolerance = 0};
  const KMeans got = kmeans(Context::cuda({.device_memory_limit = std::uint64_t{212} << 20}), table, options);
  EXPECT_TRUE(says(got, "132500 rows at a time")) << got.plan.reason;
  expect_same(got, kmeans(Context::cpu(), table, options), "in parts");
}

}  // namespace
}  // namespace vicinal::contract

// Index: its door, its copy, and its file: there and back for every type, and thousands of damaged files refused.
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

#include "backend/backend.hpp"
#include "backend/index_access.hpp"
#include "backend/nearest.hpp"
#include "check_sum.hpp"
#include "core/philox.hpp"
#include "core/table_access.hpp"
#include "ops/nearest/index_file.hpp"
#include "refusal.hpp"
#include "vicinal/knn.hpp"

namespace vicinal {
namespace {

namespace fs = std::filesystem;

class IndexTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("vicinal_index_" + std::to_string(getpid()) + "_" +
                                              testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
    path_ = folder_ / "table.index";
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string read() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  [[nodiscard]] std::size_t files_in_folder() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
  fs::path path_;
  Context ctx_ = Context::cpu({.threads = 2});
};

/// 40 rows, 5 columns, most rows several times.
std::vector<float> repeated_rows() {
  std::vector<float> data;
  for (int i = 0; i < 40; ++i) {
    for (int j = 0; j < 5; ++j) data.push_back(static_cast<float>((i % 7) * 10 + j));
  }
  return data;
}

/// An index with groups, whatever the backend finds worth grouping.
kernels::Prepared grouped_index(const TableView& table) {
  kernels::Prepared index;
  index.table = table;
  index.centre = {1, 2, 3, 4, 5};
  index.largest = 60;
  index.member_offsets = {0};
  for (std::int64_t g = 0; g < 7; ++g) {
    index.distinct.push_back(g);
    for (std::int64_t row = g; row < 40; row += 7) index.members.push_back(row);
    index.member_offsets.push_back(static_cast<std::int64_t>(index.members.size()));
  }
  return index;
}

void expect_same(const kernels::Prepared& got, const kernels::Prepared& wanted) {
  EXPECT_EQ(got.centre, wanted.centre);
  EXPECT_EQ(got.largest, wanted.largest);
  EXPECT_EQ(got.distinct, wanted.distinct);
  EXPECT_EQ(got.member_offsets, wanted.member_offsets);
  EXPECT_EQ(got.members, wanted.members);
  EXPECT_EQ(got.table.dtype(), wanted.table.dtype());
  ASSERT_EQ(got.table.rows(), wanted.table.rows());
  ASSERT_EQ(got.table.cols(), wanted.table.cols());
  const auto bytes = static_cast<std::size_t>(got.table.rows() * got.table.cols() * size_of(got.table.dtype()));
  std::vector<char> a(bytes);
  std::vector<char> b(bytes);
  core::copy_rows(got.table, 0, got.table.rows(), a.data());
  core::copy_rows(wanted.table, 0, wanted.table.rows(), b.data());
  EXPECT_EQ(a, b);
}

TEST_F(IndexTest, KnowsItsTable) {
  const std::vector<float> data = repeated_rows();
  const Index index(ctx_, TableView(data.data(), 40, 5));
  EXPECT_EQ(index.rows(), 40);
  EXPECT_EQ(index.cols(), 5);
  EXPECT_EQ(index.table().data(), data.data());
}

TEST_F(IndexTest, ACopyOutlivesTheTable) {
  std::vector<float> data = repeated_rows();
  const std::vector<float> before = data;
  const Index index(ctx_, TableView(data.data(), DType::float32, 20, 5, 10), {.copy = true});
  std::fill(data.begin(), data.end(), -1.0F);
  std::vector<double> rows(100);
  core::widen_rows(index.table(), 0, 20, rows.data());
  for (std::size_t i = 0; i < 20; ++i) {
    for (std::size_t j = 0; j < 5; ++j) EXPECT_EQ(rows[i * 5 + j], before[i * 10 + j]);
  }
}

TEST_F(IndexTest, ABlockSourceCanBeCopied) {
  const TableView source =
      TableView::blocks(DType::float64, 1000, 3, [](std::int64_t begin, std::int64_t end, void* to) {
        for (std::int64_t i = begin * 3; i < end * 3; ++i)
          static_cast<double*>(to)[i - begin * 3] = static_cast<double>(i);
      });
  const Index index(ctx_, source, {.copy = true});
  EXPECT_FALSE(index.table().is_block_source());
  EXPECT_EQ(static_cast<const double*>(index.table().data())[2999], 2999);
}

TEST_F(IndexTest, RefusesEmptyTablesForeignMemoryAndNumbersThatAreNotFinite) {
  std::vector<float> data(6, 1.0F);
  refusal(ErrorCode::invalid_argument, [&] { Index(ctx_, TableView(data.data(), 0, 3)); });
  refusal(ErrorCode::invalid_argument, [&] { Index(ctx_, TableView(data.data(), 3, 0)); });
  refusal(ErrorCode::device_unavailable,
          [&] { Index(ctx_, TableView(data.data(), DType::float32, 2, 3, 3, 1, Memory::cuda)); });
  data[5] = std::numeric_limits<float>::quiet_NaN();
  const std::string what = refusal(ErrorCode::bad_data, [&] { Index(ctx_, TableView(data.data(), 2, 3)); });
  EXPECT_NE(what.find("row 1"), std::string::npos) << what;
  EXPECT_NE(what.find("column 2"), std::string::npos) << what;
}

TEST_F(IndexTest, ACopyBeyondTheMemoryLimitIsRefused) {
  const std::vector<float> data = repeated_rows();
  const Context small = Context::cpu({.threads = 1, .memory_limit = 100});
  refusal(ErrorCode::over_memory, [&] { Index(small, TableView(data.data(), 40, 5), {.copy = true}); });
  refusal(ErrorCode::over_memory, [&] { Index(small, TableView(data.data(), 40, 5)); });
}

TEST_F(IndexTest, GoesToAFileAndBackForEveryType) {
  std::vector<unsigned char> bytes(60 * 8);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 37 % 51);
  for (const DType dtype : {DType::uint8, DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    const Index index(ctx_, TableView(bytes.data(), dtype, 20, 3, 3));
    index.save(ctx_, path_);
    const Index loaded = Index::load(ctx_, path_);
    expect_same(kernels::prepared_of(loaded), kernels::prepared_of(index));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(loaded.table().data()) % 64, 0U);
    EXPECT_EQ(files_in_folder(), 1U) << "a temporary is left";
  }
}

TEST_F(IndexTest, GroupsAndStridesGoToAFileAndBack) {
  const std::vector<float> data = repeated_rows();
  std::vector<float> columns(200);
  for (std::size_t i = 0; i < 40; ++i) {
    for (std::size_t j = 0; j < 5; ++j) columns[j * 40 + i] = data[i * 5 + j];
  }
  const kernels::Prepared index = grouped_index(TableView(columns.data(), DType::float32, 40, 5, 1, 40));
  ops::write_index(ctx_, path_, index);
  expect_same(ops::read_index(ctx_, path_), index);
}

TEST_F(IndexTest, ABlockSourceIsStreamedToTheFile) {
  std::int64_t most = 0;
  const TableView source =
      TableView::blocks(DType::uint8, 3000, 5000, [&](std::int64_t begin, std::int64_t end, void* to) {
        most = std::max(most, end - begin);
        for (std::int64_t i = begin; i < end; ++i)
          std::memset(static_cast<char*>(to) + (i - begin) * 5000, static_cast<int>(i % 256), 5000);
      });
  kernels::Prepared index;
  index.table = source;
  index.centre.assign(5000, 0);
  index.largest = 255;
  ops::write_index(ctx_, path_, index);
  EXPECT_LT(most, 1000);
  const kernels::Prepared loaded = ops::read_index(ctx_, path_);
  EXPECT_EQ(static_cast<const std::uint8_t*>(loaded.table.data())[2999 * 5000], 2999 % 256);
}

TEST_F(IndexTest, ALoadedIndexFindsTheSameNeighbors) {
  const std::vector<float> data = repeated_rows();
  const Index index(ctx_, TableView(data.data(), 40, 5));
  index.save(ctx_, path_);
  const NeighborGraph wanted = knn(ctx_, index, {.k = 6});
  const NeighborGraph got = knn(ctx_, Index::load(ctx_, path_), {.k = 6});
  EXPECT_EQ(got.ids, wanted.ids);
  EXPECT_EQ(got.distances, wanted.distances);
}

TEST_F(IndexTest, ALoadedIndexOutlivesItsFile) {
  const std::vector<float> data = repeated_rows();
  Index(ctx_, TableView(data.data(), 40, 5)).save(ctx_, path_);
  const Index loaded = Index::load(ctx_, path_);
  fs::remove(path_);
  EXPECT_EQ(static_cast<const float*>(loaded.table().data())[199], data[199]);
}

TEST_F(IndexTest, AMissingFileAndAMissingFolderAreErrorsOfTheFileSystem) {
  refusal(ErrorCode::io, [&] { Index::load(ctx_, path_); });
  const std::vector<float> data = repeated_rows();
  const Index index(ctx_, TableView(data.data(), 40, 5));
  refusal(ErrorCode::io, [&] { index.save(ctx_, folder_ / "nowhere" / "table.index"); });
}

TEST_F(IndexTest, ACancelledSaveLeavesTheTargetAsItWas) {
  const std::vector<float> data = repeated_rows();
  const Index index(ctx_, TableView(data.data(), 40, 5));
  write("before");
  const CancelToken token;
  token.cancel();
  refusal(ErrorCode::cancelled, [&] { index.save(Context::cpu({.threads = 1, .cancel = token}), path_); });
  EXPECT_EQ(read(), "before");
  EXPECT_EQ(files_in_folder(), 1U);
}

/// Reading must end in an index or in bad_data that names the file, and in nothing else.
void load_or_refuse(const Context& ctx, const std::string& file, int& loaded) {
  // Memory of exactly the file's size: what reads beyond it is found by the sanitizers.
  const std::vector<unsigned char> bytes(file.begin(), file.end());
  try {
    const kernels::Prepared index =
        ops::read_index(ctx, io::Bytes{bytes.data(), bytes.size(), nullptr, false}, "x.index");
    EXPECT_GT(index.table.rows(), 0);
    ++loaded;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data) << error.what();
    EXPECT_NE(std::string(error.what()).find("'x.index'"), std::string::npos) << error.what();
  }
}

class DamagedIndex : public IndexTest {
 protected:
  void SetUp() override {
    IndexTest::SetUp();
    data_ = repeated_rows();
    ops::write_index(ctx_, path_, grouped_index(TableView(data_.data(), 40, 5)));
    good_ = read();
    std::uint64_t length = 0;
    std::memcpy(&length, good_.data(), 8);
    data_begin_ = 8 + static_cast<std::size_t>(length);
    ctx_ = Context::cpu({.threads = 1});
  }
  std::vector<float> data_;
  std::string good_;
  std::size_t data_begin_ = 0;
};

TEST_F(DamagedIndex, EveryTruncationIsRefused) {
  int loaded = 0;
  for (std::size_t size = 0; size < good_.size(); ++size) {
    load_or_refuse(ctx_, good_.substr(0, size), loaded);
  }
  load_or_refuse(ctx_, good_ + '\0', loaded);
  EXPECT_EQ(loaded, 0);
}

TEST_F(DamagedIndex, EveryFlippedBitIsNoticed) {
  int loaded = 0;
  for (std::size_t i = 0; i < good_.size(); ++i) {
    std::string bytes = good_;
    bytes[i] = static_cast<char>(bytes[i] ^ 1 << i % 8);
    load_or_refuse(ctx_, bytes, loaded);
  }
  EXPECT_EQ(loaded, 0);
}

TEST_F(DamagedIndex, MutationsWithARightCheckSumNeverLoadAnInvalidIndex) {
  int loaded = 0;
  const std::vector<std::string> words = {"0",
                                          "-1",
                                          "9223372036854775807",
                                          "18446744073709551615",
                                          "1e300",
                                          "null",
                                          "[]",
                                          "{}",
                                          "\"F64\"",
                                          "table",
                                          "distinct",
                                          ",",
                                          "\"",
                                          "[[[[[[[[",
                                          "\xff"};
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const auto x = core::philox(1, 0, i);
    std::string bytes = good_;
    // Half of the changes go to the header, half anywhere; one to three of them.
    for (std::uint32_t change = 0; change <= x[3] % 3; ++change) {
      const auto y = core::philox(1, 1 + change, i);
      const std::size_t at = y[0] % (y[1] % 2 == 0 ? data_begin_ : bytes.size() - 4);
      if (y[2] % 2 == 0) {
        bytes[at] = static_cast<char>(y[3]);
      } else {
        const std::string& word = words[y[3] % words.size()];
        bytes.replace(at, std::min(word.size(), bytes.size() - at), word);  // keeps the length
      }
    }
    load_or_refuse(ctx_, summed(bytes), loaded);
  }
  // What loads has other numbers in its table or center: nothing can tell.
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, 3000);
}

TEST_F(DamagedIndex, GroupsThatAreNoPartitionAreRefused) {
  const kernels::Prepared good = grouped_index(TableView(data_.data(), 40, 5));
  const auto refused = [&](auto change) {
    kernels::Prepared bad = good;
    change(bad);
    ops::write_index(ctx_, path_, bad);
    refusal(ErrorCode::bad_data, [&] { Index::load(ctx_, path_); });
  };
  refused([](kernels::Prepared& bad) { std::swap(bad.members[0], bad.members[1]); });
  refused([](kernels::Prepared& bad) { bad.members[1] = bad.members[2]; });
  refused([](kernels::Prepared& bad) { bad.members[39] = 40; });
  refused([](kernels::Prepared& bad) { bad.members[3] = -1; });
  refused([](kernels::Prepared& bad) { std::swap(bad.distinct[0], bad.distinct[1]); });
  refused([](kernels::Prepared& bad) { bad.distinct[6] = 5; });
  refused([](kernels::Prepared& bad) { bad.member_offsets[0] = 1; });
  refused([](kernels::Prepared& bad) { bad.member_offsets[7] = 41; });
  refused([](kernels::Prepared& bad) { bad.member_offsets[3] = bad.member_offsets[2]; });
  refused([](kernels::Prepared& bad) { bad.member_offsets[3] = std::numeric_limits<std::int64_t>::max(); });
  refused([](kernels::Prepared& bad) { bad.member_offsets[3] = -4; });
  refused([](kernels::Prepared& bad) { bad.centre[2] = std::numeric_limits<double>::quiet_NaN(); });
  refused([](kernels::Prepared& bad) { bad.largest = -1; });
}

/// Whoever forges a claim writes the check sum, too: it is right in all of these files.
TEST_F(DamagedIndex, FalseClaimsOfTheTableAreRefused) {
  const auto refused = [&](const TableView& table, auto change) {
    kernels::Prepared bad = grouped_index(table);
    change(bad);
    ops::write_index(ctx_, path_, bad);
    return refusal(ErrorCode::bad_data, [&] {
      const Index index = Index::load(ctx_, path_);
      const KnnOptions options{.k = 6, .method = Method::direct};
      EXPECT_EQ(knn(ctx_, index, options).ids, knn(ctx_, table, options).ids);
    });
  };
  // A partition in the right order; rows 8 and 9, which differ, are in each other's group.
  const TableView table(data_.data(), 40, 5);
  EXPECT_NE(refused(table,
                    [](kernels::Prepared& bad) {
                      ASSERT_EQ(bad.members[7], 8);
                      ASSERT_EQ(bad.members[13], 9);
                      std::swap(bad.members[7], bad.members[13]);
                    })
                .find("rows 1 and 9 differ"),
            std::string::npos);
  // Equal as numbers is not equal: bytes are what a group is made of.
  std::vector<float> zeros(200, 0.0F);
  zeros[35] = -0.0F;
  EXPECT_NE(refused(TableView(zeros.data(), 40, 5), [](const kernels::Prepared&) {}).find("rows 0 and 7 differ"),
            std::string::npos);
  // Whether a key can overflow is judged by the largest deviation.
  EXPECT_NE(refused(table, [](kernels::Prepared& bad) { bad.largest = 58; }).find("row 6, column 0 is farther"),
            std::string::npos);
}

TEST_F(DamagedIndex, DeviationsBeyondFloat64AreNoFalseClaim) {
  const std::vector<double> far = {-1.5e308, 1.5e308, -1.5e308, -1.5e308, 2};
  const Index index(ctx_, TableView(far.data(), 5, 1));
  index.save(ctx_, path_);
  EXPECT_EQ(kernels::prepared_of(Index::load(ctx_, path_)).largest, std::numeric_limits<double>::max());
}

TEST_F(DamagedIndex, NumbersThatAreNotFiniteAreRefusedByRowAndColumn) {
  std::vector<float> data = data_;
  data[17] = std::numeric_limits<float>::infinity();
  ops::write_index(ctx_, path_, grouped_index(TableView(data.data(), 40, 5)));
  const std::string what = refusal(ErrorCode::bad_data, [&] { Index::load(ctx_, path_); });
  EXPECT_NE(what.find("row 3, column 2"), std::string::npos) << what;
}

/// The same of an index that has a tree.
class DamagedTree : public DamagedIndex {
 protected:
  void SetUp() override {
    DamagedIndex::SetUp();
    data_.clear();
    for (int i = 0; i < 500; ++i) data_.push_back(static_cast<float>(i * i % 97 + i / 50));  // all rows differ
    table_ = TableView(data_.data(), 100, 5);
    const Index index(ctx_, table_, {.tree = true});
    leaves_ = kernels::prepared_of(index).tree.get()->shape_of(ctx_, kernels::prepared_of(index))->leaf_sizes.size();
    index.save(ctx_, path_);
    good_ = read();
    std::uint64_t length = 0;
    std::memcpy(&length, good_.data(), 8);
    data_begin_ = 8 + static_cast<std::size_t>(length);
  }
  TableView table_;
  std::size_t leaves_ = 0;
};

TEST_F(DamagedTree, EveryTruncationAndFlippedBitIsNoticed) {
  ASSERT_GT(leaves_, 1U);
  int loaded = 0;
  for (std::size_t i = 0; i < good_.size(); ++i) {
    load_or_refuse(ctx_, good_.substr(0, i), loaded);
    std::string bytes = good_;
    bytes[i] = static_cast<char>(bytes[i] ^ 1 << i % 8);
    load_or_refuse(ctx_, bytes, loaded);
  }
  EXPECT_EQ(loaded, 0);
}

TEST_F(DamagedTree, MutationsWithARightCheckSumNeverAnswerWrongly) {
  const std::size_t table_begin = good_.size() - 4 - 100 * 5 * sizeof(float);
  const NeighborGraph wanted = knn(ctx_, table_, {.k = 5, .method = Method::direct});
  int right = 0;
  int refused = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const auto x = core::philox(2, 0, i);
    std::string bytes = good_;
    for (std::uint32_t change = 0; change <= x[3] % 2; ++change) {
      // Before the table: header, groups and tree. Small numbers, so that many are at home there.
      const auto y = core::philox(2, 1 + change, i);
      const std::size_t at = y[1] % 4 == 0 ? y[0] % table_begin : data_begin_ + y[0] % (table_begin - data_begin_);
      bytes[at] = static_cast<char>(y[3] % 4 == 0 ? y[2] : y[2] % 100);
    }
    const std::string file = summed(bytes);
    const std::vector<unsigned char> exact(file.begin(), file.end());
    try {
      const kernels::Prepared index =
          ops::read_index(ctx_, io::Bytes{exact.data(), exact.size(), nullptr, false}, "x.index");
      kernels::NearestTask task;
      task.index = &index;
      task.queries = index.table;
      task.self = true;
      task.method = Method::kdtree;
      const auto tree = index.tree.get();
      if (!tree || index.table.rows() != 100 || index.table.dtype() != DType::float32) continue;
      task.tree = tree.get();
      task.k = 5;
      std::vector<std::int64_t> ids(500), offsets, counts;
      std::vector<double> distances(500);
      SearchStats stats;
      kernels::NearestResult result{ids, distances, offsets, counts, stats};
      kernels::backend_of(ctx_).nearest().search(ctx_, task, result);
      EXPECT_EQ(ids, wanted.ids);
      EXPECT_EQ(distances, wanted.distances);
      ++right;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(right, 100);
}

/// The same of an index that has k-distances: the answers do not depend on them.
TEST_F(DamagedIndex, MutatedKDistancesNeverAnswerWrongly) {
  const TableView table(data_.data(), 40, 5);
  const Index index(ctx_, table);
  const NeighborGraph wanted = knn(ctx_, index, {.k = 3, .method = Method::direct_filter});
  index.save(ctx_, path_);
  const std::string good = read();
  const std::size_t begin = good.size() - 4 - 40 * 5 * sizeof(float);
  int right = 0;
  int refused = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto x = core::philox(3, 0, i);
    std::string bytes = good;
    // The numbers before the table: 40 keys, p, k and metric.
    bytes[begin - 1 - x[0] % 344] = static_cast<char>(x[3] % 4 == 0 ? x[2] : x[2] % 8);
    write(summed(bytes));
    try {
      const Index loaded = Index::load(ctx_, path_);
      const NeighborGraph got = knn(ctx_, loaded, {.k = 3, .method = Method::direct_filter});
      EXPECT_EQ(got.ids, wanted.ids);
      EXPECT_EQ(got.distances, wanted.distances);
      ++right;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(right, 100);
}

TEST_F(DamagedIndex, OtherFilesAreRefused) {
  const std::vector<std::string> others = {"",
                                           "1234567",
                                           std::string(8, '\0'),
                                           std::string(100, '\xff'),
                                           std::string("\x02\0\0\0\0\0\0\0{}", 10),
                                           std::string("\x02\0\0\0\0\0\0\0[]", 10),
                                           std::string("\x93NUMPY\x01\0v\0{'descr': '<f4'}", 26)};
  int loaded = 0;
  for (const std::string& other : others) {
    load_or_refuse(ctx_, other, loaded);
  }
  EXPECT_EQ(loaded, 0);
}

}  // namespace
}  // namespace vicinal

// Files that change while or after they are read: an error or what they held before, never a signal.
#include "io/bytes.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "io_testing.hpp"
#include "vicinal/knn.hpp"

namespace vicinal {
namespace {

using namespace io_testing;

class IoBytes : public ::testing::Test {
 protected:
  Context ctx_ = Context::cpu({.threads = 2});
  Context mapping_ = Context::cpu({.threads = 2, .map_files = true});
  Folder folder_;
};

TEST_F(IoBytes, WhatWasReadStays) {
  const std::vector<double> rows = {0, 1, 3, 7, 15, 31};
  std::string elements(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(double));
  const auto path = folder_.put("x.npy", npy("<f8", "(6, 1)", elements));
  const Table table = read_table(ctx_, path);
  std::filesystem::resize_file(path, 0);
  const NeighborGraph graph = knn(ctx_, table.view, {.k = 1});
  EXPECT_EQ(graph.ids, (std::vector<std::int64_t>{1, 0, 1, 2, 3, 4}));
}

TEST_F(IoBytes, AFileThatShrinksIsAnError) {
  constexpr std::uint64_t kSize = std::uint64_t{9} << 20;  // three blocks
  const auto path = folder_.put("x", std::string(kSize, 'x'));
  const int file = ::open(path.c_str(), O_RDONLY);
  ASSERT_GE(file, 0);
  EXPECT_EQ(io::read_file(ctx_, file, kSize, path).data[kSize - 1], 'x');
  expect_error(ErrorCode::io, {"x", "shrank while it was read"}, [&] { io::read_file(ctx_, file, kSize + 1, path); });
  std::filesystem::resize_file(path, 5);
  expect_error(ErrorCode::io, {"x", "shrank while it was read"}, [&] { io::read_file(ctx_, file, kSize, path); });
  ::close(file);
}

TEST_F(IoBytes, ReadingKeepsTheLimitAndTheCancel) {
  const auto path = folder_.put("x", std::string(1 << 20, 'x'));
  const Context small = Context::cpu({.threads = 2, .memory_limit = (1 << 20) - 1});
  expect_error(ErrorCode::over_memory, {"x", "memory limit"}, [&] { io::open_file(small, path); });
  EXPECT_EQ(io::open_file(small, path, 10).size, 10U);
  const CpuOptions options{.threads = 2};
  options.cancel.cancel();
  expect_error(ErrorCode::cancelled, {}, [&] { io::open_file(Context::cpu(options), path); });
}

TEST_F(IoBytes, MappedWhereTheContextSaysSo) {
  const auto path = folder_.put("x", std::string(10000, 'x'));
  const io::Bytes mapped = io::open_file(mapping_, path);
  EXPECT_EQ(mapped.held, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapped.data) % 4096, 0U);
  EXPECT_EQ(io::mapped_file_at(mapped.data), path.string());
  EXPECT_EQ(io::mapped_file_at(mapped.data + 9999), path.string());
  EXPECT_EQ(io::mapped_file_at(mapped.data + 10000), nullptr);
  EXPECT_EQ(io::open_file(ctx_, path).held, 10000U);
  const unsigned char* const at = mapped.data;
  const_cast<io::Bytes&>(mapped).owner.reset();
  EXPECT_EQ(io::mapped_file_at(at), nullptr);
}

TEST_F(IoBytes, DescribingReadsNoMoreThanHeaders) {
  const auto path = folder_.put("x.npy", npy("<f8", "(4000000, 1)", ""));
  std::filesystem::resize_file(path, 128 + 32'000'000);
  const Context small = Context::cpu({.threads = 2, .memory_limit = 1 << 20});
  const FileInfo info = describe_file(small, path);
  EXPECT_EQ(info.bytes, 32'000'128U);
  EXPECT_EQ(info.arrays.at(0).shape, (std::vector<std::int64_t>{4'000'000, 1}));
  std::filesystem::resize_file(path, 128 + 31'999'999);
  expect_error(ErrorCode::bad_data, {"x.npy", "31999999 bytes of elements"}, [&] { describe_file(small, path); });
}

}  // namespace
}  // namespace vicinal

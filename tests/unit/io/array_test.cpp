// npy, npz, idx, gzip and xz: files made by hand come back as written; our writers' files do too.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "io_testing.hpp"

namespace vicinal {
namespace {

using namespace io_testing;
using Doubles = std::vector<double>;

class IoArray : public ::testing::Test {
 protected:
  Table read(const std::string& bytes, const ReadOptions& options = {}) {
    return read_table(ctx_, folder_.put("x" + std::to_string(count_++), bytes), options);
  }
  Context ctx_ = Context::cpu({.threads = 2});
  Folder folder_;
  int count_ = 0;
};

TEST_F(IoArray, NpyDtypes) {
  const Doubles two = {1, 2};
  EXPECT_EQ(values_of(read(npy("|u1", "(1, 2)", raw<std::uint8_t>({1, 2})))), two);
  EXPECT_EQ(values_of(read(npy("|i1", "(1, 2)", raw<std::int8_t>({-1, 2})))), (Doubles{-1, 2}));
  EXPECT_EQ(values_of(read(npy("|b1", "(1, 2)", raw<std::uint8_t>({0, 1})))), (Doubles{0, 1}));
  EXPECT_EQ(values_of(read(npy("<i2", "(1, 2)", raw<std::int16_t>({-300, 2})))), (Doubles{-300, 2}));
  EXPECT_EQ(values_of(read(npy(">i2", "(1, 2)", big_endian<std::int16_t>({-300, 2})))), (Doubles{-300, 2}));
  EXPECT_EQ(values_of(read(npy("<u2", "(1, 2)", raw<std::uint16_t>({65535, 2})))), (Doubles{65535, 2}));
  EXPECT_EQ(values_of(read(npy(">u4", "(1, 2)", big_endian<std::uint32_t>({4294967295U, 2})))),
            (Doubles{4294967295.0, 2}));
  EXPECT_EQ(values_of(read(npy("<i4", "(1, 2)", raw<std::int32_t>({-7, 2})))), (Doubles{-7, 2}));
  EXPECT_EQ(values_of(read(npy("<i8", "(1, 2)", raw<std::int64_t>({-(1LL << 53), 1LL << 53})))),
            (Doubles{-0x1p53, 0x1p53}));
  EXPECT_EQ(values_of(read(npy(">u8", "(1, 2)", big_endian<std::uint64_t>({1ULL << 53, 2})))), (Doubles{0x1p53, 2}));
  EXPECT_EQ(values_of(read(npy("<f2", "(1, 2)", raw<std::uint16_t>({0x3c00, 0x4000})))), two);
  EXPECT_EQ(values_of(read(npy(">f2", "(1, 2)", big_endian<std::uint16_t>({0x3c00, 0x4000})))), two);
  EXPECT_EQ(values_of(read(npy("<f4", "(1, 2)", raw<float>({1.5F, 2})))), (Doubles{1.5, 2}));
  EXPECT_EQ(values_of(read(npy(">f4", "(1, 2)", big_endian<float>({1.5F, 2})))), (Doubles{1.5, 2}));
  EXPECT_EQ(values_of(read(npy("<f8", "(1, 2)", raw<double>({0.1, -0.0})))), (Doubles{0.1, -0.0}));
  EXPECT_EQ(values_of(read(npy(">f8", "(1, 2)", big_endian<double>({0.1, 2})))), (Doubles{0.1, 2}));
}

TEST_F(IoArray, NpyKeepsTypesAndMaps) {
  EXPECT_EQ(read(npy("|u1", "(1, 2)", raw<std::uint8_t>({1, 2}))).view.dtype(), DType::uint8);
  EXPECT_EQ(read(npy("|b1", "(1, 2)", raw<std::uint8_t>({1, 0}))).view.dtype(), DType::uint8);
  EXPECT_EQ(read(npy("<f2", "(1, 2)", raw<std::uint16_t>({1, 2}))).view.dtype(), DType::float16);
  EXPECT_EQ(read(npy(">f4", "(1, 2)", big_endian<float>({1, 2}))).view.dtype(), DType::float32);
  EXPECT_EQ(read(npy("<i4", "(1, 2)", raw<std::int32_t>({1, 2}))).view.dtype(), DType::float64);
  const Context mapping = Context::cpu({.threads = 2, .map_files = true});
  const Table mapped = read_table(mapping, folder_.put("mapped.npy", npy("<f8", "(2, 1)", raw<double>({1, 2}))));
  // Pages begin at multiples of 4096 and the header is 128 bytes long: used where it lies.
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapped.view.data()) % 4096, 128U);
  EXPECT_EQ(mapped.format, FileFormat::npy);
}

TEST_F(IoArray, NpyShapesOrdersVersions) {
  const std::string six = raw<float>({0, 1, 2, 3, 4, 5});
  const Doubles ascending = {0, 1, 2, 3, 4, 5};
  Table table = read(npy("<f4", "(6,)", six));
  EXPECT_EQ(table.view.rows(), 6);
  EXPECT_EQ(table.view.cols(), 1);
  EXPECT_EQ(values_of(table), ascending);
  table = read(npy("<f4", "(1, 2, 3)", six));
  EXPECT_EQ(table.view.cols(), 6);
  EXPECT_EQ(table.shape, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(values_of(read(npy("<f4", "(2, 3)", six, true))), (Doubles{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(values_of(read(npy(">f4", "(2, 3)", big_endian<float>({0, 1, 2, 3, 4, 5}), true))),
            (Doubles{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(values_of(read(npy("<f4", "(6,)", six, true))), ascending);
  EXPECT_EQ(values_of(read(npy("<f4", "(2, 3)", six, false, 2))), ascending);
  EXPECT_EQ(values_of(read(npy("<f4", "(2, 3)", six, false, 3))), ascending);
  EXPECT_EQ(values_of(read(npy("<f4", "(2L, 3L)", six))), ascending);
  // a[i, j, k] of shape (2, 3, 2) in Fortran order is element i + 2 j + 6 k.
  std::string twelve;
  for (int i = 0; i < 12; ++i) twelve += raw<float>({static_cast<float>(i)});
  EXPECT_EQ(values_of(read(npy("<f4", "(2, 3, 2)", twelve, true))), (Doubles{0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11}));
  // Elements at an odd offset are copied.
  EXPECT_EQ(values_of(read(npy_with("{'descr':'<f4','fortran_order':False,'shape':(6,)}", six))), ascending);
  EXPECT_EQ(values_of(read(npy_with("{\"shape\": (6,), \"descr\": \"<f4\", \"fortran_order\": False}", six))),
            ascending);
}

TEST_F(IoArray, LargeConversionsNameTheFirstBadElement) {
  std::vector<std::int64_t> many(3000 * 500, 1);
  many[1234 * 500 + 56] = (1LL << 53) + 1;
  many[2999 * 500 + 1] = -(1LL << 60);
  const std::string data(reinterpret_cast<const char*>(many.data()), many.size() * 8);
  const std::string file = npy("<i8", "(3000, 500)", data);
  for (int repeat = 0; repeat < 5; ++repeat) {
    expect_error(ErrorCode::bad_data, {"2^53", "row 1234, column 56"}, [&] { read(file); });
  }
}

TEST_F(IoArray, XzStreams) {
  const std::string file = npy("<f8", "(2, 2)", raw<double>({1, 2, 3, 4}));
  const std::vector<double> ascending = {1, 2, 3, 4};
  EXPECT_EQ(values_of(read(xz(file))), ascending);
  EXPECT_EQ(values_of(read(xz(file.substr(0, 70)) + xz("") + std::string(4, '\0') + xz(file.substr(70)))), ascending);
  EXPECT_EQ(values_of(read(xz(zip({{"a.npy", file, 8}})))), ascending);
  EXPECT_EQ(describe_file(ctx_, folder_.put("a", xz(file))).compression, Compression::xz);
}

TEST_F(IoArray, BytesOfAnyFile) {
  const std::string content = "neither a table nor an archive";
  for (const std::string& bytes : {content, gzip(content), xz(content)}) {
    const auto path = folder_.put("any", bytes);
    const FileBytes all = read_bytes(ctx_, path);
    EXPECT_EQ(std::string(all.bytes.begin(), all.bytes.end()), content);
    const FileBytes some = read_bytes(ctx_, path, 7);
    EXPECT_EQ(std::string(some.bytes.begin(), some.bytes.end()), content.substr(0, 7));
  }
  expect_error(ErrorCode::io, {"none"}, [&] { read_bytes(ctx_, folder_ / "none"); });
}

TEST_F(IoArray, GzipMembers) {
  const std::string file = npy("<f4", "(6,)", raw<float>({0, 1, 2, 3, 4, 5}));
  const Doubles ascending = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(values_of(read(gzip(file))), ascending);
  EXPECT_EQ(values_of(read(gzip(file.substr(0, 70)) + gzip("") + gzip(file.substr(70)))), ascending);
  EXPECT_EQ(values_of(read(gzip(zip({{"a.npy", file, 8}})))), ascending);
}

TEST_F(IoArray, Npz) {
  const std::string one = npy("<i8", "(3,)", raw<std::int64_t>({7, 8, 9}));
  const std::string two = npy("<f8", "(2, 2)", raw<double>({1, 2, 3, 4}));
  for (const int method : {0, 8}) {
    for (const bool zip64 : {false, true}) {
      const std::string file = zip(
          {{"y.npy", one, method, 0, zip64}, {"note.txt", "hi", 0, 0, false}, {"X.npy", two, method, 0, zip64}}, zip64);
      EXPECT_EQ(values_of(read(file)), (Doubles{1, 2, 3, 4}));
      ReadOptions options;
      options.member = "y";
      EXPECT_EQ(values_of(read(file, options)), (Doubles{7, 8, 9}));
      const FileInfo info = describe_file(ctx_, folder_.put("n.npz", file));
      ASSERT_EQ(info.arrays.size(), 2U);
      EXPECT_EQ(info.arrays[1].name, "X");
      EXPECT_EQ(info.arrays[1].dtype, "<f8");
      EXPECT_EQ(info.arrays[1].shape, (std::vector<std::int64_t>{2, 2}));
      const Labels labels = read_labels(ctx_, folder_ / "n.npz");
      EXPECT_EQ(labels.codes, (std::vector<std::int32_t>{0, 1, 2}));
    }
  }
  EXPECT_EQ(values_of(read(zip({{"y.npy", one}}))), (Doubles{7, 8, 9}));  // the only one
}

TEST_F(IoArray, Idx) {
  const std::string magic("\0\0", 2);
  const auto idx = [&](char code, const std::string& shape, const std::string& data) {
    return magic + code + static_cast<char>(shape.size() / 4) + shape + data;
  };
  Table table = read(idx(0x08, big_endian<std::uint32_t>({2, 1, 2}), raw<std::uint8_t>({1, 2, 3, 255})));
  EXPECT_EQ(table.view.dtype(), DType::uint8);
  EXPECT_EQ(table.shape, (std::vector<std::int64_t>{2, 1, 2}));
  EXPECT_EQ(table.format, FileFormat::idx);
  EXPECT_EQ(values_of(table), (Doubles{1, 2, 3, 255}));
  const std::string pair = big_endian<std::uint32_t>({1, 2});
  EXPECT_EQ(values_of(read(idx(0x09, pair, raw<std::int8_t>({-1, 2})))), (Doubles{-1, 2}));
  EXPECT_EQ(values_of(read(idx(0x0B, pair, big_endian<std::int16_t>({-1, 2})))), (Doubles{-1, 2}));
  EXPECT_EQ(values_of(read(idx(0x0C, pair, big_endian<std::int32_t>({-1, 2})))), (Doubles{-1, 2}));
  EXPECT_EQ(values_of(read(idx(0x0D, pair, big_endian<float>({-1, 2})))), (Doubles{-1, 2}));
  EXPECT_EQ(values_of(read(idx(0x0E, pair, big_endian<double>({-1, 0.1})))), (Doubles{-1, 0.1}));
  EXPECT_EQ(read(idx(0x0D, pair, big_endian<float>({-1, 2}))).view.dtype(), DType::float32);
  const std::string labels = idx(0x08, big_endian<std::uint32_t>({3}), raw<std::uint8_t>({9, 0, 9}));
  EXPECT_EQ(read_labels(ctx_, folder_.put("l", gzip(labels))).codes, (std::vector<std::int32_t>{1, 0, 1}));
}

TEST_F(IoArray, FashionMnist) {
  const std::filesystem::path data = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(data / "t10k-images-idx3-ubyte.gz")) {
    GTEST_SKIP() << "Fashion-MNIST is not installed (package dataset-fashion-mnist)";
  }
  const Table images = read_table(ctx_, data / "t10k-images-idx3-ubyte.gz");
  EXPECT_EQ(images.view.rows(), 10000);
  EXPECT_EQ(images.view.cols(), 784);
  EXPECT_EQ(images.view.dtype(), DType::uint8);
  EXPECT_EQ(images.shape, (std::vector<std::int64_t>{10000, 28, 28}));
  const Labels labels = read_labels(ctx_, data / "t10k-labels-idx1-ubyte.gz");
  EXPECT_EQ(labels.class_count(), 10);
  std::vector<int> counts(10);
  for (const std::int32_t code : labels.codes) ++counts[static_cast<std::size_t>(code)];
  EXPECT_EQ(counts, std::vector<int>(10, 1000));
  const FileInfo info = describe_file(ctx_, data / "train-images-idx3-ubyte.gz");
  EXPECT_EQ(info.compression, Compression::gzip);
  EXPECT_EQ(info.arrays.at(0).shape, (std::vector<std::int64_t>{60000, 28, 28}));
}

TEST_F(IoArray, WritersRoundTrip) {
  const Doubles values = {1, -2.5, 1e300, 5e-324, 0.1, -0.0};
  write_npy(folder_ / "a.npy", {values.data(), "<f8", {3, 2}});
  EXPECT_EQ(folder_.get("a.npy"), npy("<f8", "(3, 2)", raw<double>({1, -2.5, 1e300, 5e-324, 0.1, -0.0})));
  EXPECT_EQ(values_of(read_table(ctx_, folder_ / "a.npy")), values);
  write_npy(folder_ / "b.npy", {values.data(), "<f8", {6}});
  EXPECT_EQ(folder_.get("b.npy"), npy("<f8", "(6,)", raw<double>({1, -2.5, 1e300, 5e-324, 0.1, -0.0})));
  const std::vector<std::int32_t> codes = {3, 1, 2};
  const std::vector<NamedArray> arrays = {{"table", {values.data(), "<f8", {2, 3}}},
                                          {"codes", {codes.data(), "<i4", {3}}},
                                          {"none", {nullptr, "<i8", {0}}}};
  write_npz(folder_ / "c.npz", arrays);
  const Table table = read_table(ctx_, folder_ / "c.npz");
  EXPECT_EQ(values_of(table), values);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(table.view.data()) % 64, 0U);
  const FileInfo info = describe_file(ctx_, folder_ / "c.npz");
  EXPECT_EQ(info.arrays.at(2).shape, std::vector<std::int64_t>{0});
  EXPECT_EQ(info.bytes, folder_.get("c.npz").size());
  const std::string first = folder_.get("c.npz");
  write_npz(folder_ / "c.npz", arrays);
  EXPECT_EQ(folder_.get("c.npz"), first);
}

TEST_F(IoArray, WritersRefuse) {
  const double one = 1;
  expect_error(ErrorCode::invalid_argument, {"f16"}, [&] { write_npy(folder_ / "a", {&one, "<f16", {1}}); });
  expect_error(ErrorCode::invalid_argument, {"-1"}, [&] { write_npy(folder_ / "a", {&one, "<f8", {-1}}); });
  expect_error(ErrorCode::invalid_argument, {"null"}, [&] { write_npy(folder_ / "a", {nullptr, "<f8", {1}}); });
  const std::vector<NamedArray> twice = {{"a", {&one, "<f8", {1}}}, {"a", {&one, "<f8", {1}}}};
  expect_error(ErrorCode::invalid_argument, {"'a'"}, [&] { write_npz(folder_ / "a", twice); });
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(IoArray, Graphs) {
  NeighborGraph graph;
  graph.rows = 2;
  graph.k = 2;
  graph.ids = {5, 3, 1, 0};
  graph.distances = {0.1, 2, 1e-7, 1e22};
  write_graph(folder_ / "g.csv", graph);
  EXPECT_EQ(folder_.get("g.csv"), "row,rank,id,distance\n0,0,5,0.1\n0,1,3,2\n1,0,1,1e-07\n1,1,0,1e+22\n");
  write_graph(folder_ / "g.NPZ", graph);
  ReadOptions options;
  options.member = "distances";
  EXPECT_EQ(values_of(read_table(ctx_, folder_ / "g.NPZ", options)), graph.distances);
  graph.k = 0;
  graph.offsets = {0, 1, 4};
  write_graph(folder_ / "r.npz", graph);
  const FileInfo info = describe_file(ctx_, folder_ / "r.npz");
  ASSERT_EQ(info.arrays.size(), 3U);
  EXPECT_EQ(info.arrays[0].shape, std::vector<std::int64_t>{4});
  EXPECT_EQ(info.arrays[2].name, "offsets");
  write_graph(folder_ / "r.csv", graph);
  EXPECT_EQ(folder_.get("r.csv"), "row,rank,id,distance\n0,0,5,0.1\n1,0,3,2\n1,1,1,1e-07\n1,2,0,1e+22\n");
  expect_error(ErrorCode::invalid_argument, {".npz", ".csv"}, [&] { write_graph(folder_ / "g.txt", graph); });
  graph.offsets = {0, 5, 4};
  expect_error(ErrorCode::invalid_argument, {"offsets"}, [&] { write_graph(folder_ / "e.npz", graph); });
  graph.offsets.clear();
  graph.k = 3;
  expect_error(ErrorCode::invalid_argument, {"k"}, [&] { write_graph(folder_ / "e.csv", graph); });
  EXPECT_FALSE(std::filesystem::exists(folder_ / "e.csv"));
}

TEST_F(IoArray, LabelArrays) {
  const auto labels = [&](const std::string& file) { return read_labels(ctx_, folder_.put("l", file)); };
  Labels found = labels(npy("<i8", "(4,)", raw<std::int64_t>({5, -5, INT64_MAX, 5})));
  EXPECT_EQ(found.codes, (std::vector<std::int32_t>{1, 0, 2, 1}));
  found = labels(npy("<f8", "(2, 1)", raw<double>({3, 2})));
  EXPECT_EQ(found.codes, (std::vector<std::int32_t>{1, 0}));
  found = labels(npy("|S3", "(3,)", std::string("dogcat\0\0\0", 9)));
  EXPECT_EQ(std::get<1>(found.classes), (std::vector<std::string>{"", "cat", "dog"}));
  found = labels(npy("<U2", "(2,)", raw<std::uint32_t>({'z', 0xe9, 0x1f600, 0})));
  EXPECT_EQ(std::get<1>(found.classes), (std::vector<std::string>{"z\xc3\xa9", "\xf0\x9f\x98\x80"}));
  found = labels(npy(">U1", "(2,)", big_endian<std::uint32_t>({'b', 'a'})));
  EXPECT_EQ(std::get<1>(found.classes), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace vicinal

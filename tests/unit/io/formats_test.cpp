// Readers of the formats without NumPy's header: vecs, libsvm, the classical k-means files, HDF5, and bfloat16. Good
// files, every kind of bad one, and what tells them apart.
#include "io/hdf5_library.hpp"
#include "io/json_lines.hpp"
#include "io/libsvm.hpp"
#include "io_testing.hpp"

namespace vicinal {
namespace {

using namespace io_testing;

class IoFormats : public ::testing::Test {
 protected:
  Table read(const std::string& name, const std::string& bytes, const ReadOptions& options = {}) {
    return read_table(ctx_, folder_.put(name, bytes), options);
  }
  void refused(const std::string& name, const std::string& bytes, std::initializer_list<std::string_view> words,
               const ReadOptions& options = {}, ErrorCode code = ErrorCode::bad_data) {
    SCOPED_TRACE(name);
    expect_error(code, words, [&] { read(name, bytes, options); });
  }
  static ReadOptions as(FileFormat format) {
    ReadOptions options;
    options.format = format;
    return options;
  }

  Context ctx_ = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{64} << 20});
  Folder folder_;
};

std::string int32s(std::initializer_list<std::int32_t> values) {
  return raw<std::int32_t>(values);
}

const std::string kFvecs = int32s({2}) + raw<float>({1, 2}) + int32s({2}) + raw<float>({3, -4.5});

TEST_F(IoFormats, Vecs) {
  Table table = read("x.fvecs", kFvecs);
  EXPECT_EQ(table.format, FileFormat::fvecs);
  EXPECT_EQ(table.view.dtype(), DType::float32);
  EXPECT_EQ(table.view.row_stride(), 3);  // where they lie
  EXPECT_EQ(values_of(table), (std::vector<double>{1, 2, 3, -4.5}));
  EXPECT_EQ(values_of(read("x.fvecs.gz", gzip(kFvecs))), values_of(table));
  EXPECT_EQ(values_of(read("x.fvecs.xz", xz(kFvecs))), values_of(table));
  const std::string whole = int32s({2, 7, -8, 2, 9, 2147483647});
  table = read("x.ivecs", whole);
  EXPECT_EQ(table.view.dtype(), DType::float64);
  EXPECT_EQ(values_of(table), (std::vector<double>{7, -8, 9, 2147483647}));
  EXPECT_EQ(values_of(read("no-suffix", whole, as(FileFormat::ivecs))), values_of(table));
  const std::string bytes = int32s({3}) + std::string("\1\2\xff", 3) + int32s({3}) + std::string("\0\4\5", 3);
  table = read("no-suffix", bytes);  // nothing else fits
  EXPECT_EQ(table.format, FileFormat::bvecs);
  EXPECT_EQ(table.view.dtype(), DType::uint8);
  EXPECT_EQ(values_of(table), (std::vector<double>{1, 2, 255, 0, 4, 5}));
}

// Chunks of any size join to the same text, and errors name the same line.
TEST_F(IoFormats, JsonLinesInChunks) {
  const std::string text =
      "{\"a\":1,\"b\":\"x\\\"y\"}\n\r\n{\"b\":null,\"a\":-2.5e3}\n{\"a\":true}\n{\"b\":\"\\u00e9\\n\",\"a\":4}";
  const auto delimited = [&](const std::string& json, std::int64_t chunk) {
    const io::Bytes bytes{reinterpret_cast<const unsigned char*>(json.data()), json.size(), nullptr};
    const io::DelimitedJson made = io::delimited_json(ctx_, bytes, "x", {}, INT64_MAX, chunk);
    return std::string(reinterpret_cast<const char*>(made.text.data), made.text.size);
  };
  const std::string wanted = "\"a\",\"b\"\n1,\"x\"\"y\"\n\n-2.5e3,\"\"\ntrue,\"\"\n4,\"\xc3\xa9\n\"\n";
  for (std::int64_t chunk = 1; chunk < 90; chunk += 3) {
    EXPECT_EQ(delimited(text, chunk), wanted) << chunk;
    expect_error(ErrorCode::bad_data, {"'x' line 6", "'c'"}, [&] { delimited(text + "\n{\"c\":1}\n{\"d\":", chunk); });
  }
}

TEST_F(IoFormats, VecsThatAreNone) {
  refused("no-suffix", kFvecs, {"no-suffix", "fvecs or ivecs", "option format"}, {}, ErrorCode::invalid_argument);
  refused("x.fvecs", kFvecs.substr(0, kFvecs.size() - 1), {"x.fvecs", "within row 1", "truncated"});
  refused("x.fvecs", kFvecs.substr(0, 3), {"x.fvecs", "truncated"});
  refused("x.fvecs", int32s({2}) + raw<float>({1, 2}) + int32s({3}) + raw<float>({3, 4}),
          {"row 1 has 3", "row 0 has 2"});
  refused("x.fvecs", int32s({0}), {"row 0 has 0 columns"});
  refused("x.fvecs", int32s({-1, 0, 1}), {"row 0 has -1 columns"});
  refused("x.fvecs", int32s({2147483647, 0}), {"within row 0"});
  refused("x.bvecs", int32s({9}) + "12345678", {"within row 0"});
  refused("x.ivecs", int32s({1, 5, 2, 5}), {"row 1 has 2 columns"});
  refused("x", std::string("\1\2\0\xff", 4) + std::string(40, '\x80'), {"not a format"});
}

TEST_F(IoFormats, LibsvmIsMadeDense) {
  const std::string text = "# made up\n+1 1:0.5 3:-2\n\n-1\t2:1e-3 # behind\n1 \r\n0 3:0";
  const Table table = read("x", text);
  EXPECT_EQ(table.format, FileFormat::libsvm);
  EXPECT_EQ(table.stored_values, 4);
  EXPECT_EQ(values_of(table), (std::vector<double>{0.5, 0, -2, 0, 1e-3, 0, 0, 0, 0, 0, 0, 0}));
  ASSERT_TRUE(table.labels.has_value());
  EXPECT_EQ(std::get<0>(table.labels->classes), (std::vector<std::int64_t>{-1, 0, 1}));
  EXPECT_EQ(table.labels->codes, (std::vector<std::int32_t>{2, 0, 2, 1}));
  EXPECT_EQ(read_labels(ctx_, folder_ / "x").codes, table.labels->codes);
  EXPECT_EQ(read("x", text,
                 [] {
                   ReadOptions options;
                   options.columns = 5;
                   return options;
                 }())
                .view.cols(),
            5);
  EXPECT_EQ(values_of(read("zero-based", "1 0:7\n2 1:8\n")), (std::vector<double>{7, 0, 0, 8}));
  EXPECT_TRUE(read("real", "1.5 1:7\n2.5 1:8\n").labels->is_text());
  const FileInfo info = describe_file(ctx_, folder_.put("x", text));
  EXPECT_EQ(info.arrays.at(0).shape, (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(info.stored_values, 4);
}

TEST_F(IoFormats, LibsvmFaultsAreNamedWhateverTheChunks) {
  const auto fault = [&](const std::string& text, std::initializer_list<std::string_view> words) {
    refused("bad.svm", text, words, as(FileFormat::libsvm));
    for (const std::int64_t chunk : {1, 2, 5}) {
      const io::Bytes bytes{reinterpret_cast<const unsigned char*>(text.data()), text.size(), nullptr, true};
      expect_error(ErrorCode::bad_data, words, [&] { io::read_libsvm(ctx_, bytes, "bad.svm", 0, chunk); });
    }
  };
  fault("1 1:2\n2 3:4 3:5\n", {"bad.svm", "line 2", "'3:5'", "ascend"});
  fault("1 1:2\n2 4:4 3:5\n", {"line 2", "behind index 4"});
  fault("1 1:2\n2 1:x\n", {"line 2", "'1:x'", "no number"});
  fault("1 1:2\n2 1:\n", {"line 2", "'1:'"});
  fault("1 1:2\n\n2 1:nan\n", {"line 3", "not finite"});
  fault("1 1:2\n2 1:1e999\n", {"line 2", "too large"});
  fault("1 1:2\n2 -1:3\n", {"line 2", "'-1:3'", "index"});
  fault("1 1:2\n2 99999999999999:3\n", {"line 2", "2^40"});
  fault("1 1:2\n2 oak\n", {"line 2", "'oak'", "index:value"});
  fault("1 qid:1 1:2\n", {"line 1", "query"});
  fault("1:2 2:3\n", {"line 1", "label"});
  fault("1 1:2\n3 x:4\n2 1:x\n", {"line 2", "'x:4'"});
  fault("1\n2\n", {"no columns"});
  fault("# nothing\n", {"no data rows"});
  ReadOptions narrow;
  narrow.columns = 2;
  refused("x", "1 1:2 3:4\n", {"column 2", "2 columns"}, narrow);
  narrow.columns = -1;
  refused("x", "1 1:2 3:4\n", {"columns is -1"}, narrow, ErrorCode::invalid_argument);
  narrow.columns = 7;
  refused("x", "1,2\n3,4\n", {"csv", "columns"}, narrow, ErrorCode::invalid_argument);
  // A sparse file of a few bytes is a dense table of many.
  refused("x", "1 1:2 900000000000:4\n", {"sparse", "900000000000", "memory limit"}, {}, ErrorCode::over_memory);
  refused("x", "1 1:2\n2 9000000:3\n", {"sparse", "memory limit"}, {}, ErrorCode::over_memory);
}

TEST_F(IoFormats, KmeansFiles) {
  const std::string text = " 1 0.5 2\n 2 -3 4e1 \r\n\n3\t5 6";
  Table table = read("x", text);
  EXPECT_EQ(table.format, FileFormat::kmeans_text);
  EXPECT_EQ(values_of(table), (std::vector<double>{0.5, 2, -3, 40, 5, 6}));
  EXPECT_EQ(describe_file(ctx_, folder_ / "x").arrays.at(0).shape, (std::vector<std::int64_t>{3, 2}));
  // Said to be CSV, or with an option that only CSV has, the first column is one.
  EXPECT_EQ(read("x", text, as(FileFormat::csv)).view.cols(), 3);
  ReadOptions plain;
  plain.header = false;
  EXPECT_EQ(read("x", text, plain).view.cols(), 3);
  for (const char* other : {"1 2\n3 4\n", "0 1\n", "5 1\n6 2\n", "0,1\n1,2\n", "1 a\n2 b\n", "1 2\n2 3\n4 4\n"}) {
    const std::string bytes = other;
    EXPECT_EQ(describe_file(ctx_, folder_.put("y", bytes)).format, FileFormat::csv) << other;
  }
  const std::string binary = int32s({2, 3}) + raw<float>({1, 2, 3, 4, 5, 6});
  table = read("x", binary);
  EXPECT_EQ(table.format, FileFormat::kmeans_binary);
  EXPECT_EQ(values_of(table), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  refused("x", "1 2\n2 3 4\n3 4\n", {"line 2", "3 fields where 2 are"});
  refused("x", "1 2\n3 3\n", {"the id 3 in row 1"}, as(FileFormat::kmeans_text));
  refused("x", "2 2\n3 3\n", {"the id 2 in row 0"}, as(FileFormat::kmeans_text));
  refused("x.kmeans-binary", binary + "z", {"33 bytes", "2 x 3", "needs 32"});
  refused("x.kmeans-binary", int32s({0, 3}), {"above 0"});
  refused("x", int32s({2, 3}) + "oak", {"needs 32"}, as(FileFormat::kmeans_binary));
}

TEST_F(IoFormats, Bfloat16IsReadWhereThatIsSaid) {
  const std::string file = npy("<V2", "(2, 1)", raw<std::uint16_t>({0x3fc0, 0xc000}));
  refused("x.npy", file, {"x.npy", "bfloat16", "dtype"});
  refused("x.npy", npy("|V3", "(1, 1)", "abc"), {"raw records"});
  ReadOptions options;
  options.bfloat16 = true;
  for (const char* type : {"<V2", "|V2"}) {
    const Table table = read("x.npy", npy(type, "(2, 1)", raw<std::uint16_t>({0x3fc0, 0xc000})), options);
    EXPECT_EQ(table.view.dtype(), DType::bfloat16);
    EXPECT_EQ(values_of(table), (std::vector<double>{1.5, -2}));
  }
  EXPECT_EQ(values_of(read("x.npz", zip({{"a.npy", file}}), options)), (std::vector<double>{1.5, -2}));
  EXPECT_EQ(read("x.npy", npy("<f2", "(2, 1)", raw<std::uint16_t>({0x3e00, 0xc000})), options).view.dtype(),
            DType::float16);
  refused("x.npy", npy("|V3", "(1, 1)", "abc"), {"raw records"}, options);
}

TEST_F(IoFormats, CommentsInCsv) {
  ReadOptions options;
  options.comment = '%';
  const std::string text = "% top\na,b\n%x,y\n1,2\n  % \"in pairs\"\n3,\"4\"\n\n%\n5,6\n% last";
  const Table table = read("x.csv", text, options);
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(values_of(table), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  refused("x.csv", text + "\n7,oak\n", {"line 11", "oak"}, options);
  refused("x.csv", "1,2\n#3,4\n5,6\n", {"line 2", "'#3'"});  // not asked for, it is data
  for (const char bad : {'1', '"', '-', '\n', ','}) {
    options.comment = bad;
    options.delimiter = ',';
    refused("x.csv", text, {"comment"}, options, ErrorCode::invalid_argument);
  }
}

TEST_F(IoFormats, FormatsThatAreSaid) {
  refused("x.npy", "1,2\n", {"not an npy file"}, as(FileFormat::npy));
  refused("x", "1,2\n", {"zip"}, as(FileFormat::npz));
  refused("x", "1,2\n", {"not an idx file"}, as(FileFormat::idx));
  refused("x", "1 2\n", {"line 1", "index:value"}, as(FileFormat::libsvm));
  expect_error(ErrorCode::invalid_argument, {"parquet", "kmeans-binary"}, [] { (void)file_format_from("parquet"); });
  EXPECT_EQ(file_format_from("kmeans-text"), FileFormat::kmeans_text);
  EXPECT_EQ(format_of_suffix("a.b/x.FVECS.xz"), FileFormat::fvecs);
  EXPECT_EQ(format_of_suffix("x.h5"), FileFormat::hdf5);
  EXPECT_EQ(format_of_suffix("x.gz"), std::nullopt);
  EXPECT_EQ(format_of_suffix("x"), std::nullopt);
}

class IoHdf5 : public IoFormats {
 protected:
  void SetUp() override {
    try {
      (void)io::hdf5_library("x");
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  /// Made by our writer: a table and its labels.
  std::string file() {
    Table table;
    table.view = TableView(values_.data(), 3, 2);
    table.shape = {3, 2};
    table.labels = encode_labels(std::vector<std::int64_t>{1, 2, 1});
    write_table(ctx_, folder_ / "made.h5", table);
    return folder_.get("made.h5");
  }
  std::vector<double> values_ = {1, 2, 3, 4, 5, 0.1};
};

TEST_F(IoHdf5, MembersAndPacking) {
  const std::string bytes = file();
  EXPECT_EQ(values_of(read("x", bytes)), values_);
  EXPECT_EQ(values_of(read("x", gzip(bytes))), values_);
  EXPECT_EQ(values_of(read("x", xz(bytes))), values_);
  ReadOptions options;
  options.member = "labels";
  EXPECT_EQ(values_of(read("x", bytes, options)), (std::vector<double>{1, 2, 1}));
  options.member = "nothing";
  refused("x", bytes, {"no dataset 'nothing'", "labels, table"}, options, ErrorCode::invalid_argument);
  const FileInfo info = describe_file(ctx_, folder_ / "x");
  ASSERT_EQ(info.arrays.size(), 2U);
  EXPECT_EQ(info.arrays[1].name, "table");
  EXPECT_EQ(info.arrays[1].dtype, "<f8");
  EXPECT_EQ(info.arrays[1].shape, (std::vector<std::int64_t>{3, 2}));
}

TEST_F(IoHdf5, CutFilesAreRefused) {
  const std::string bytes = file();
  for (const std::size_t keep : {std::size_t{8}, std::size_t{90}, bytes.size() / 2, bytes.size() - 1}) {
    refused("cut.h5", bytes.substr(0, keep), {"cut.h5"});
  }
  const Context little = Context::cpu({.threads = 1, .memory_limit = 1000});
  expect_error(ErrorCode::over_memory, {"made.h5"}, [&] { read_table(little, folder_ / "made.h5"); });
}

}  // namespace
}  // namespace vicinal

// Every format to every other and back, bit for bit where the format can hold it, and a refusal where it cannot.
#include <bit>
#include <limits>
#include <random>

#include "core/half.hpp"
#include "io/hdf5_library.hpp"
#include "io/narrow.hpp"
#include "io_testing.hpp"

namespace vicinal {
namespace {

using namespace io_testing;

constexpr FileFormat kFormats[] = {FileFormat::npy,         FileFormat::npz,           FileFormat::csv,
                                   FileFormat::idx,         FileFormat::fvecs,         FileFormat::bvecs,
                                   FileFormat::ivecs,       FileFormat::libsvm,        FileFormat::hdf5,
                                   FileFormat::kmeans_text, FileFormat::kmeans_binary, FileFormat::json_lines};

bool has_hdf5() {
  try {
    (void)io::hdf5_library("x");
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// A table that owns its elements.
template <class T>
struct Owned {
  std::vector<T> elements;
  Table table;
};

template <class T>
std::unique_ptr<Owned<T>> table_of(std::vector<T> elements, DType dtype, std::int64_t d) {
  auto owned = std::make_unique<Owned<T>>();
  owned->elements = std::move(elements);
  const auto n = static_cast<std::int64_t>(owned->elements.size()) / d;
  owned->table.view = TableView(owned->elements.data(), dtype, n, d, d);
  owned->table.shape = {n, d};
  return owned;
}

std::vector<std::uint64_t> bits_of(const Table& table) {
  std::vector<std::uint64_t> bits;
  for (const double value : values_of(table)) bits.push_back(std::bit_cast<std::uint64_t>(value));
  return bits;
}

std::vector<std::uint8_t> bytes() {
  std::vector<std::uint8_t> values(7 * 5);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * 37 % 256);
  values[0] = 255;
  values[4] = 0;  // libsvm leaves out what is 0, but for the last column of row 0
  return values;
}

class IoRoundTrip : public ::testing::Test {
 protected:
  /// Writes, reads what was written, and gives it back.
  Table through(const Table& table, const std::string& name, const WriteOptions& options = {}) {
    write_table(ctx_, folder_ / name, table, options);
    return read_table(ctx_, folder_ / name, reading(format_of_suffix(name).value()));
  }
  static ReadOptions reading(FileFormat format) {
    ReadOptions options;
    options.bfloat16 = format == FileFormat::npy || format == FileFormat::npz;
    return options;
  }
  static std::string name_of_file(const char* stem, FileFormat format, const char* packed = "") {
    return std::string(stem) + "." + std::string(name_of(format)) + packed;
  }

  Context ctx_ = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{256} << 20});
  Folder folder_;
};

TEST_F(IoRoundTrip, EveryFormatToEveryOtherAndBack) {
  const auto source = table_of(bytes(), DType::uint8, 5);
  const std::vector<std::uint64_t> wanted = bits_of(source->table);
  int pairs = 0;
  for (const FileFormat from : kFormats) {
    if (from == FileFormat::hdf5 && !has_hdf5()) continue;
    const Table first = through(source->table, name_of_file("a", from));
    EXPECT_EQ(first.format, from);
    EXPECT_EQ(bits_of(first), wanted) << name_of(from);
    for (const FileFormat to : kFormats) {
      if (to == FileFormat::hdf5 && !has_hdf5()) continue;
      SCOPED_TRACE(std::string(name_of(from)) + " to " + std::string(name_of(to)));
      const Table second = through(first, name_of_file("b", to));
      EXPECT_EQ(second.format, to);
      EXPECT_EQ(bits_of(second), wanted);
      WriteOptions back;
      // A type that the format in between lacks came back wider.
      if (from == FileFormat::npy || from == FileFormat::npz || from == FileFormat::idx || from == FileFormat::hdf5) {
        back.dtype = first.view.dtype();
      }
      const Table third = through(second, name_of_file("c", from), back);
      EXPECT_EQ(bits_of(third), wanted);
      EXPECT_EQ(third.view.dtype(), first.view.dtype());
      EXPECT_EQ(folder_.get(name_of_file("c", from)), folder_.get(name_of_file("a", from)));
      ++pairs;
    }
  }
  EXPECT_EQ(pairs, has_hdf5() ? 144 : 121);
}

/// All of one type: what is hard to hold, and random bits.
template <class T>
std::vector<T> hard_values(std::initializer_list<T> special, const std::function<bool(T)>& finite) {
  std::vector<T> values(special);
  std::mt19937_64 draw(7);
  while (values.size() % 5 != 0 || values.size() < 60) {
    const auto bits = draw();
    T value;
    std::memcpy(&value, &bits, sizeof value);
    if (finite(value)) values.push_back(value);
  }
  return values;
}

/// Through every format: the same numbers where its types hold them, the same elements where it has the type.
template <class T>
void expect_held(Folder& folder, const Context& ctx, const Owned<T>& source,
                 std::initializer_list<FileFormat> holding) {
  const std::vector<std::uint64_t> wanted = bits_of(source.table);
  write_table(ctx, folder / "source.npy", source.table);
  for (const FileFormat format : kFormats) {
    if (format == FileFormat::hdf5 && !has_hdf5()) continue;
    for (const char* packed : {"", ".gz", ".bz2", ".xz"}) {
      const std::string name = "x." + std::string(name_of(format)) + packed;
      SCOPED_TRACE(name + " of " + std::string(name_of(source.table.view.dtype())));
      if (std::find(holding.begin(), holding.end(), format) == holding.end()) {
        expect_error(ErrorCode::bad_data, {"cannot write", "row 0, column"},
                     [&] { write_table(ctx, folder / name, source.table); });
        EXPECT_FALSE(std::filesystem::exists(folder / name));
        continue;
      }
      write_table(ctx, folder / name, source.table);
      ReadOptions reading;
      reading.bfloat16 = format == FileFormat::npy || format == FileFormat::npz;
      const Table back = read_table(ctx, folder / name, reading);
      EXPECT_EQ(bits_of(back), wanted);
      WriteOptions options;
      options.dtype = source.table.view.dtype();
      write_table(ctx, folder / "back.npy", back, options);
      EXPECT_EQ(folder.get("back.npy"), folder.get("source.npy"));
    }
  }
}

using F = FileFormat;

TEST_F(IoRoundTrip, Float16) {
  const auto finite = [](std::uint16_t bits) { return (bits & 0x7c00) != 0x7c00; };
  const auto source = table_of(
      hard_values<std::uint16_t>({0, 0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x7bff, 0xfbff}, finite), DType::float16, 5);
  expect_held(
      folder_, ctx_, *source,
      {F::npy, F::npz, F::csv, F::json_lines, F::idx, F::fvecs, F::libsvm, F::hdf5, F::kmeans_text, F::kmeans_binary});
}

TEST_F(IoRoundTrip, Bfloat16) {
  const auto finite = [](std::uint16_t bits) { return (bits & 0x7f80) != 0x7f80; };
  const auto source = table_of(
      hard_values<std::uint16_t>({0, 0x8000, 1, 0x8001, 0x007f, 0x0080, 0x7f7f, 0xff7f}, finite), DType::bfloat16, 5);
  expect_held(
      folder_, ctx_, *source,
      {F::npy, F::npz, F::csv, F::json_lines, F::idx, F::fvecs, F::libsvm, F::hdf5, F::kmeans_text, F::kmeans_binary});
}

TEST_F(IoRoundTrip, Float32) {
  using Limits = std::numeric_limits<float>;
  const auto source = table_of(
      hard_values<float>({0.1F, -0.0F, Limits::denorm_min(), -Limits::min(), Limits::max(), Limits::lowest(), 0, 1},
                         [](float value) { return std::isfinite(value); }),
      DType::float32, 5);
  expect_held(
      folder_, ctx_, *source,
      {F::npy, F::npz, F::csv, F::json_lines, F::idx, F::fvecs, F::libsvm, F::hdf5, F::kmeans_text, F::kmeans_binary});
}

TEST_F(IoRoundTrip, Float64) {
  using Limits = std::numeric_limits<double>;
  const auto source =
      table_of(hard_values<double>({0.1, -0.0, Limits::denorm_min(), -Limits::min(), Limits::max(), Limits::lowest(), 0,
                                    5e-324, 9007199254740993.0, 1.7976931348623157e308},
                                   [](double value) { return std::isfinite(value); }),
               DType::float64, 5);
  expect_held(folder_, ctx_, *source,
              {F::npy, F::npz, F::csv, F::json_lines, F::idx, F::libsvm, F::hdf5, F::kmeans_text});
}

TEST_F(IoRoundTrip, WholeNumbersInInt32) {
  const auto source = table_of<double>({-2147483648.0, 2147483647, 0, -1, 256, 1, 2, 3, 4, 5}, DType::float64, 5);
  const Table back = through(source->table, "x.ivecs");
  EXPECT_EQ(bits_of(back), bits_of(source->table));
  // Beyond it, between it, or a zero with a sign.
  for (const double bad : {2147483648.0, 0.5, -0.0, std::numeric_limits<double>::quiet_NaN()}) {
    source->elements[7] = bad;
    expect_error(ErrorCode::bad_data, {"row 1, column 2", "int32"},
                 [&] { write_table(ctx_, folder_ / "y.ivecs", source->table); });
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "y.ivecs"));
}

TEST_F(IoRoundTrip, LossyRoundsButDoesNotInvent) {
  const auto source = table_of<double>({0.1, 2.5, 254.5, 3}, DType::float64, 2);
  WriteOptions lossy;
  lossy.lossy = true;
  EXPECT_EQ(values_of(through(source->table, "x.bvecs", lossy)), (std::vector<double>{0, 2, 254, 3}));
  EXPECT_EQ(values_of(through(source->table, "x.fvecs", lossy)), (std::vector<double>{0.1F, 2.5, 254.5, 3}));
  source->elements[3] = 1e39;
  for (const char* name : {"y.bvecs", "y.fvecs"}) {
    expect_error(ErrorCode::bad_data, {"row 1, column 1", "1e+39"},
                 [&] { write_table(ctx_, folder_ / name, source->table, lossy); });
  }
  lossy.dtype = DType::float16;
  expect_error(ErrorCode::bad_data, {"row 1, column 1", "float16"},
               [&] { write_table(ctx_, folder_ / "y.npy", source->table, lossy); });
  for (const char* name : {"y.csv", "y.libsvm", "y.kmeans-text"}) {
    source->elements[3] = std::numeric_limits<double>::infinity();
    expect_error(ErrorCode::bad_data, {"row 1, column 1", "inf"},
                 [&] { write_table(ctx_, folder_ / name, source->table); });
  }
}

TEST_F(IoRoundTrip, NarrowingIsRoundedOnce) {
  const auto brain = [](double value) { return io::brain_bits(value); };
  EXPECT_EQ(brain(1.0), 0x3f80);
  EXPECT_EQ(brain(0x1.01p0), 0x3f80);            // halfway, to even
  EXPECT_EQ(brain(0x1.03p0), 0x3f82);            // halfway, to even
  EXPECT_EQ(brain(0x1.01p0 + 0x1p-52), 0x3f81);  // float32 would round to the middle first
  EXPECT_EQ(brain(-(0x1.01p0 + 0x1p-52)), 0xbf81);
  EXPECT_EQ(brain(0x1.03p0 - 0x1p-52), 0x3f81);
  EXPECT_EQ(brain(0x1.ffp127), 0x7f80);
  EXPECT_EQ(brain(0x1p-134), 0);  // half the smallest, to even
  EXPECT_EQ(brain(0x1.0000000000001p-134), 1);
}

TEST_F(IoRoundTrip, ShapesAndLabels) {
  const auto source = table_of(bytes(), DType::uint8, 5);
  source->table.shape = {7, 5, 1};
  EXPECT_EQ(through(source->table, "x.idx").shape, (std::vector<std::int64_t>{7, 5, 1}));
  EXPECT_EQ(through(source->table, "x.npy").shape, (std::vector<std::int64_t>{7, 5, 1}));
  EXPECT_EQ(through(source->table, "x.csv").shape, (std::vector<std::int64_t>{7, 5}));
  source->table.labels = encode_labels(std::vector<std::int64_t>{3, -1, 3, 0, 5, 5, 3});
  const auto codes = source->table.labels->codes;
  EXPECT_EQ(through(source->table, "x.libsvm").labels->codes, codes);
  for (const char* name : {"x.npz", "x.hdf5"}) {
    if (std::string_view(name) == "x.hdf5" && !has_hdf5()) continue;
    EXPECT_EQ(bits_of(through(source->table, name)), bits_of(source->table));
    EXPECT_EQ(read_labels(ctx_, folder_ / name, "labels").codes, codes);
  }
  write_table(ctx_, folder_ / "x.csv", source->table);
  ReadOptions by_name;
  by_name.label = "label";
  EXPECT_EQ(read_table(ctx_, folder_ / "x.csv", by_name).labels->codes, codes);
  expect_error(ErrorCode::invalid_argument, {"npy", "labels"},
               [&] { write_table(ctx_, folder_ / "y.npy", source->table); });
  source->table.labels = encode_labels(std::vector<std::string>{"a", "b", "a", "#c", " d", "e\"f", "g,h"});
  source->table.columns = {"#x", "y,z", "1", " u ", "v\nw"};
  write_table(ctx_, folder_ / "x.csv", source->table);
  const Table back = read_table(ctx_, folder_ / "x.csv", by_name);
  EXPECT_EQ(back.columns, source->table.columns);
  EXPECT_EQ(std::get<1>(back.labels->classes), std::get<1>(source->table.labels->classes));
  EXPECT_EQ(bits_of(back), bits_of(source->table));
  for (const char* name : {"y.npz", "y.libsvm"}) {
    expect_error(ErrorCode::invalid_argument, {"labels", "text"},
                 [&] { write_table(ctx_, folder_ / name, source->table); });
  }
}

TEST_F(IoRoundTrip, TheSameBytesForAnyNumberOfThreads) {
  std::vector<double> values(8000 * 7);
  std::mt19937_64 draw(3);
  for (double& value : values) value = static_cast<double>(static_cast<std::int64_t>(draw())) * 0x1p-40;
  const auto source = table_of(values, DType::float64, 7);
  for (const char* name : {"t.csv", "t.jsonl.bz2", "t.libsvm.gz", "t.npy", "t.npz", "t.idx.xz"}) {
    std::string first;
    for (const int threads : {1, 2, 3, 7}) {
      write_table(Context::cpu({.threads = threads}), folder_ / name, source->table);
      if (first.empty()) first = folder_.get(name);
      EXPECT_TRUE(folder_.get(name) == first) << name << " on " << threads;
    }
    EXPECT_TRUE(bits_of(read_table(ctx_, folder_ / name)) == bits_of(source->table)) << name;
  }
}

TEST_F(IoRoundTrip, StridedTablesAndBlockSources) {
  const auto values = bytes();
  Table columns;  // the transposed table, by its strides
  columns.view = TableView(values.data(), DType::uint8, 5, 7, 1, 5);
  columns.shape = {5, 7};
  Table blocks;
  blocks.view = TableView::blocks(DType::uint8, 7, 5, [&](std::int64_t begin, std::int64_t end, void* rows) {
    std::memcpy(rows, values.data() + begin * 5, static_cast<std::size_t>((end - begin) * 5));
  });
  for (const Table* table : {&columns, &blocks}) {
    for (const FileFormat format : kFormats) {
      if (format == FileFormat::hdf5 && !has_hdf5()) continue;
      EXPECT_EQ(bits_of(through(*table, name_of_file("s", format))), bits_of(*table)) << name_of(format);
    }
  }
}

TEST_F(IoRoundTrip, WhatCannotBeWritten) {
  const auto source = table_of(bytes(), DType::uint8, 5);
  const auto refused = [&](const char* name, const WriteOptions& options,
                           std::initializer_list<std::string_view> words) {
    expect_error(ErrorCode::invalid_argument, words,
                 [&] { write_table(ctx_, folder_ / name, source->table, options); });
  };
  refused("x.parquet", {}, {"x.parquet", ".fvecs"});
  refused("x.gz", {}, {"x.gz"});
  WriteOptions halves;
  halves.dtype = DType::float16;
  refused("x.idx", halves, {"idx holds", "not float16"});
  refused("x.fvecs", halves, {"fvecs holds float32", "not float16"});
  refused("x.csv", halves, {"csv", "not float16"});
  WriteOptions zipped;
  zipped.compression = Compression::zip;
  refused("x.csv", zipped, {"x.csv", "zip is only read"});
  expect_error(ErrorCode::io, {"none"}, [&] { write_table(ctx_, folder_ / "none/x.npy", source->table); });
  Table one = source->table;
  one.view = one.view.slice(0, 1);
  one.shape = {1, 5};
  expect_error(ErrorCode::invalid_argument, {"two rows"}, [&] { write_table(ctx_, folder_ / "x.kmeans-text", one); });
  CpuOptions options;
  options.cancel.cancel();
  const Context cancelled = Context::cpu(options);
  for (const char* name : {"x.npy", "x.npz", "x.csv.gz", "x.jsonl.bz2", "x.bvecs.xz"}) {
    expect_error(ErrorCode::cancelled, {}, [&] { write_table(cancelled, folder_ / name, source->table); });
  }
  EXPECT_TRUE(folder_.names().empty());
  const Context little = Context::cpu({.threads = 1, .memory_limit = 1 << 20});
  expect_error(ErrorCode::over_memory, {"xz"}, [&] { write_table(little, folder_ / "x.npy.xz", source->table); });
  expect_error(ErrorCode::over_memory, {"bzip2"}, [&] { write_table(little, folder_ / "x.npy.bz2", source->table); });
  EXPECT_TRUE(folder_.names().empty());
}

// A row that a reader would take for the names of the columns gets names above it.
TEST_F(IoRoundTrip, ARowLikeAHeader) {
  const std::vector<double> values = {0, 1, 2, 5, 6, 7};
  Table table;
  table.view = TableView(values.data(), 2, 3);
  write_table(ctx_, folder_ / "t.csv", table);
  const Table back = read_table(ctx_, folder_ / "t.csv");
  EXPECT_EQ(values_of(back), values);
  EXPECT_EQ(back.columns, (std::vector<std::string>{"x0", "x1", "x2"}));
}

TEST(IoWrittenTables, IdsAndTheNameOfLabelsStay) {
  const Context ctx = Context::cpu({.threads = 2});
  const Folder folder;
  ReadOptions reading;
  reading.id = "who";
  reading.label = "kind";
  const std::string text = "who,a,b,kind\n\"x, \u00e9\",1,2,k\nz,3,4.5,l\n";
  const Table table = read_table(ctx, folder.put("t.csv", text), reading);
  write_table(ctx, folder / "again.csv", table);
  EXPECT_EQ(folder.get("again.csv"), text);
  write_table(ctx, folder / "t.jsonl", table);
  EXPECT_EQ(
      folder.get("t.jsonl"),
      "{\"who\":\"x, \u00e9\",\"a\":1,\"b\":2,\"kind\":\"k\"}\n{\"who\":\"z\",\"a\":3,\"b\":4.5,\"kind\":\"l\"}\n");
  write_table(ctx, folder / "t.npz", table, {.drop_labels = true});
  EXPECT_EQ(bits_of(read_table(ctx, folder / "t.npz")), bits_of(table));
  EXPECT_EQ(std::get<1>(read_labels(ctx, folder / "t.npz", "row_ids").classes),
            (std::vector<std::string>{"x, \u00e9", "z"}));
  expect_error(ErrorCode::invalid_argument, {"npy", "no place for the ids"},
               [&] { write_table(ctx, folder / "t.npy", table, {.drop_labels = true}); });
  ReadOptions nameless;
  nameless.id = "1";
  write_table(ctx, folder / "n.csv", read_table(ctx, folder.put("u.csv", "1,7\n2,8\n"), nameless));
  EXPECT_EQ(folder.get("n.csv"), "id,x0\n7,1\n8,2\n");
}

}  // namespace
}  // namespace vicinal

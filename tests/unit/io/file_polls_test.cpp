// Cancel polls of reading and writing files, counted: each long loop polls at least as often as its work, divided by
// the distance between two polls, says. Nothing here takes time.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "counted_polls.hpp"
#include "io/bzip2.hpp"
#include "io/csv.hpp"
#include "io/hdf5.hpp"
#include "io/hdf5_library.hpp"
#include "io/id_array.hpp"
#include "io/inflate.hpp"
#include "io/json_lines.hpp"
#include "io/kmeans_files.hpp"
#include "io/libsvm.hpp"
#include "io/npz.hpp"
#include "io/packed_file.hpp"
#include "io/spool.hpp"
#include "io/summary.hpp"
#include "io/vecs.hpp"
#include "io/xz.hpp"
#include "vicinal/io.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kManyPolled = std::int64_t{2} << 16;  // twice what is between two looks of a core::Poll

io::Bytes polled_bytes(const std::string& text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size(), nullptr};
}

std::string polled_file(const std::string& name) {
  return ::testing::TempDir() + "vicinal_polls_" + name;
}

/// Polls while a file of this text is read.
template <class Read>
std::int64_t polls_reading(const std::string& text, const Read& read) {
  const std::string path = ::testing::TempDir() + "vicinal_polls_line.txt";
  std::ofstream(path, std::ios::binary) << text;
  const Context ctx = Context::cpu({.threads = 1});
  const std::int64_t found = polls_of([&] { read(ctx, path); });
  std::filesystem::remove(path);
  return found;
}

// A row, a field or a line may be all of a file: it is scanned in blocks of 4 MiB. How often it is scanned, each says.
TEST(Polls, TextWithoutLineEnds) {
  constexpr std::int64_t kBlock = std::int64_t{4} << 20;
  constexpr std::int64_t kBlocks = 4;
  std::string row;
  for (std::int64_t i = 0; i < kBlocks * kBlock / 8; ++i) row += "1234567,";
  const std::string text = row + "1\n" + row + "1\n";
  const io::Bytes bytes = polled_bytes(text);
  const Context ctx = Context::cpu({.threads = 1});
  // The first records: where they end, and their fields; then every column for a header.
  const std::int64_t layout = polls_of([&] { io::lay_out_csv(ctx, bytes, "x", {}); });
  EXPECT_GE(layout, 2 * kBlocks + kBlocks * kBlock / 8 / (1 << 16));
  // One chunk of two rows: quotes, line ends and numbers are looked for.
  const std::int64_t reading = polls_of([&] { io::read_csv(ctx, bytes, "x", {}, 16 * kBlocks * kBlock); });
  EXPECT_GE(reading - layout, 3 * 2 * kBlocks);

  const std::string blanks(kBlocks * kBlock + 1, ' ');
  const auto labels = [](const Context& context, const std::string& path) { read_labels(context, path); };
  EXPECT_GE(polls_reading("a\n" + blanks + "\nb\n", labels), 2 * kBlocks);
  constexpr std::int64_t kLines = std::int64_t{1} << 20;  // read in one loop, which polls at every 65,536th
  EXPECT_GE(polls_reading("a\n" + std::string(kLines, '\n') + "b\n", labels) - polls_reading("a\n\nb\n", labels),
            kLines / (1 << 16));
  const auto libsvm = [](const Context& context, const std::string& path) {
    ReadOptions options;
    options.format = FileFormat::libsvm;
    read_table(context, path, options);
  };
  EXPECT_GE(polls_reading("1 1:2" + blanks + "2:3\n", libsvm), 6 * kBlocks);
}

// Of JSON every value is looked at for the columns, then read and written; a file of one line polls, too. Blank lines
// are lines.
TEST(Polls, JsonLines) {
  constexpr std::int64_t kValues = std::int64_t{1} << 18;
  constexpr std::int64_t kStep = std::int64_t{1} << 14;
  const Context ctx = Context::cpu({.threads = 1});
  std::string line = "[1";
  for (std::int64_t i = 1; i < kValues; ++i) line += ",1";
  line += "]\n";
  const auto polls = [&](const std::string& text) {
    return polls_of([&] { (void)io::delimited_json(ctx, polled_bytes(text), "x", {}); });
  };
  EXPECT_GE(polls(line), 3 * kValues / kStep);
  constexpr std::int64_t kLines = 1 << 17;
  const std::string blank(kLines, '\n');
  EXPECT_GE(polls("[1]\n" + blank) - polls("[1]\n"), kLines / 1024);
  EXPECT_GE(polls_of([&] { (void)io::count_json_rows(ctx, polled_bytes(blank)); }), kLines / kStep);
}

// A row's pairs are checked, then put into a row of zeros, which is filled in steps.
TEST(Polls, PairsOfLibsvm) {
  constexpr std::int64_t kPairs = std::int64_t{1} << 18;  // between two polls
  const Context ctx = Context::cpu({.threads = 1});
  std::string line = "0";
  for (std::int64_t i = 1; i < kPairs; ++i) line += " " + std::to_string(i) + ":1";
  line += " " + std::to_string(2 * (std::int64_t{1} << 22)) + ":1\n";
  const std::int64_t checking = polls_of([&] { (void)io::libsvm_shape(ctx, polled_bytes(line), "x"); });
  EXPECT_GE(checking, 1 + 1);  // the task, and the pairs
  // The task, its first row, half of the zeros and the pairs.
  EXPECT_GE(polls_of([&] { (void)io::read_libsvm(ctx, polled_bytes(line), "x"); }), checking + 4);
  // Labels that are all 0 are no labels of the table; asked for, they are looked up and given their codes.
  constexpr std::int64_t kRows = 1 << 16;
  constexpr std::int64_t kStep = 1 << 14;
  std::string zeros;
  for (std::int64_t i = 0; i < kRows; ++i) zeros += "0 1:1\n";
  const auto table = [](const Context& context, const std::string& path) { read_table(context, path); };
  const auto labels = [](const Context& context, const std::string& path) { read_labels(context, path); };
  EXPECT_GE(polls_reading(zeros, labels) - polls_reading(zeros, table), 2 * kRows / kStep);
}

TEST(Polls, KMeansText) {
  constexpr std::int64_t kLines = 1 << 12;
  const Context ctx = Context::cpu({.threads = 1});
  std::string text;
  for (std::int64_t i = 0; i < kLines; ++i) text += std::to_string(i) + " 1\n";
  EXPECT_GE(polls_of([&] { EXPECT_TRUE(io::is_kmeans_text(ctx, polled_bytes(text))); }), kLines - 1);
  ReadOptions reading;
  reading.header = false;
  reading.delimiter = ' ';
  const std::int64_t as_csv = polls_of([&] { (void)io::read_csv(ctx, polled_bytes(text), "x", reading); });
  EXPECT_GE(polls_of([&] { (void)io::read_kmeans_text(ctx, polled_bytes(text), "x"); }), as_csv + 1);
}

TEST(Polls, RowsOfVecs) {
  const Context ctx = Context::cpu({.threads = 1});
  std::string rows;
  for (std::int64_t i = 0; i < kManyPolled; ++i) rows += std::string("\1\0\0\0\0\0\0\0", 8);
  EXPECT_GE(polls_of([&] { EXPECT_TRUE(io::is_vecs(ctx, polled_bytes(rows), FileFormat::ivecs)); }), 2);
}

TEST(Polls, ASummaryOfText) {
  constexpr std::int64_t kBlock = std::int64_t{1} << 19;
  constexpr std::int64_t kBlocks = 8;
  const Context ctx = Context::cpu({.threads = 1});
  const auto summary = [](const Context& context, const std::string& path) {
    ReadOptions reading;
    reading.format = FileFormat::csv;
    (void)io::summarize_text(context, path, reading, 0);
  };
  std::string row(1000, 'a');
  row += ",1\n";
  std::string text;
  while (std::ssize(text) < kBlocks * kBlock) text += row;
  EXPECT_GE(polls_reading(text, summary) - polls_reading("a,1\na,2\n", summary), kBlocks - 1);
}

// What is packed is written in steps of 16 KiB, and read in steps of a MiB, or a quarter of one.
TEST(Polls, PackedFiles) {
  constexpr std::int64_t kMebibytes = 4;
  const Context ctx = Context::cpu({.threads = 1});
  const std::string text(kMebibytes << 20, 'a');
  const auto packed = [&](Compression compression) {
    const std::string path = polled_file("packed");
    EXPECT_GE(polls_of([&] {
                io::PackedFile file(ctx, path, compression);
                file.write(text);
                file.commit();
              }),
              (kMebibytes << 20) / (1 << 14) + 1);
    const io::Bytes bytes = io::open_file(ctx, path);
    std::filesystem::remove(path);
    return bytes;
  };
  const io::Bytes gzip = packed(Compression::gzip);
  EXPECT_GE(polls_of([&] { (void)io::inflate_gzip(ctx, gzip, "x", UINT64_MAX); }), kMebibytes);
  const io::Bytes xz = packed(Compression::xz);
  EXPECT_GE(polls_of([&] { (void)io::decode_xz(ctx, xz, "x", UINT64_MAX); }), kMebibytes);
  const io::Bytes bzip2 = packed(Compression::bzip2);
  EXPECT_GE(polls_of([&] { (void)io::decode_bzip2(ctx, bzip2, "x", UINT64_MAX); }), 4 * kMebibytes);
}

TEST(Polls, ArraysOfAnArchive) {
  const Context ctx = Context::cpu({.threads = 1});
  const double value = 1;
  const std::vector<NamedArray> arrays(3, {"", {&value, "<f8", {1}}});
  std::vector<NamedArray> named = arrays;
  for (std::size_t i = 0; i < named.size(); ++i) named[i].name = std::string(1, static_cast<char>('a' + i));
  const std::string path = polled_file("archive.npz");
  // Of each array its check sum, and its two headers, content and entry of the directory; the directory's end.
  EXPECT_GE(polls_of([&] {
              io::PackedFile file(ctx, path, Compression::none);
              io::write_npz_members(file, named);
              file.commit();
            }),
            3 * (1 + 4) + 1 + 1);
  const io::Bytes archive = io::open_file(ctx, path);
  std::filesystem::remove(path);
  EXPECT_GE(polls_of([&] { (void)io::list_npz(ctx, archive, "x"); }), 1 + 3);
}

TEST(Polls, DatasetsOfHdf5) {
  try {
    (void)io::hdf5_library("x");
  } catch (const Error&) {
    GTEST_SKIP() << "no libhdf5";
  }
  const Context ctx = Context::cpu({.threads = 1});
  constexpr std::int64_t kRow = std::int64_t{8} << 20;  // bytes that are read between two polls
  const std::vector<unsigned char> values(3 * kRow);
  const std::vector<NamedArray> arrays = {{"long", {values.data(), "|u1", {3, kRow}}},
                                          {"short", {values.data(), "|u1", {3, 1}}}};
  io::Bytes file;
  EXPECT_GE(polls_of([&] { file = io::make_hdf5(ctx, arrays, "x"); }), 2);
  const std::int64_t listing = polls_of([&] { (void)io::list_hdf5(ctx, file, "x"); });
  EXPECT_GE(listing, 2);
  EXPECT_GE(polls_of([&] { (void)io::read_hdf5(ctx, file, "x", "long", 2); }), listing + 3);
}

// A block source is asked by one thread.
TEST(Polls, BlocksThatAreWritten) {
  constexpr std::int64_t kElements = std::int64_t{1} << 18;  // between two polls
  const Context ctx = Context::cpu({.threads = 1});
  const std::vector<unsigned char> values(3 * kElements);
  Table table;
  table.view = TableView(values.data(), 3 * kElements, 1);
  const std::string path = polled_file("blocks.npz");
  const std::int64_t writing = polls_of([&] { write_table(ctx, path, table); });
  table.view = TableView::blocks(DType::uint8, 3 * kElements, 1, [&](std::int64_t begin, std::int64_t end, void* to) {
    std::memcpy(to, values.data() + begin, static_cast<std::size_t>(end - begin));
  });
  EXPECT_GE(polls_of([&] { write_table(ctx, path, table); }), writing + 3);
  std::filesystem::remove(path);
}

RowIds polled_ids(const std::string& id) {
  RowIds ids;
  for (std::int64_t i = 0; i < kManyPolled; ++i) ids.add(id);
  return ids;
}

TEST(Polls, ArraysOfIds) {
  const Context ctx = Context::cpu({.threads = 1});
  const RowIds texts = polled_ids("a");
  EXPECT_GE(polls_of([&] { io::IdArray::check(ctx, "x", texts); }), 2);
  EXPECT_GE(polls_of([&] { (void)io::IdArray(ctx, "x", texts); }), 2 + 2);
  const RowIds numbers = polled_ids("1");
  EXPECT_GE(polls_of([&] { (void)io::IdArray(ctx, "x", numbers); }), 2);
}

TEST(Polls, GraphsOfOtherTypes) {
  const Context ctx = Context::cpu({.threads = 1});
  NeighborGraph graph;
  graph.rows = graph.table_rows = kManyPolled;
  graph.k = 1;
  graph.ids.assign(static_cast<std::size_t>(kManyPolled), 1);
  graph.distances.assign(static_cast<std::size_t>(kManyPolled), 1);
  const std::string path = polled_file("graph.npz");
  const auto polls = [&](GraphLayout layout, DType distances) {
    return polls_of([&] { write_graph(ctx, path, graph, {.layout = layout, .distances = distances}); });
  };
  EXPECT_GE(polls(GraphLayout::lists, DType::float32), 2);
  // Ids and where each row begins.
  EXPECT_GE(polls(GraphLayout::scipy, DType::float64), 2 + 2);
  std::filesystem::remove(path);
}

// A pipe has room for 64 KiB, and its end is read, too.
TEST(Polls, APipe) {
  constexpr std::int64_t kRoom = 1 << 16;
  constexpr std::int64_t kPieces = 8;
  const std::string path = polled_file("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path, std::ios::binary) << std::string(kPieces * kRoom, 'a'); });
  const Context ctx = Context::cpu({.threads = 1});
  io::Bytes bytes;
  const std::int64_t polls = polls_of([&] { bytes = io::open_file(ctx, path); });
  writer.join();
  std::filesystem::remove(path);
  EXPECT_EQ(static_cast<std::int64_t>(bytes.size), kPieces * kRoom);
  EXPECT_GE(polls, kPieces + 1);
}

// A spool is written in steps of 4 MiB, and read in steps of 1 MiB.
TEST(Polls, ASpool) {
  constexpr std::int64_t kMebibytes = 8;
  const Context ctx = Context::cpu({.threads = 1});
  io::Spool spool(ctx, polled_file("spool"));
  const std::string text(kMebibytes << 20, 'a');
  EXPECT_GE(polls_of([&] { spool.write(text.data(), text.size()); }), kMebibytes / 4);
  EXPECT_GE(polls_of([&] { spool.read([](std::string_view) {}); }), kMebibytes);
}

}  // namespace
}  // namespace vicinal

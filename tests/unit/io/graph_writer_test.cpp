// GraphWriter: the bytes of write_graph, whatever the batches; and nothing is left behind where a graph is not
// complete.
#include "io/graph_writer.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "io_testing.hpp"

namespace vicinal {
namespace {

using io::GraphWriter;
using io_testing::expect_error;
using io_testing::Folder;

/// Lists of 0 to 4 neighbors.
NeighborGraph lists_of(std::int64_t rows) {
  NeighborGraph graph;
  graph.rows = rows;
  graph.table_rows = 1000;
  graph.offsets = {0};
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t rank = 0; rank < (row * 7) % 5; ++rank) {
      graph.ids.push_back((row * 31 + rank) % 1000);
      graph.distances.push_back(0.1 * static_cast<double>(rank) + static_cast<double>(row));
    }
    graph.offsets.push_back(static_cast<std::int64_t>(graph.ids.size()));
  }
  return graph;
}

NeighborGraph part_of(const NeighborGraph& graph, std::int64_t first, std::int64_t rows) {
  NeighborGraph part;
  part.rows = rows;
  part.table_rows = graph.table_rows;
  part.offsets = {0};
  for (std::int64_t row = first; row < first + rows; ++row) {
    part.ids.insert(part.ids.end(), graph.ids_of(row).begin(), graph.ids_of(row).end());
    part.distances.insert(part.distances.end(), graph.distances_of(row).begin(), graph.distances_of(row).end());
    part.offsets.push_back(static_cast<std::int64_t>(part.ids.size()));
  }
  return part;
}

TEST(GraphWriter, WritesTheBytesOfWriteGraph) {
  const Folder folder;
  const Context ctx = Context::cpu();
  for (const std::int64_t rows : {1, 5, 37, 20000}) {
    const NeighborGraph graph = lists_of(rows);
    for (const char* const name : {"g.npz", "g.csv", "g.NPZ"}) {
      write_graph(folder / name, graph);
      const std::string expected = folder.get(name);
      for (const std::int64_t batch : {std::int64_t{1}, std::int64_t{3}, std::int64_t{9000}, rows}) {
        if (batch > rows || rows / batch > 20000 / 3) continue;
        GraphWriter writer(ctx, folder / name);
        for (std::int64_t first = 0; first < rows; first += batch) {
          writer.add(first, part_of(graph, first, std::min(batch, rows - first)));
        }
        EXPECT_EQ(folder.get(name), expected);  // still the old one
        writer.commit();
        EXPECT_EQ(folder.get(name), expected) << name << ", " << rows << " rows by " << batch;
      }
      std::filesystem::remove(folder / name);
    }
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(GraphWriter, WritesTheBytesOfWriteGraphInEveryLayout) {
  const Folder folder;
  const Context ctx = Context::cpu();
  const std::int64_t rows = 20000;
  NeighborGraph graph = lists_of(rows);
  for (const std::int64_t table_rows : {std::int64_t{1000}, std::int64_t{1} << 31}) {  // int32 and int64 indices
    graph.table_rows = table_rows;
    for (const GraphLayout layout : {GraphLayout::lists, GraphLayout::scipy}) {
      for (const DType distances : {DType::float64, DType::float32}) {
        const GraphWriteOptions options{.layout = layout, .distances = distances};
        write_graph(ctx, folder / "whole.npz", graph, options);
        GraphWriter writer(ctx, folder / "parts.npz", options);
        for (std::int64_t first = 0; first < rows; first += 7777) {
          writer.add(first, part_of(graph, first, std::min<std::int64_t>(7777, rows - first)));
        }
        writer.commit();
        EXPECT_EQ(folder.get("parts.npz"), folder.get("whole.npz")) << name_of(distances) << ", " << table_rows;
      }
    }
  }
}

RowIds ids_of(std::int64_t rows, const std::string& before) {
  RowIds ids;
  for (std::int64_t row = 0; row < rows; ++row) ids.add(before + std::to_string(row));
  return ids;
}

TEST(GraphWriter, NamesRowsByTheirIds) {
  const Folder folder;
  const Context ctx = Context::cpu();
  const NeighborGraph graph = lists_of(37);
  std::vector<std::int64_t> numbers;
  for (std::int64_t row = 0; row < graph.rows; ++row) numbers.push_back(2 * row);
  const RowIds texts = ids_of(80, "a,\u00e9");
  const RowIds whole = ids_of(1000, "-1");
  const GraphWriteOptions options{.rows = numbers, .row_ids = &texts, .table_ids = &whole};
  const auto write_parts = [&](const std::string& name, const GraphWriteOptions& how) {
    GraphWriter writer(ctx, folder / name, how);
    for (std::int64_t first = 0; first < graph.rows; first += 10) {
      writer.add(first, part_of(graph, first, std::min<std::int64_t>(10, graph.rows - first)));
    }
    writer.commit();
    return folder.get(name);
  };
  for (const char* const name : {"g.csv", "g.npz"}) {
    write_graph(ctx, folder / name, graph, options);
    const std::string expected = folder.get(name);
    EXPECT_EQ(write_parts(name, options), expected);
  }
  EXPECT_NE(folder.get("g.csv").find("\n\"a,\u00e92\",1,-132,1.1\n"), std::string::npos);
  const Labels rows = read_labels(ctx, folder / "g.npz", "row_ids");
  EXPECT_EQ(rows.name_of(rows.codes[36]), "a,\u00e972");
  const Labels table = read_labels(ctx, folder / "g.npz", "table_ids");
  EXPECT_EQ(table.codes.size(), 1000U);
  EXPECT_EQ(table.name_of(table.codes[999]), "-1999");
  const GraphWriteOptions matrix{.layout = GraphLayout::scipy, .table_ids = &whole};
  write_graph(ctx, folder / "g.npz", graph, matrix);
  EXPECT_EQ(read_labels(ctx, folder / "g.npz", "table_ids").codes, table.codes);
  const RowIds few = ids_of(72, "x");
  expect_error(ErrorCode::invalid_argument, {"row_ids: 72"},
               [&] { write_graph(ctx, folder / "g.npz", graph, {.rows = numbers, .row_ids = &few}); });
  expect_error(ErrorCode::invalid_argument, {"table_ids: 72"}, [&] { write_parts("g.csv", {.table_ids = &few}); });
  RowIds wild;
  for (std::int64_t row = 0; row < graph.rows; ++row) wild.add(row == 5 ? "\xed\xa0\x80" : "ok");
  expect_error(ErrorCode::bad_data, {"row 5", "UTF-8"}, [&] { write_parts("g.npz", {.row_ids = &wild}); });
}

TEST(GraphWriter, RefusesWhatALayoutHasNoPlaceFor) {
  const Folder folder;
  const Context ctx = Context::cpu();
  const std::vector<std::int64_t> numbers = {3, 4};
  const GraphWriteOptions matrix{.layout = GraphLayout::scipy};
  const GraphWriteOptions numbered{.layout = GraphLayout::scipy, .rows = numbers};
  const GraphWriteOptions narrow{.distances = DType::float32};
  expect_error(ErrorCode::invalid_argument, {"from 0 on"}, [&] { GraphWriter(ctx, folder / "g.npz", numbered); });
  expect_error(ErrorCode::invalid_argument, {"g.csv"}, [&] { GraphWriter(ctx, folder / "g.csv", matrix); });
  expect_error(ErrorCode::invalid_argument, {"g.csv"}, [&] { GraphWriter(ctx, folder / "g.csv", narrow); });
  expect_error(ErrorCode::invalid_argument, {"uint8"},
               [&] { GraphWriter(ctx, folder / "g.npz", {.distances = DType::uint8}); });
  {
    GraphWriter writer(ctx, folder / "g.npz", narrow);
    NeighborGraph lists = lists_of(3);
    lists.distances.back() = 1e39;
    writer.add(0, lists_of(7));
    expect_error(ErrorCode::bad_data, {"row 9 ", "float32"}, [&] { writer.add(7, lists); });
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(GraphWriter, LeavesNothingWithoutCommit) {
  const Folder folder;
  const Context ctx = Context::cpu();
  folder.put("g.npz", "old");
  for (const char* const name : {"g.npz", "g.csv"}) {
    GraphWriter writer(ctx, folder / name);
    writer.add(0, lists_of(10));
    EXPECT_LE(folder.names().size(), 2U);  // the output's temporary alone has a name
  }
  EXPECT_EQ(folder.get("g.npz"), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"g.npz"});
}

TEST(GraphWriter, RefusesWhatComesOutOfTurn) {
  const Folder folder;
  const Context ctx = Context::cpu();
  GraphWriter writer(ctx, folder / "g.npz");
  writer.add(0, lists_of(4));
  expect_error(ErrorCode::invalid_argument, {"4"}, [&] { writer.add(0, lists_of(4)); });
  NeighborGraph broken = lists_of(4);
  broken.ids.pop_back();
  expect_error(ErrorCode::invalid_argument, {"ids"}, [&] { writer.add(4, broken); });
  expect_error(ErrorCode::invalid_argument, {".npz", ".csv"}, [&] { GraphWriter(ctx, folder / "g.txt"); });
  expect_error(ErrorCode::io, {"nowhere"}, [&] { GraphWriter(ctx, folder / "nowhere" / "g.npz"); });
}

TEST(GraphWriter, StopsWhenItIsCancelled) {
  const Folder folder;
  const CancelToken cancel;
  const Context ctx = Context::cpu({.cancel = cancel});
  for (const char* const name : {"g.npz", "g.csv"}) {
    GraphWriter writer(ctx, folder / name);
    cancel.cancel();
    expect_error(ErrorCode::cancelled, {}, [&] { writer.add(0, lists_of(4)); });
    break;
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(GraphWriter, IntoWhatIsNoFile) {
  const Context ctx = Context::cpu();
  const Folder folder;
  std::filesystem::create_symlink("/dev/full", folder / "g.npz");
  GraphWriter writer(ctx, folder / "g.npz");
  writer.add(0, lists_of(5));
  expect_error(ErrorCode::io, {"g.npz", "No space left"}, [&] { writer.commit(); });
  EXPECT_EQ(folder.names().size(), 1U);
}

TEST(GraphWriter, DiskFullLeavesNothing) {
  const Folder folder;
  folder.put("g.npz", "old");
  // In a child, a limit on the size of files stands in for a full disk.
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 14, 1 << 14};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(1);
    try {
      const Context ctx = Context::cpu({.threads = 1});
      GraphWriter writer(ctx, folder / "g.npz");
      writer.add(0, lists_of(20000));
    } catch (const Error& error) {
      const std::string_view sentence = error.what();
      const bool says =
          sentence.find("g.npz") != std::string_view::npos && sentence.find("File too large") != std::string_view::npos;
      ::_exit(error.code() == ErrorCode::io && says ? 0 : 2);
    }
    ::_exit(3);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder.get("g.npz"), "old");
  EXPECT_EQ(folder.names().size(), 1U);
}

}  // namespace
}  // namespace vicinal

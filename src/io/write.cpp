// Writers of results. Everything goes through AtomicFile: whole or not there (contract clause 11).
#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "core/entry.hpp"
#include "io/atomic_file.hpp"
#include "io/format.hpp"
#include "io/npy.hpp"
#include "io/packed_file.hpp"
#include "vicinal/io.hpp"

namespace vicinal {
namespace {

std::string lower_suffix(const std::filesystem::path& path) {
  std::string suffix = path.extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return suffix;
}

/// A graph that a caller put together may not hold what it says.
void check_graph(const NeighborGraph& graph) {
  const auto count = static_cast<std::int64_t>(graph.ids.size());
  bool sound = graph.rows >= 0 && graph.ids.size() == graph.distances.size();
  if (graph.is_csr()) {
    sound = sound && static_cast<std::int64_t>(graph.offsets.size()) == graph.rows + 1 && graph.offsets.front() == 0 &&
            graph.offsets.back() == count && std::is_sorted(graph.offsets.begin(), graph.offsets.end());
  } else {
    std::int64_t expected = 0;
    sound = sound && !__builtin_mul_overflow(graph.rows, graph.k, &expected) && expected == count;
  }
  if (!sound) {
    throw Error(ErrorCode::invalid_argument, "graph has ids, distances or offsets that do not fit its rows and k");
  }
}

void write_graph_csv(const std::filesystem::path& path, const NeighborGraph& graph) {
  io::PackedFile file(path);
  file.write("row,rank,id,distance\n");
  std::string lines;
  for (std::int64_t row = 0; row < graph.rows; ++row) {
    const auto ids = graph.ids_of(row);
    const auto distances = graph.distances_of(row);
    for (std::size_t rank = 0; rank < ids.size(); ++rank) {
      fmt::format_to(std::back_inserter(lines), "{},{},{},{}\n", row, rank, ids[rank], distances[rank]);
    }
    file.write(lines);
    lines.clear();
  }
  file.commit();
}

}  // namespace

void write_npy(const std::filesystem::path& path, const ArrayView& array) try {
  const core::Entry entry;
  const std::uint64_t bytes = io::bytes_of(array);
  io::AtomicFile file(path);
  file.write(io::make_npy_header(array));
  file.write(array.data, bytes);
  file.commit();
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

void write_text(const std::filesystem::path& path, std::string_view text) try {
  const core::Entry entry;
  io::PackedFile file(path);
  file.write(text);
  file.commit();
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

void write_graph(const std::filesystem::path& path, const NeighborGraph& graph) try {
  const core::Entry entry;
  check_graph(graph);
  const auto count = static_cast<std::int64_t>(graph.ids.size());
  const bool packed = io::compression_of_suffix(path) != Compression::none;
  const std::string suffix = lower_suffix(packed ? path.stem() : path);
  if (suffix == ".csv" || path == "-") {
    write_graph_csv(path, graph);
    return;
  }
  if (suffix != ".npz") {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' has no suffix neighbors are written as; .npz and .csv there are", path.string()));
  }
  std::vector<std::int64_t> shape = {graph.rows, graph.k};
  if (graph.is_csr()) shape = {count};
  std::vector<NamedArray> arrays = {{"ids", {graph.ids.data(), "<i8", shape}},
                                    {"distances", {graph.distances.data(), "<f8", shape}}};
  if (graph.is_csr()) {
    arrays.push_back({"offsets", {graph.offsets.data(), "<i8", {static_cast<std::int64_t>(graph.offsets.size())}}});
  }
  write_npz(path, arrays);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

// Writers of results. Everything goes through AtomicFile: whole or not there (contract clause 11).
#include <fmt/core.h>

#include "core/entry.hpp"
#include "io/atomic_file.hpp"
#include "io/format.hpp"
#include "io/graph_writer.hpp"
#include "io/npy.hpp"
#include "io/packed_file.hpp"
#include "vicinal/io.hpp"

namespace vicinal {

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

void write_graph(const std::filesystem::path& path, const NeighborGraph& graph,
                 std::span<const std::int64_t> rows) try {
  const core::Entry entry;
  io::check_arrays(graph);
  if (!rows.empty() && std::ssize(rows) != graph.rows) {
    throw Error(ErrorCode::invalid_argument, fmt::format("rows: {} numbers for {} rows", rows.size(), graph.rows));
  }
  if (io::graph_format_of(path) == io::GraphFormat::csv) {
    io::PackedFile file(path);
    io::write_graph_header(file);
    io::write_graph_lines(file, 0, graph, {.rows = rows});
    file.commit();
    return;
  }
  const auto count = static_cast<std::int64_t>(graph.ids.size());
  std::vector<std::int64_t> shape = {graph.rows, graph.k};
  if (graph.is_csr()) shape = {count};
  std::vector<NamedArray> arrays = {{"ids", {graph.ids.data(), "<i8", shape}},
                                    {"distances", {graph.distances.data(), "<f8", shape}}};
  if (graph.is_csr()) {
    arrays.push_back({"offsets", {graph.offsets.data(), "<i8", {static_cast<std::int64_t>(graph.offsets.size())}}});
  }
  if (!rows.empty()) arrays.push_back({"rows", {rows.data(), "<i8", {graph.rows}}});
  write_npz(path, arrays);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

// Graphs in the layouts of other programs: a matrix as scipy.sparse.save_npz writes it, and distances as float32.
#include <fmt/core.h>

#include <optional>
#include <utility>
#include <vector>

#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "io/format.hpp"
#include "io/graph_writer.hpp"
#include "io/id_array.hpp"
#include "io/packed_file.hpp"
#include "vicinal/io.hpp"

namespace vicinal {
namespace {

/// Numbers as int32 where all of them fit, as scipy writes them; else as they are.
class Whole {
 public:
  Whole(core::Poll& poll, std::span<const std::int64_t> values, bool fits) : wide_(values) {
    if (!fits) return;
    narrow_.reserve(values.size());
    for (const std::int64_t value : values) {
      poll.step();
      narrow_.push_back(static_cast<std::int32_t>(value));
    }
  }
  [[nodiscard]] ArrayView view() const {
    const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(wide_.size())};
    if (narrow_.size() == wide_.size()) return {narrow_.data(), "<i4", shape};
    return {wide_.data(), "<i8", shape};
  }

 private:
  std::span<const std::int64_t> wide_;
  std::vector<std::int32_t> narrow_;
};

std::vector<float> rounded_distances(core::Poll& poll, const NeighborGraph& graph) {
  std::vector<float> rounded;
  rounded.reserve(graph.distances.size());
  for (std::int64_t row = 0; row < graph.rows; ++row) {
    for (const double distance : graph.distances_of(row)) {
      poll.step();
      rounded.push_back(io::distance_as_float(row, distance));
    }
  }
  return rounded;
}

}  // namespace

void write_graph(const Context& ctx, const std::filesystem::path& path, const NeighborGraph& graph,
                 const GraphWriteOptions& options) try {
  const core::Entry entry;
  const bool is_float = options.distances == DType::float32;
  const bool has_ids = options.row_ids != nullptr || options.table_ids != nullptr;
  io::check_layout(path, options);
  if (options.layout == GraphLayout::lists && !is_float && !has_ids) return write_graph(path, graph, options.rows);
  io::check_arrays(graph);
  io::check_ids(0, graph, options);
  if (!options.rows.empty() && std::ssize(options.rows) != graph.rows) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("rows: {} numbers for {} rows", options.rows.size(), graph.rows));
  }
  if (io::graph_format_of(path) == io::GraphFormat::csv) {
    io::PackedFile file(ctx, path, io::compression_of_suffix(path));
    io::write_graph_header(file);
    io::write_graph_lines(file, 0, graph, options);
    return file.commit();
  }
  const bool is_matrix = options.layout == GraphLayout::scipy;
  const auto size = static_cast<std::int64_t>(graph.ids.size());
  const bool fits = io::fits_int32(graph.rows, graph.table_rows, size);
  const auto rows = static_cast<std::uint64_t>(graph.rows);
  core::require_memory(ctx,
                       (is_float ? 4 : 0) * static_cast<std::uint64_t>(size) +
                           (is_matrix ? 4 * static_cast<std::uint64_t>(size) + 12 * (rows + 1) : 0),
                       "write_graph");
  core::Poll poll(ctx);
  std::vector<float> rounded;
  if (is_float) rounded = rounded_distances(poll, graph);
  std::vector<std::int64_t> shape = {size};
  if (!is_matrix && !graph.is_csr()) shape = {graph.rows, graph.k};
  const ArrayView distances =
      is_float ? ArrayView{rounded.data(), "<f4", shape} : ArrayView{graph.distances.data(), "<f8", shape};
  const auto offsets_size = static_cast<std::int64_t>(graph.offsets.size());
  std::optional<io::IdArray> row_ids;
  std::optional<io::IdArray> table_ids;
  if (options.row_ids != nullptr) row_ids.emplace(ctx, path.string(), *options.row_ids, options.rows);
  if (options.table_ids != nullptr) table_ids.emplace(ctx, path.string(), *options.table_ids);
  const auto write = [&](std::vector<NamedArray> arrays) {
    if (row_ids) arrays.push_back({"row_ids", row_ids->view()});
    if (table_ids) arrays.push_back({"table_ids", table_ids->view()});
    write_npz(path, arrays);
  };
  if (!is_matrix) {
    std::vector<NamedArray> arrays = {{"ids", {graph.ids.data(), "<i8", shape}}, {"distances", distances}};
    if (graph.is_csr()) arrays.push_back({"offsets", {graph.offsets.data(), "<i8", {offsets_size}}});
    if (!options.rows.empty()) arrays.push_back({"rows", {options.rows.data(), "<i8", {graph.rows}}});
    return write(std::move(arrays));
  }
  std::vector<std::int64_t> begins = graph.offsets;
  if (!graph.is_csr()) {
    for (std::int64_t row = 0; row <= graph.rows; ++row) begins.push_back(row * graph.k);
  }
  const Whole columns(poll, graph.ids, fits);
  const Whole offsets(poll, begins, fits);
  const std::int64_t dimensions[] = {graph.rows, graph.table_rows};
  write({{"indices", columns.view()},
         {"indptr", offsets.view()},
         {"format", {"csr", "|S3", {}}},
         {"shape", {dimensions, "<i8", {2}}},
         {"data", distances}});
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

// See graph_writer.hpp.
#include "io/graph_writer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "io/format.hpp"
#include "io/npy.hpp"
#include "io/npz.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io {
namespace {

constexpr std::size_t kLinesAtOnce = std::size_t{1} << 16;

}  // namespace

GraphFormat graph_format_of(const std::filesystem::path& path) {
  const std::string suffix = unpacked_suffix(path);
  if (suffix == "csv" || path == "-") return GraphFormat::csv;
  if (suffix == "npz") return GraphFormat::npz;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}': neighbors are written as .npz or .csv; use one of these suffixes", path.string()));
}

void check_arrays(const NeighborGraph& graph) {
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

void write_graph_header(PackedFile& file) {
  file.write("row,rank,id,distance\n");
}

void write_graph_lines(PackedFile& file, std::int64_t first, const NeighborGraph& graph,
                       std::span<const std::int64_t> numbers) {
  std::string lines;
  for (std::int64_t row = 0; row < graph.rows; ++row) {
    const auto ids = graph.ids_of(row);
    const auto distances = graph.distances_of(row);
    const std::int64_t number = numbers.empty() ? first + row : numbers[static_cast<std::size_t>(first + row)];
    for (std::size_t rank = 0; rank < ids.size(); ++rank) {
      fmt::format_to(std::back_inserter(lines), "{},{},{},{}\n", number, rank, ids[rank], distances[rank]);
      if (lines.size() < kLinesAtOnce) continue;
      file.write(lines);
      lines.clear();
    }
  }
  file.write(lines);
}

GraphWriter::GraphWriter(const Context& ctx, const std::filesystem::path& path, std::span<const std::int64_t> numbers)
    : file_(ctx, path, compression_of_suffix(path)), numbers_(numbers) {
  if (graph_format_of(path) == GraphFormat::npz) {
    spools_ = std::make_unique<Spools>(ctx, path);
    constexpr std::int64_t kFirst = 0;
    spools_->offsets.write(&kFirst, sizeof kFirst);
  } else {
    write_graph_header(file_);
  }
}

GraphWriter::~GraphWriter() = default;

void GraphWriter::add(std::int64_t first, const NeighborGraph& lists) {
  check_arrays(lists);
  if (!numbers_.empty() && first + lists.rows > std::ssize(numbers_)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("rows: {} numbers for more rows", numbers_.size()));
  }
  if (!lists.is_csr() || first != rows_) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("lists: must be compressed rows of the queries from {} on", rows_));
  }
  if (!spools_) {
    write_graph_lines(file_, first, lists, numbers_);
  } else {
    spools_->ids.write(lists.ids.data(), lists.ids.size() * sizeof(std::int64_t));
    spools_->distances.write(lists.distances.data(), lists.distances.size() * sizeof(double));
    constexpr std::size_t kOffsetsAtOnce = 8192;
    std::vector<std::int64_t> offsets;
    for (std::size_t i = 1; i < lists.offsets.size(); i += kOffsetsAtOnce) {
      offsets.clear();
      const std::size_t last = std::min(lists.offsets.size(), i + kOffsetsAtOnce);
      for (std::size_t at = i; at < last; ++at) offsets.push_back(neighbors_ + lists.offsets[at]);
      spools_->offsets.write(offsets.data(), offsets.size() * sizeof(std::int64_t));
    }
  }
  rows_ += lists.rows;
  neighbors_ += lists.offsets.back();
}

void GraphWriter::commit() {
  if (spools_) {
    NpzWriter archive(file_);
    const auto put = [&](const char* name, const char* dtype, std::int64_t size, const Spool& spool) {
      const std::vector<std::int64_t> shape = {size};
      archive.begin(name, {&spool, dtype, shape}, spool.crc());  // its elements are passed on from there
      spool.read([&](std::string_view piece) { file_.write(piece); });
    };
    put("ids", "<i8", neighbors_, spools_->ids);
    put("distances", "<f8", neighbors_, spools_->distances);
    put("offsets", "<i8", rows_ + 1, spools_->offsets);
    if (!numbers_.empty()) archive.add("rows", {numbers_.data(), "<i8", {rows_}});
    archive.finish();
  }
  file_.commit();
}

}  // namespace vicinal::io

// See graph_writer.hpp.
#include "io/graph_writer.hpp"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/csv_fields.hpp"
#include "io/format.hpp"
#include "io/id_array.hpp"
#include "io/npy.hpp"
#include "io/npz.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io {
namespace {

constexpr std::size_t kLinesAtOnce = std::size_t{1} << 16;
constexpr std::size_t kElementsAtOnce = 8192;

using TakePiece = std::function<void(std::string_view piece)>;

/// Takes pieces of int64 and passes them on as int32.
TakePiece narrowed(TakePiece take) {
  return [take = std::move(take), rest = std::string(),
          narrow = std::vector<std::int32_t>()](std::string_view piece) mutable {
    rest += piece;  // behind what is there of a number that comes in two pieces
    narrow.resize(rest.size() / sizeof(std::int64_t));
    for (std::size_t at = 0; at < narrow.size(); ++at) {
      std::int64_t value = 0;
      std::memcpy(&value, rest.data() + at * sizeof value, sizeof value);
      narrow[at] = static_cast<std::int32_t>(value);
    }
    rest.erase(0, narrow.size() * sizeof(std::int64_t));
    take({reinterpret_cast<const char*>(narrow.data()), narrow.size() * sizeof(std::int32_t)});
  };
}

std::uint32_t narrow_crc(const Spool& spool) {
  std::uint32_t crc = 0;
  spool.read(narrowed([&](std::string_view piece) {
    crc = static_cast<std::uint32_t>(crc32_z(crc, reinterpret_cast<const unsigned char*>(piece.data()), piece.size()));
  }));
  return crc;
}

/// A spool as an array of one axis.
void add_spool(NpzWriter& archive, PackedFile& file, const char* name, const char* dtype, std::int64_t size,
               Spool& spool) {
  const std::vector<std::int64_t> shape = {size};
  archive.begin(name, {&spool, dtype, shape}, spool.crc());  // its elements are passed on from there
  spool.drain([&](std::string_view piece) { file.write(piece); });
}

}  // namespace

void check_layout(const std::filesystem::path& path, const GraphWriteOptions& options) {
  if (options.layout == GraphLayout::scipy && !options.rows.empty()) {
    throw Error(ErrorCode::invalid_argument, "rows: a matrix numbers its rows from 0 on");
  }
  if (options.layout == GraphLayout::lists && options.distances == DType::float64) return;
  if (path.extension() != ".npz") {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is no .npz, which alone has other layouts and float32", path.string()));
  }
  if (options.distances != DType::float64 && options.distances != DType::float32) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("distances: cannot be written as {}; float64 and float32 can", name_of(options.distances)));
  }
}

float distance_as_float(std::int64_t row, double distance) {
  const auto rounded = static_cast<float>(distance);
  if (std::isfinite(rounded) || !std::isfinite(distance)) return rounded;
  throw Error(ErrorCode::bad_data,
              fmt::format("graph: row {} has the distance {}, beyond the range of float32", row, distance));
}

bool fits_int32(std::int64_t rows, std::int64_t table_rows, std::int64_t neighbors) noexcept {
  return std::max({rows, table_rows, neighbors}) <= std::numeric_limits<std::int32_t>::max();
}

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

void check_ids(std::int64_t first, const NeighborGraph& graph, const GraphWriteOptions& options) {
  const std::int64_t last = first + graph.rows;
  if (!options.rows.empty() && last > std::ssize(options.rows)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("rows: {} numbers for {} rows", options.rows.size(), last));
  }
  if (options.row_ids != nullptr) {
    const std::int64_t known = options.row_ids->size();
    const auto unknown = [&](std::int64_t row) { return row < 0 || row >= known; };
    const auto begin = options.rows.begin() + (options.rows.empty() ? 0 : first);
    const bool fits = options.rows.empty() ? last <= known : std::none_of(begin, begin + graph.rows, unknown);
    if (!fits) throw Error(ErrorCode::invalid_argument, fmt::format("row_ids: {} ids for more rows", known));
  }
  if (options.table_ids == nullptr) return;
  const std::int64_t known = options.table_ids->size();
  if (std::all_of(graph.ids.begin(), graph.ids.end(), [&](std::int64_t id) { return id >= 0 && id < known; })) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("table_ids: {} ids, but the graph numbers more rows", known));
}

void write_graph_header(PackedFile& file) {
  file.write("row,rank,id,distance\n");
}

void write_graph_lines(PackedFile& file, std::int64_t first, const NeighborGraph& graph,
                       const GraphWriteOptions& options) {
  const auto called = [](const RowIds* ids, std::int64_t number) {
    return ids != nullptr ? csv_field((*ids)[number], ',') : fmt::format("{}", number);
  };
  std::string lines;
  for (std::int64_t row = 0; row < graph.rows; ++row) {
    const auto ids = graph.ids_of(row);
    const auto distances = graph.distances_of(row);
    const std::int64_t at = first + row;
    const std::int64_t number = options.rows.empty() ? at : options.rows[static_cast<std::size_t>(at)];
    const std::string name = called(options.row_ids, number);
    for (std::size_t rank = 0; rank < ids.size(); ++rank) {
      if (options.table_ids == nullptr) {
        fmt::format_to(std::back_inserter(lines), "{},{},{},{}\n", name, rank, ids[rank], distances[rank]);
      } else {
        fmt::format_to(std::back_inserter(lines), "{},{},{},{}\n", name, rank, called(options.table_ids, ids[rank]),
                       distances[rank]);
      }
      if (lines.size() < kLinesAtOnce) continue;
      file.write(lines);
      lines.clear();
    }
  }
  file.write(lines);
}

GraphWriter::GraphWriter(const Context& ctx, const std::filesystem::path& path, const GraphWriteOptions& options)
    : ctx_(ctx),
      path_(path.string()),
      file_((check_layout(path, options), ctx), path, compression_of_suffix(path)),
      options_(options) {
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
  check_ids(first, lists, options_);
  if (!lists.is_csr() || first != rows_) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("lists: must be compressed rows of the queries from {} on", rows_));
  }
  if (!spools_) {
    write_graph_lines(file_, first, lists, options_);
  } else {
    spools_->ids.write(lists.ids.data(), lists.ids.size() * sizeof(std::int64_t));
    spool_distances(first, lists);
    std::vector<std::int64_t> offsets;
    for (std::size_t i = 1; i < lists.offsets.size(); i += kElementsAtOnce) {
      offsets.clear();
      const std::size_t last = std::min(lists.offsets.size(), i + kElementsAtOnce);
      for (std::size_t at = i; at < last; ++at) offsets.push_back(neighbors_ + lists.offsets[at]);
      spools_->offsets.write(offsets.data(), offsets.size() * sizeof(std::int64_t));
    }
  }
  rows_ += lists.rows;
  table_rows_ = lists.table_rows;
  neighbors_ += lists.offsets.back();
}

void GraphWriter::spool_distances(std::int64_t first, const NeighborGraph& lists) {
  if (options_.distances == DType::float64) {
    spools_->distances.write(lists.distances.data(), lists.distances.size() * sizeof(double));
    return;
  }
  std::vector<float> rounded;
  const auto flush = [&] {
    spools_->distances.write(rounded.data(), rounded.size() * sizeof(float));
    rounded.clear();
  };
  for (std::int64_t row = 0; row < lists.rows; ++row) {
    for (const double distance : lists.distances_of(row)) {
      rounded.push_back(distance_as_float(first + row, distance));
      if (rounded.size() == kElementsAtOnce) flush();
    }
  }
  flush();
}

void GraphWriter::write_lists() {
  NpzWriter archive(file_);
  add_spool(archive, file_, "ids", "<i8", neighbors_, spools_->ids);
  add_spool(archive, file_, "distances", options_.distances == DType::float32 ? "<f4" : "<f8", neighbors_,
            spools_->distances);
  add_spool(archive, file_, "offsets", "<i8", rows_ + 1, spools_->offsets);
  if (!options_.rows.empty()) archive.add("rows", {options_.rows.data(), "<i8", {rows_}});
  write_ids(archive);
  archive.finish();
}

void GraphWriter::write_ids(NpzWriter& archive) {
  if (options_.row_ids != nullptr)
    archive.add("row_ids", IdArray(ctx_, path_, *options_.row_ids, options_.rows).view());
  if (options_.table_ids != nullptr) archive.add("table_ids", IdArray(ctx_, path_, *options_.table_ids).view());
}

// The arrays, and their order, of scipy.sparse.save_npz.
void GraphWriter::write_matrix() {
  NpzWriter archive(file_);
  const bool is_narrow = fits_int32(rows_, table_rows_, neighbors_);
  const auto put = [&](const char* name, std::int64_t size, Spool& spool) {
    if (!is_narrow) return add_spool(archive, file_, name, "<i8", size, spool);
    archive.begin(name, {&spool, "<i4", {size}}, narrow_crc(spool));
    spool.drain(narrowed([&](std::string_view piece) { file_.write(piece); }));
  };
  put("indices", neighbors_, spools_->ids);
  put("indptr", rows_ + 1, spools_->offsets);
  archive.add("format", {"csr", "|S3", {}});
  const std::int64_t dimensions[] = {rows_, table_rows_};
  archive.add("shape", {dimensions, "<i8", {2}});
  add_spool(archive, file_, "data", options_.distances == DType::float32 ? "<f4" : "<f8", neighbors_,
            spools_->distances);
  write_ids(archive);
  archive.finish();
}

void GraphWriter::commit() {
  if (spools_) options_.layout == GraphLayout::scipy ? write_matrix() : write_lists();
  file_.commit();
}

}  // namespace vicinal::io

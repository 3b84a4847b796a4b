// read_table and read_labels: the format by content, then its reader.
#include <fmt/core.h>

#include "core/encode.hpp"
#include "core/entry.hpp"
#include "io/content.hpp"
#include "io/csv.hpp"
#include "io/format.hpp"
#include "io/hdf5.hpp"
#include "io/idx.hpp"
#include "io/json_lines.hpp"
#include "io/kmeans_files.hpp"
#include "io/labels.hpp"
#include "io/libsvm.hpp"
#include "io/npy.hpp"
#include "io/npz.hpp"
#include "io/vecs.hpp"
#include "vicinal/io.hpp"

namespace vicinal {
namespace {

/// Options for another format than the file has would be dropped in silence: refuse them.
void check_options(const io::Content& content, const ReadOptions& options) {
  const FileFormat format = content.format;
  std::string_view name;
  std::string_view serves = "CSV";
  if (!io::has_named_columns(format)) {
    if (!options.label.empty()) name = "label";
    if (!options.id.empty()) name = "id";
    if (!options.only.empty()) name = "only";
    if (!options.drop.empty()) name = "drop";
    if (!options.text.empty() || options.find_text) name = "text";
    if (!name.empty()) serves = "CSV and JSON lines";
  }
  if (format != FileFormat::csv) {
    if (options.delimiter != 0) name = "delimiter";
    if (options.decimal != 0) name = "decimal";
    if (options.comment != 0) name = "comment";
    if (options.header.has_value()) name = "header";
  }
  if (format != FileFormat::npz && format != FileFormat::hdf5 && !options.member.empty()) {
    name = "member";
    serves = "npz and HDF5";
  }
  if (format != FileFormat::libsvm && options.columns != 0) {
    name = "columns";
    serves = "libsvm";
  }
  if (!name.empty()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: applies to {} files only, and '{}' is {}", name, serves,
                                                         content.file, name_of(format)));
  }
  if (options.columns < 0 || options.columns > std::int64_t{1} << 40) {
    throw Error(ErrorCode::invalid_argument, fmt::format("columns is {}, not between 1 and 2^40", options.columns));
  }
}

/// Of the formats that store one array as it is; `axes` as for `read_npz`.
io::RawArray raw_array(const Context& ctx, const io::Content& content, const ReadOptions& options, std::size_t axes) {
  const std::string where = fmt::format("'{}'", content.file);
  switch (content.format) {
    case FileFormat::npz:
      return io::read_npz(ctx, content.bytes, content.file, options.member, axes, options.bfloat16);
    case FileFormat::hdf5:
      return io::read_hdf5(ctx, content.bytes, content.file, options.member, axes);
    case FileFormat::idx:
      return io::parse_idx(content.bytes, where);
    default:
      return io::parse_npy(content.bytes, where, options.bfloat16);
  }
}

Table read_content(const Context& ctx, const io::Content& content, const ReadOptions& options) {
  switch (content.format) {
    case FileFormat::csv:
      return io::read_csv(ctx, content.bytes, content.file, options);
    case FileFormat::json_lines: {
      const io::DelimitedJson json = io::delimited_json(ctx, content.bytes, content.file, options);
      return io::read_csv(ctx, json.text, content.file, json.options, io::kCsvChunk, json.lines);
    }
    case FileFormat::libsvm:
      return io::read_libsvm(ctx, content.bytes, content.file, options.columns);
    case FileFormat::kmeans_text:
      return io::read_kmeans_text(ctx, content.bytes, content.file);
    case FileFormat::kmeans_binary:
      return io::read_kmeans_binary(content.bytes, content.file);
    case FileFormat::fvecs:
    case FileFormat::bvecs:
    case FileFormat::ivecs:
      return io::read_vecs(ctx, content.bytes, content.file, content.format);
    default:
      return io::table_from_array(ctx, raw_array(ctx, content, options, 2));
  }
}

[[noreturn]] void ask_for_column(const std::string& file, std::int64_t columns) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}' has {} columns; say which one holds the labels", file, columns));
}

/// The array that is asked for, by FILE:MEMBER or beside the file.
std::string member_of(const io::Content& content, const std::string& member) {
  if (content.member.empty() || content.member == member) return member;
  if (member.empty()) return content.member;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("member: '{}' of '{}' is asked for, and '{}', too", content.member, content.file, member));
}

}  // namespace

Table read_table(const Context& ctx, const std::filesystem::path& path, const ReadOptions& options) try {
  const core::Entry entry;
  io::Content content = io::open_content(ctx, path, options.format);
  if (!options.format && io::is_text_format(content.format) && io::asks_for_csv(options)) {
    content.format = FileFormat::csv;
  }
  ReadOptions asked = options;
  asked.member = member_of(content, options.member);
  check_options(content, asked);
  Table table = read_content(ctx, content, asked);
  table.format = content.format;
  return table;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Table parse_table(const Context& ctx, std::string_view text, const std::string& name, const ReadOptions& options,
                  std::int64_t first_line) try {
  const core::Entry entry;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  return io::read_csv(ctx, io::Bytes{bytes, text.size(), nullptr}, name, options, io::kCsvChunk, {first_line});
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Labels read_labels(const Context& ctx, const std::filesystem::path& path, const std::string& column) try {
  const core::Entry entry;
  const io::Content content = io::open_content(ctx, path);
  if (content.format == FileFormat::libsvm && column.empty()) {
    const Table table = io::read_libsvm(ctx, content.bytes, content.file);
    return table.labels ? *table.labels
                        : core::encode(std::vector<std::int64_t>(static_cast<std::size_t>(table.view.rows())),
                                       [&ctx] { ctx.check_cancelled(); });
  }
  if (content.format == FileFormat::json_lines) {
    const io::DelimitedJson json = io::delimited_json(ctx, content.bytes, content.file, {});
    const io::CsvLayout whole = io::lay_out_csv(ctx, json.text, content.file, json.options, json.lines);
    if (column.empty() && whole.fields() > 1) ask_for_column(content.file, whole.fields());
    const io::CsvLayout layout = io::lay_out_csv_labels(ctx, json.text, content.file, column.empty() ? "0" : column,
                                                        json.options.header, json.lines);
    return io::labels_from_texts(ctx, io::parse_csv(ctx, layout, json.text).labels);
  }
  if (io::is_text_format(content.format)) {
    if (column.empty()) return io::labels_from_lines(ctx, content.bytes, content.file);
    const io::CsvLayout layout = io::lay_out_csv_labels(ctx, content.bytes, content.file, column);
    return io::labels_from_texts(ctx, io::parse_csv(ctx, layout, content.bytes).labels);
  }
  const bool has_arrays = content.format == FileFormat::npz || content.format == FileFormat::hdf5;
  if (!has_arrays && !column.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is {} and has no column '{}'", content.file, name_of(content.format), column));
  }
  if (!has_arrays && content.format != FileFormat::npy && content.format != FileFormat::idx) {
    throw Error(ErrorCode::bad_data,
                fmt::format("'{}' is {}, which holds no labels", content.file, name_of(content.format)));
  }
  ReadOptions options;
  options.member = member_of(content, column);
  return io::labels_from_array(ctx, raw_array(ctx, content, options, 1));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

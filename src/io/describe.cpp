// describe_file: headers only, but for text, whose rows have to be counted, and for formats whose rows have lengths.
// describe_columns (describe.hpp) counts none.
#include "io/describe.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/entry.hpp"
#include "io/content.hpp"
#include "io/csv.hpp"
#include "io/csv_chunks.hpp"
#include "io/format.hpp"
#include "io/hdf5.hpp"
#include "io/idx.hpp"
#include "io/json_lines.hpp"
#include "io/kmeans_files.hpp"
#include "io/libsvm.hpp"
#include "io/npy.hpp"
#include "io/npz.hpp"
#include "io/shown.hpp"
#include "io/unpack.hpp"
#include "io/vecs.hpp"
#include "vicinal/io.hpp"

namespace vicinal {
namespace {

/// Whether the rows of a text are counted.
enum class Rows : std::uint8_t { counted, not_counted };

void add(FileInfo& info, const std::string& name, const io::ArrayHeader& header) {
  info.arrays.push_back({name, header.descr, header.shape});
}

void describe_text(const Context& ctx, const io::Bytes& bytes, const std::string& file, const ReadOptions& options,
                   Rows rows, FileInfo& info) {
  const io::CsvLayout layout = io::lay_out_csv(ctx, bytes, file, options);
  info.columns = layout.names;
  info.has_index = layout.roles[0] == io::ColumnRole::index;
  const std::int64_t count = rows == Rows::counted ? io::count_csv_rows(ctx, layout) : -1;
  info.arrays.push_back({"", "text", {count, layout.fields()}});
}

void describe_json(const Context& ctx, const io::Bytes& bytes, const std::string& file, const ReadOptions& options,
                   Rows counting, FileInfo& info) {
  constexpr std::int64_t kLines = 64;  // more than a layout is found from
  const io::DelimitedJson json = io::delimited_json(ctx, bytes, file, options, kLines);
  const io::CsvLayout layout = io::lay_out_csv(ctx, json.text, file, json.options, json.lines);
  info.columns = layout.names;
  info.has_index = layout.roles[0] == io::ColumnRole::index;
  const std::int64_t rows = counting == Rows::counted ? io::count_json_rows(ctx, bytes) : -1;
  info.arrays.push_back({"", "text", {rows, layout.fields()}});
  if (rows < 0) return;
  // As delimited text no value takes more, but for what a line lacks.
  info.unpacked = bytes.size + 3 * static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(layout.fields());
}

/// Of the options those that say what a text looks like, and nothing of its columns.
ReadOptions options_of_text(const ReadOptions& options) {
  ReadOptions of_text;
  of_text.header = options.header;
  of_text.delimiter = options.delimiter;
  of_text.decimal = options.decimal;
  of_text.comment = options.comment;
  of_text.keep_index = options.keep_index;
  return of_text;
}

/// Formats whose first bytes do not say how much there is.
void describe_content(const Context& ctx, const io::Content& content, const ReadOptions& options, Rows rows,
                      FileInfo& info) {
  const io::Bytes& bytes = content.bytes;
  const std::string& file = content.file;
  info.format = content.format;
  if (rows == Rows::not_counted && !io::has_named_columns(content.format)) return;
  switch (content.format) {
    case FileFormat::npy:
      return add(info, "", io::parse_npy(bytes, fmt::format("'{}'", file), true).header);
    case FileFormat::idx:
      return add(info, "", io::parse_idx(bytes, fmt::format("'{}'", file)).header);
    case FileFormat::npz:
      for (const io::NpzMember& array : io::list_npz(ctx, bytes, file)) add(info, array.name, array.header);
      return;
    case FileFormat::hdf5:
      for (const io::Hdf5Dataset& set : io::list_hdf5(ctx, bytes, file)) add(info, set.name, set.header);
      return;
    case FileFormat::csv:
      return describe_text(ctx, bytes, file, options_of_text(options), rows, info);
    case FileFormat::json_lines:
      return describe_json(ctx, bytes, file, options_of_text(options), rows, info);
    case FileFormat::kmeans_text:
      describe_text(ctx, bytes, file, {}, rows, info);
      info.columns.clear();
      --info.arrays.back().shape[1];  // the ids
      return;
    case FileFormat::libsvm: {
      const io::LibsvmShape shape = io::libsvm_shape(ctx, bytes, file);
      info.stored_values = shape.stored;
      info.arrays.push_back({"", "text", {shape.rows, shape.columns}});
      return;
    }
    case FileFormat::kmeans_binary:
      info.arrays.push_back({"", "<f4", io::kmeans_binary_shape(bytes, file)});
      return;
    default: {
      const char* const dtype = content.format == FileFormat::bvecs   ? "|u1"
                                : content.format == FileFormat::fvecs ? "<f4"
                                                                      : "<i4";
      info.arrays.push_back({"", dtype, io::vecs_shape(ctx, bytes, file, content.format)});
    }
  }
}

/// Whether the first bytes of a large file say all there is to say: then no more of it is read.
bool describe_beginning(const Context& ctx, const std::filesystem::path& path, std::optional<FileFormat> format,
                        FileInfo& info) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return false;
  const std::uint64_t size = std::filesystem::file_size(path, unknown);
  if (unknown || size <= io::kNpyHeaderLimit) return false;
  io::Content content{path.string(), io::open_file(ctx, path, io::kNpyHeaderLimit), FileFormat::csv};
  content.format = format ? *format : io::marked_format(content.bytes).value_or(FileFormat::csv);
  if (content.format != FileFormat::npy && content.format != FileFormat::idx) return false;
  content.bytes.size = size;  // of the elements no more than their number is looked at
  info.bytes = size;
  describe_content(ctx, content, {}, Rows::counted, info);
  return true;
}

/// Of several arrays the one that is named.
void keep_array(FileInfo& info, const std::string& file, const std::string& member) {
  std::erase_if(info.arrays, [&](const FileInfo::Array& array) { return array.name != member; });
  if (!info.arrays.empty()) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' has no array '{}'", file, io::shown(member)));
}

FileInfo described(const Context& ctx, const std::filesystem::path& path, const ReadOptions& options, Rows rows) {
  const io::Place place = io::place_of(path);
  const std::string file = place.file.string();
  const std::string where = fmt::format("'{}'", file);
  const std::optional<FileFormat> format = options.format;
  FileInfo info;
  const bool whole = place.member.empty();
  if (whole && !ctx.map_files() && describe_beginning(ctx, path, format, info)) return info;
  const io::Bytes stored = io::open_file(ctx, place.file, UINT64_MAX, io::Purpose::look);
  info.bytes = stored.size;
  info.compression = io::compression_of(stored);
  if (whole && info.compression != Compression::none && !format) {
    // Of a packed array with a header of its own no more than that is unpacked.
    const io::Bytes begin = io::unpack(ctx, stored, file, io::kNpyHeaderLimit);
    info.format = io::marked_format(begin).value_or(FileFormat::csv);
    if (info.format == FileFormat::npy) add(info, "", io::parse_npy_header(begin, where, true));
    if (info.format == FileFormat::idx) add(info, "", io::parse_idx_header(begin, where));
    if (!info.arrays.empty()) return info;
  }
  io::Content content = io::recognized(ctx, stored, place, format);
  if (!format && io::is_text_format(content.format) && io::asks_for_csv(options)) content.format = FileFormat::csv;
  if (content.is_zipped) info.compression = Compression::zip;
  describe_content(ctx, content, options, rows, info);
  if (info.compression != Compression::none) info.unpacked += content.bytes.size;
  const bool has_arrays = content.format == FileFormat::npz || content.format == FileFormat::hdf5;
  for (const std::string& member : {content.member, options.member}) {
    if (has_arrays && !member.empty() && rows == Rows::counted) keep_array(info, content.file, member);
  }
  return info;
}

}  // namespace

FileInfo io::describe_columns(const Context& ctx, const std::filesystem::path& path, const ReadOptions& options) {
  return described(ctx, path, options, Rows::not_counted);
}

FileInfo describe_file(const Context& ctx, const std::filesystem::path& path, const ReadOptions& options) try {
  const core::Entry entry;
  return described(ctx, path, options, Rows::counted);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

FileInfo describe_file(const Context& ctx, const std::filesystem::path& path, std::optional<FileFormat> format) try {
  const core::Entry entry;
  ReadOptions options;
  options.format = format;
  return describe_file(ctx, path, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

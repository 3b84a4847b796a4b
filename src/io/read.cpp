// read_table and read_labels: the format by content, then its reader.
#include <fmt/core.h>

#include "io/content.hpp"
#include "io/csv.hpp"
#include "io/idx.hpp"
#include "io/labels.hpp"
#include "io/npy.hpp"
#include "io/npz.hpp"
#include "vicinal/io.hpp"

namespace vicinal {
namespace {

/// Options for another format than the file has would be dropped in silence: refuse them.
void check_options(const io::Content& content, const ReadOptions& options) {
  const bool text = content.format == FileFormat::csv;
  std::string_view name;
  if (!text && !options.label.empty()) name = "label";
  if (!text && !options.drop.empty()) name = "drop";
  if (!text && (!options.text.empty() || options.find_text)) name = "text";
  if (!text && options.delimiter != 0) name = "delimiter";
  if (!text && options.header.has_value()) name = "header";
  if (content.format != FileFormat::npz && !options.member.empty()) name = "member";
  if (name.empty()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}' is {} and has no use for the option {}", content.file, name_of(content.format), name));
}

io::RawArray raw_array(const Context& ctx, const io::Content& content, const std::string& member, std::size_t axes) {
  const std::string where = fmt::format("'{}'", content.file);
  if (content.format == FileFormat::npz) return io::read_npz(ctx, content.bytes, content.file, member, axes);
  if (content.format == FileFormat::idx) return io::parse_idx(content.bytes, where);
  return io::parse_npy(content.bytes, where);
}

}  // namespace

std::string_view name_of(FileFormat format) noexcept {
  switch (format) {
    case FileFormat::npy:
      return "npy";
    case FileFormat::npz:
      return "npz";
    case FileFormat::csv:
      return "csv";
    case FileFormat::idx:
      return "idx";
  }
  return "unknown";
}

Table read_table(const Context& ctx, const std::filesystem::path& path, const ReadOptions& options) {
  const io::Content content = io::open_content(ctx, path);
  check_options(content, options);
  if (content.format == FileFormat::csv) return io::read_csv(ctx, content.bytes, content.file, options);
  Table table = io::table_from_array(ctx, raw_array(ctx, content, options.member, 2));
  table.format = content.format;
  return table;
}

Table parse_table(const Context& ctx, std::string_view text, const std::string& name, const ReadOptions& options,
                  std::int64_t first_line) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  return io::read_csv(ctx, io::Bytes{bytes, text.size(), nullptr, true}, name, options, io::kCsvChunk, first_line);
}

Labels read_labels(const Context& ctx, const std::filesystem::path& path, const std::string& column) {
  const io::Content content = io::open_content(ctx, path);
  if (content.format == FileFormat::csv) {
    if (column.empty()) return io::labels_from_lines(ctx, content.bytes, content.file);
    const io::CsvLayout layout = io::lay_out_csv_labels(content.bytes, content.file, column);
    return io::labels_from_texts(io::parse_csv(ctx, layout, content.bytes).labels);
  }
  if (content.format != FileFormat::npz && !column.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is {} and has no column '{}'", content.file, name_of(content.format), column));
  }
  return io::labels_from_array(ctx, raw_array(ctx, content, column, 1));
}

}  // namespace vicinal

// See table_writing.hpp.
#include "base/table_writing.hpp"

#include <algorithm>

namespace vicinal::cli {

std::uint64_t table_write_bytes(const Context& ctx, const TableView& table, const std::string& path,
                                const WriteOptions& writing) {
  constexpr std::uint64_t kBlock = 65536;      // elements
  constexpr std::uint64_t kText = 4 * 26 + 8;  // of an element: texts of four blocks a thread, and a wide number
  constexpr std::uint64_t kXz = 96'000'000;    // its encoder
  constexpr std::uint64_t kBzip2 = 7'600'000;  // likewise
  const auto rows = static_cast<std::uint64_t>(table.rows());
  const auto cols = static_cast<std::uint64_t>(table.cols());
  const auto width = static_cast<std::uint64_t>(size_of(writing.dtype.value_or(table.dtype())));
  const FileFormat format = writing.format ? *writing.format : *format_of_suffix(path);
  std::uint64_t bytes =
      static_cast<std::uint64_t>(ctx.threads()) * kText * std::min(rows * cols, std::max(kBlock, cols));
  if (path.ends_with(".xz") || writing.compression == Compression::xz) bytes += kXz;
  if (path.ends_with(".bz2") || writing.compression == Compression::bzip2) bytes += kBzip2;
  if (format == FileFormat::npz || format == FileFormat::hdf5) bytes += rows * (cols * width + sizeof(std::int64_t));
  if (format == FileFormat::hdf5) bytes += 3 * rows * cols * width;
  return bytes;
}

}  // namespace vicinal::cli

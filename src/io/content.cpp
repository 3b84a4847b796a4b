// See content.hpp. Formats with a mark of their own first; then text; then what nothing marks, where the whole file
// must fit the format. A name decides nothing but which of several it is that a file fits.
#include "io/content.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "io/csv_layout.hpp"
#include "io/format.hpp"
#include "io/hdf5.hpp"
#include "io/idx.hpp"
#include "io/kmeans_files.hpp"
#include "io/libsvm.hpp"
#include "io/npy.hpp"
#include "io/unpack.hpp"
#include "io/vecs.hpp"
#include "io/zip.hpp"

namespace vicinal::io {
namespace {

FileFormat recognize_text(const Context& ctx, const Bytes& bytes) {
  if (is_libsvm(ctx, bytes)) return FileFormat::libsvm;
  if (is_kmeans_text(ctx, bytes)) return FileFormat::kmeans_text;
  return FileFormat::csv;
}

/// What the whole of a file without any mark may be.
std::vector<FileFormat> unmarked_formats(const Context& ctx, const Bytes& bytes) {
  std::vector<FileFormat> found;
  for (const FileFormat format : {FileFormat::fvecs, FileFormat::bvecs, FileFormat::ivecs}) {
    if (is_vecs(ctx, bytes, format)) found.push_back(format);
  }
  if (is_kmeans_binary(bytes)) found.push_back(FileFormat::kmeans_binary);
  return found;
}

struct Foreign {
  std::string_view mark;  ///< the first bytes
  std::string_view name;
  std::string_view way;  ///< what to do
};

/// Formats that other tools write and that are not read here.
constexpr Foreign kForeign[] = {
    {"PAR1", "Parquet", "convert it, in Python by pandas.read_parquet(...).to_csv(..., index=False)"},
    {"ARROW1", "Arrow (Feather)", "convert it, in Python by pandas.read_feather(...).to_csv(..., index=False)"},
    {"FEA1", "Feather", "convert it, in Python by pandas.read_feather(...).to_csv(..., index=False)"},
    {"\x80\x02", "a Python pickle", "save the array in Python by numpy.save"},
    {"\x80\x03", "a Python pickle", "save the array in Python by numpy.save"},
    {"\x80\x04", "a Python pickle", "save the array in Python by numpy.save"},
    {"\x80\x05", "a Python pickle", "save the array in Python by numpy.save"},
    {"\xff\xfe", "UTF-16 text", "save it as UTF-8, in a shell by iconv -f UTF-16 -t UTF-8"},
    {"\xfe\xff", "UTF-16 text", "save it as UTF-8, in a shell by iconv -f UTF-16 -t UTF-8"},
    {"BZh", "packed by bzip2", "unpack it by bunzip2"},
    {"\x28\xb5\x2f\xfd", "packed by Zstandard", "unpack it by unzstd"},
    {"\xd0\xcf\x11\xe0", "an old Excel workbook", "save the sheet as CSV"},
    {"SQLite format 3", "an SQLite database", "export the table as CSV"},
    {"MATLAB 5.0 MAT-file", "a MATLAB file", "save it with -v7.3, which is HDF5"},
    {"RDX", "R's data", "write the table in R by write.csv(..., row.names = FALSE)"},
};

const Foreign* foreign_format(const Bytes& bytes) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data), static_cast<std::size_t>(bytes.size));
  const auto* const found = std::find_if(std::begin(kForeign), std::end(kForeign),
                                         [&](const Foreign& one) { return text.starts_with(one.mark); });
  return found == std::end(kForeign) ? nullptr : found;
}

FileFormat recognize(const Context& ctx, const Bytes& bytes, const std::filesystem::path& path) {
  const std::string file = path.string();
  if (bytes.size == 0) throw Error(ErrorCode::bad_data, fmt::format("'{}' is empty", file));
  if (const auto marked = marked_format(bytes)) return *marked;
  if (is_text(bytes)) return recognize_text(ctx, bytes);
  if (const Compression inner = compression_of(bytes); inner != Compression::none) {
    throw Error(ErrorCode::bad_data,
                fmt::format("'{}' is packed twice ({} within); unpack it once", file, name_of(inner)));
  }
  const std::vector<FileFormat> found = unmarked_formats(ctx, bytes);
  const std::optional<FileFormat> named = format_of_suffix(path);
  if (named && std::find(found.begin(), found.end(), *named) != found.end()) return *named;
  if (found.size() == 1) return found[0];
  if (found.size() > 1) {
    std::vector<std::string_view> names;
    names.reserve(found.size());
    for (const FileFormat format : found) names.push_back(name_of(format));
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("'{}' may be {}, which look the same; choose one by the option format or by the file's suffix",
                    file, fmt::join(names, " or ")));
  }
  // A suffix that promises one of these says what to look for, and its reader where the file is damaged.
  constexpr FileFormat kUnmarked[] = {FileFormat::fvecs, FileFormat::bvecs, FileFormat::ivecs,
                                      FileFormat::kmeans_binary};
  if (named && std::find(std::begin(kUnmarked), std::end(kUnmarked), *named) != std::end(kUnmarked)) return *named;
  if (const Foreign* const foreign = foreign_format(bytes)) {
    throw Error(ErrorCode::bad_data,
                fmt::format("'{}' is {}, which vicinal does not read: {}", file, foreign->name, foreign->way));
  }
  throw Error(ErrorCode::bad_data,
              fmt::format("'{}' is not a format vicinal reads: npy, npz, idx, hdf5, fvecs, bvecs, ivecs, the classical "
                          "k-means files, or CSV or libsvm text, plain, gzip or xz",
                          file));
}

}  // namespace

std::optional<FileFormat> marked_format(const Bytes& bytes) noexcept {
  if (is_npy(bytes)) return FileFormat::npy;
  if (is_zip(bytes)) return FileFormat::npz;
  if (is_idx(bytes)) return FileFormat::idx;
  if (is_hdf5(bytes)) return FileFormat::hdf5;
  return std::nullopt;
}

Content open_content(const Context& ctx, const std::filesystem::path& path, std::optional<FileFormat> format) {
  return recognized(ctx, open_file(ctx, path), path, format);
}

Content recognized(const Context& ctx, const Bytes& stored, const std::filesystem::path& path,
                   std::optional<FileFormat> format) {
  Content content;
  content.file = path.string();
  content.bytes = unpack(ctx, stored, content.file);
  if (content.bytes.size == 0) throw Error(ErrorCode::bad_data, fmt::format("'{}' is empty", content.file));
  content.format = format ? *format : recognize(ctx, content.bytes, path);
  return content;
}

}  // namespace vicinal::io

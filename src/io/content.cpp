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
#include "io/json_lines.hpp"
#include "io/kmeans_files.hpp"
#include "io/libsvm.hpp"
#include "io/npy.hpp"
#include "io/shown.hpp"
#include "io/unpack.hpp"
#include "io/vecs.hpp"
#include "io/zip.hpp"

namespace vicinal::io {
namespace {

FileFormat recognize_text(const Context& ctx, const Bytes& bytes) {
  if (is_json(ctx, bytes)) return FileFormat::json_lines;
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
    {"\x28\xb5\x2f\xfd", "packed by Zstandard", "unpack it by unzstd"},
    {"\xd0\xcf\x11\xe0", "an old Excel workbook", "save the sheet as CSV"},
    {"SQLite format 3", "an SQLite database", "export the table as CSV"},
    {"MATLAB 5.0 MAT-file", "a MATLAB file", "save it with -v7.3, which is HDF5"},
    {"RDX", "R's data", "write the table in R by write.csv(..., row.names = FALSE)"},
};

/// Text whose every second byte is zero.
bool is_utf16_without_mark(const Bytes& bytes) noexcept {
  const std::uint64_t size = std::min<std::uint64_t>(bytes.size / 2 * 2, 64);
  if (size < 8) return false;
  std::uint64_t zeros[2] = {0, 0};
  for (std::uint64_t i = 0; i < size; ++i) zeros[i % 2] += bytes.data[i] == 0 ? 1 : 0;
  return (zeros[0] == 0 && zeros[1] == size / 2) || (zeros[1] == 0 && zeros[0] == size / 2);
}

const Foreign* foreign_format(const Bytes& bytes) noexcept {
  static constexpr Foreign kUtf16 = {"", "UTF-16 text", "save it as UTF-8, in a shell by iconv -f UTF-16 -t UTF-8"};
  if (is_utf16_without_mark(bytes)) return &kUtf16;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data), static_cast<std::size_t>(bytes.size));
  const auto* const found = std::find_if(std::begin(kForeign), std::end(kForeign),
                                         [&](const Foreign& one) { return text.starts_with(one.mark); });
  return found == std::end(kForeign) ? nullptr : found;
}

bool has_member(const std::vector<ZipMember>& members, std::string_view name) {
  return std::any_of(members.begin(), members.end(), [&](const ZipMember& member) { return member.name == name; });
}

/// Archives that other tools write, by the name of a member.
void refuse_foreign_archive(const std::vector<ZipMember>& members, const std::string& file) {
  std::string_view name;
  std::string_view way;
  if (has_member(members, "xl/workbook.xml") || has_member(members, "xl/workbook.bin")) {
    name = "an Excel workbook";
    way = "save the sheet as CSV";
  } else if (has_member(members, "content.xml") && has_member(members, "mimetype")) {
    name = "an OpenDocument file";
    way = "save the sheet as CSV";
  } else if (std::any_of(members.begin(), members.end(),
                         [](const ZipMember& member) { return member.name.ends_with("/data.pkl"); })) {
    name = "a PyTorch file";
    way = "save the tensor in Python by numpy.save(..., tensor.numpy())";
  }
  if (name.empty()) return;
  throw Error(ErrorCode::bad_data, fmt::format("'{}' is {}, which vicinal does not read: {}", file, name, way));
}

/// The file within an archive that is named, or the only one; without what archivers add of their own.
ZipMember choose_member(std::vector<ZipMember> members, const std::string& file, const std::string& name) {
  std::erase_if(members, [](const ZipMember& member) {
    return member.name.ends_with('/') || member.name.starts_with("__MACOSX/");
  });
  const auto found = std::find_if(members.begin(), members.end(), [&](const ZipMember& member) {
    return name.empty() ? members.size() == 1 : member.name == name;
  });
  if (found != members.end()) return *found;
  if (members.empty()) throw Error(ErrorCode::bad_data, fmt::format("'{}' is a zip archive of no files", file));
  constexpr std::size_t kMaxShown = 20;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kMaxShown, members.size()); ++i) names.push_back(shown(members[i].name));
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("'{}' has {}; name one as {}:{}; it has {}{}", file,
                  name.empty() ? fmt::format("{} files", members.size()) : fmt::format("no file '{}'", shown(name)),
                  file, names[0], fmt::join(names, ", "), members.size() > kMaxShown ? ", ..." : ""));
}

/// A zip archive that is no npz is replaced by the file in it.
void take_from_archive(const Context& ctx, Content& content, std::optional<FileFormat> format) {
  if (!is_zip(content.bytes) || format == FileFormat::npz) return;
  std::vector<ZipMember> members = list_zip(ctx, content.bytes, content.file);
  const bool arrays = members.empty() || std::any_of(members.begin(), members.end(), [](const ZipMember& member) {
                        return member.name.ends_with(".npy");
                      });
  if (arrays && !format) return;
  if (content.member.empty()) refuse_foreign_archive(members, content.file);
  const ZipMember member = choose_member(std::move(members), content.file, content.member);
  content.file += ":" + shown(member.name);
  content.member.clear();
  content.is_zipped = true;
  content.bytes = unpack(ctx, read_member(ctx, content.bytes, member, fmt::format("'{}'", content.file)), content.file);
}

FileFormat recognize(const Context& ctx, const Bytes& bytes, const std::string& file) {
  const std::filesystem::path path = file;
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
                          "k-means files, or CSV, JSON lines or libsvm text, plain, gzip, bzip2, xz or zip",
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
  const Place place = place_of(path);
  return recognized(ctx, open_file(ctx, place.file), place, format);
}

Content recognized(const Context& ctx, const Bytes& stored, const Place& place, std::optional<FileFormat> format) {
  Content content;
  content.file = place.file.string();
  content.member = place.member;
  content.bytes = unpack(ctx, stored, content.file);
  take_from_archive(ctx, content, format);
  if (content.bytes.size == 0) throw Error(ErrorCode::bad_data, fmt::format("'{}' is empty", content.file));
  content.format = format ? *format : recognize(ctx, content.bytes, content.file);
  const bool has_arrays = content.format == FileFormat::npz || content.format == FileFormat::hdf5;
  if (!has_arrays && !content.member.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is {} and holds no '{}'; npz, HDF5 and zip files have members", content.file,
                            name_of(content.format), shown(content.member)));
  }
  return content;
}

}  // namespace vicinal::io

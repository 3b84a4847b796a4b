// The names of file formats, and the suffixes that stand for them.
#include "io/format.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "core/names.hpp"

namespace vicinal {
namespace {

constexpr std::array<core::Named<FileFormat>, 12> kFormats = {{
    {FileFormat::npy, "npy"},
    {FileFormat::npz, "npz"},
    {FileFormat::csv, "csv"},
    {FileFormat::idx, "idx"},
    {FileFormat::fvecs, "fvecs"},
    {FileFormat::bvecs, "bvecs"},
    {FileFormat::ivecs, "ivecs"},
    {FileFormat::libsvm, "libsvm"},
    {FileFormat::hdf5, "hdf5"},
    {FileFormat::kmeans_text, "kmeans-text"},
    {FileFormat::kmeans_binary, "kmeans-binary"},
    {FileFormat::json_lines, "jsonl"},
}};

/// Suffixes beside the names themselves.
constexpr std::array<core::Named<FileFormat>, 4> kSuffixes = {{
    {FileFormat::csv, "tsv"},
    {FileFormat::libsvm, "svm"},
    {FileFormat::hdf5, "h5"},
    {FileFormat::json_lines, "ndjson"},
}};

/// Without the dot, in small letters.
std::string suffix_of(const std::filesystem::path& path) {
  std::string suffix = path.extension().string();
  if (!suffix.empty()) suffix.erase(0, 1);
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return suffix;
}

}  // namespace

std::string_view name_of(FileFormat format) noexcept {
  return core::name_in(kFormats, format);
}

FileFormat file_format_from(std::string_view name) {
  return core::value_in(kFormats, "file format", name);
}

std::optional<FileFormat> format_of_suffix(const std::filesystem::path& path) {
  const std::string suffix = io::unpacked_suffix(path);
  for (const auto& entry : kFormats) {
    if (entry.name == suffix) return entry.value;
  }
  for (const auto& entry : kSuffixes) {
    if (entry.name == suffix) return entry.value;
  }
  return std::nullopt;
}

namespace io {

Compression compression_of_suffix(const std::filesystem::path& path) {
  const std::string suffix = suffix_of(path);
  if (suffix == "gz") return Compression::gzip;
  if (suffix == "bz2") return Compression::bzip2;
  return suffix == "xz" ? Compression::xz : Compression::none;
}

std::string unpacked_suffix(const std::filesystem::path& path) {
  return suffix_of(compression_of_suffix(path) != Compression::none ? path.stem() : path);
}

}  // namespace io
}  // namespace vicinal

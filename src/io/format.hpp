// What a file's name says of its format: asked for output, and for input only where content cannot tell.
#pragma once

#include <filesystem>
#include <string>

#include "vicinal/io.hpp"

namespace vicinal::io {

/// By the last suffix: .gz, .bz2, .xz or none.
Compression compression_of_suffix(const std::filesystem::path& path);

/// The suffix before that one, in lower case and without the dot: "csv" of "t.CSV.gz" and of "t.csv".
std::string unpacked_suffix(const std::filesystem::path& path);

/// Whether columns have names and may contain text: csv and json_lines.
constexpr bool has_named_columns(FileFormat format) noexcept {
  return format == FileFormat::csv || format == FileFormat::json_lines;
}

/// Of a line a row, which look alike.
constexpr bool is_text_format(FileFormat format) noexcept {
  return format == FileFormat::csv || format == FileFormat::libsvm || format == FileFormat::kmeans_text;
}

/// Options that only CSV has make text CSV, whatever else it looks like.
inline bool asks_for_csv(const ReadOptions& options) {
  return !options.label.empty() || !options.id.empty() || !options.drop.empty() || !options.only.empty() ||
         !options.text.empty() || options.find_text || options.delimiter != 0 || options.decimal != 0 ||
         options.comment != 0 || options.header.has_value();
}

}  // namespace vicinal::io

// Files: tables, labels and results. The format is chosen by content (gzip included), never by the name alone.
// Output goes to a temporary file beside its target and is renamed: a target is whole or untouched.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"
#include "vicinal/vote.hpp"

namespace vicinal {

enum class FileFormat : std::uint8_t { npy, npz, csv, idx };
VICINAL_API std::string_view name_of(FileFormat format) noexcept;

/// How a table file is read.
struct ReadOptions {
  std::string label;                ///< csv: name or 0-based position of the column that holds labels; empty: none
  std::optional<bool> header = {};  ///< csv: whether line 1 names the columns; unset: found out
  char delimiter = 0;               ///< csv: 0: found out among , ; tab space |
  std::string member;               ///< npz: array to read; empty: the only 2-d one
  std::vector<std::string> drop;    ///< csv: columns (names or positions) to leave out
};

/// A table from a file: owns or maps its rows.
struct Table {
  TableView view;
  std::vector<std::string> columns;  ///< names, empty when the file has none
  std::optional<Labels> labels;      ///< when ReadOptions::label was given
  std::vector<std::int64_t> shape;   ///< as stored: {60000, 28, 28} for images; view has {60000, 784}
  FileFormat format = FileFormat::npy;
  std::shared_ptr<const void> storage;  ///< what the view borrows from
};

/// Reads a table. npy and uncompressed npz are memory-mapped; integers and bools widen exactly
/// (uint8 stays, other integers become float64, and one beyond 2^53 that would not is an error).
/// Throws `io` when the file cannot be read, `bad_data` naming file, line or row, and column otherwise.
VICINAL_API Table read_table(const Context& ctx, const std::filesystem::path& path, const ReadOptions& options = {});

/// Reads labels: a 1-d npy (integers or fixed-width text), an idx1 file, or a text file with one label a line
/// (a CSV column when `column` names one). Whole numbers become integer labels, anything else text.
VICINAL_API Labels read_labels(const Context& ctx, const std::filesystem::path& path, const std::string& column = {});

/// What a file holds, without reading more of it than needed.
struct FileInfo {
  FileFormat format = FileFormat::npy;
  bool gzip = false;
  struct Array {
    std::string name;  ///< npz member, else empty
    std::string dtype;
    std::vector<std::int64_t> shape;
  };
  std::vector<Array> arrays;
  std::vector<std::string> columns;
  std::uint64_t bytes = 0;
};
VICINAL_API FileInfo describe_file(const Context& ctx, const std::filesystem::path& path);

/// An array to write: borrowed, row-major.
struct ArrayView {
  const void* data = nullptr;
  std::string dtype;  ///< NumPy's: "<i8", "<f8", "<f4", "|u1", "<i4", "<u8"
  std::vector<std::int64_t> shape;
};
VICINAL_API void write_npy(const std::filesystem::path& path, const ArrayView& array);
struct NamedArray {
  std::string name;
  ArrayView array;
};
VICINAL_API void write_npz(const std::filesystem::path& path, std::span<const NamedArray> arrays);
/// Text, whole or not at all.
VICINAL_API void write_text(const std::filesystem::path& path, std::string_view text);

/// `ids`, `distances` (and `offsets` for CSR) as .npz; or, for a path ending in .csv, lines `row,rank,id,distance`.
VICINAL_API void write_graph(const std::filesystem::path& path, const NeighborGraph& graph);

}  // namespace vicinal

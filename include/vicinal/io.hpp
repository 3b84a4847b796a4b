// Files: tables, labels and results. The format is found by content (gzip, bzip2, xz and zip included); a name only
// decides between formats whose content cannot tell them apart. Output goes to a temporary file beside its target and
// is renamed: a target is whole or untouched.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"
#include "vicinal/vote.hpp"

namespace vicinal {

/// Besides NumPy's, delimited text and MNIST's: fvecs, bvecs and ivecs (each row int32 d, then d float32, bytes or
/// int32), libsvm (lines `label index:value ..`), HDF5 (where libhdf5 is there), and the two files of the classical
/// parallel k-means tools: lines `id x1 .. xD`, and int32 N, int32 D, N * D float32. All are little-endian but idx.
/// JSON lines: an object or an array of numbers and texts a line.
enum class FileFormat : std::uint8_t {
  npy,
  npz,
  csv,
  idx,
  fvecs,
  bvecs,
  ivecs,
  libsvm,
  hdf5,
  kmeans_text,
  kmeans_binary,
  json_lines
};
/// "npy", .., "kmeans-text", "kmeans-binary", "jsonl".
VICINAL_API std::string_view name_of(FileFormat format) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the valid names.
VICINAL_API FileFormat file_format_from(std::string_view name);

/// What a file is packed in; zip: a file of another format within a zip archive, which is only read.
enum class Compression : std::uint8_t { none, gzip, xz, bzip2, zip };
VICINAL_API std::string_view name_of(Compression compression) noexcept;

/// How a table file is read.
struct ReadOptions {
  std::optional<FileFormat> format = {};  ///< unset: found by content
  std::string label;  ///< csv: name or 0-based position of the column that holds labels; empty: none
  std::string id;     ///< csv: name or position of the column that names the rows (Table::ids); empty: none
  std::optional<bool> header = {};  ///< csv: whether line 1 names the columns; unset: found out
  char delimiter = 0;               ///< csv: 0: found out among , ; tab space |
  char decimal = 0;                 ///< csv: '.' or ','; 0: found out where the delimiter is ;
  char comment = 0;    ///< csv: lines that begin with it are skipped; its quotes must come in pairs. 0: '#', at the top
  std::string member;  ///< npz, hdf5: array to read; empty: the only 2-d one, or the only one
  std::vector<std::string> drop;  ///< csv: columns (names or positions) to leave out
  std::vector<std::string> only;  ///< csv: columns (names or positions) of the table, in this order, beside those of
                                  ///< labels and ids; others are left out. Empty: all
  std::vector<std::string> text;  ///< csv: columns (names or positions) of text, read as codes (Table::categories)
  bool find_text = false;         ///< csv: so is every other column with text among the first 32 rows; `bad_data` where
                                  ///< it has more than 32 texts, and more than half as many as rows
  bool keep_index = false;        ///< csv: a column that only counts the rows (see `read_table`) is one of the table
  bool bfloat16 = false;          ///< npy, npz: elements of type '<V2', as ml_dtypes stores them, are bfloat16
  bool missing = false;           ///< csv: missing values are NaN (see `read_table`), not errors
  std::int64_t columns = 0;       ///< libsvm: how many columns; 0: as many as the largest index says
};

/// What the rows of a table are called: texts as a file has them, none of them empty, not all of them different.
class RowIds {
 public:
  std::string name;  ///< of the column that they come from; empty where it has none

  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(ends_.size()); }
  [[nodiscard]] std::string_view operator[](std::int64_t row) const noexcept {
    const auto at = static_cast<std::size_t>(row);
    const std::size_t begin = at == 0 ? 0 : ends_[at - 1];
    return {texts_.data() + begin, ends_[at] - begin};
  }
  /// Whether all are whole numbers, written as such: 7 and -12, neither 07 nor 7.0.
  [[nodiscard]] bool are_whole_numbers() const noexcept { return whole_; }
  /// Bytes that they take.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return texts_.capacity() + ends_.capacity() * sizeof(ends_[0]); }

  void reserve(std::int64_t rows, std::size_t bytes) {
    ends_.reserve(static_cast<std::size_t>(rows));
    texts_.reserve(bytes);
  }
  void add(std::string_view id) {
    constexpr std::size_t kDigits = 18;  // fewer than 2^63 has
    const std::string_view digits = id.substr(id.starts_with('-') ? 1 : 0);
    const bool leads_with_zero = digits.starts_with('0') && id.size() > 1;
    whole_ = whole_ && !digits.empty() && digits.size() <= kDigits && !leads_with_zero &&
             digits.find_first_not_of("0123456789") == std::string_view::npos;
    texts_ += id;
    ends_.push_back(texts_.size());
  }

 private:
  std::string texts_;  // one behind the other
  std::vector<std::size_t> ends_;
  bool whole_ = true;
};

/// A table from a file. What was read stays what it was, whatever becomes of the file, unless it was mapped.
struct Table {
  TableView view;
  std::vector<std::string> columns;  ///< names of the view's columns, empty when the file has none
  std::optional<Labels> labels;      ///< when ReadOptions::label was given; of libsvm where they are not all 0
  std::string label_name;            ///< of the column of labels; empty where it has none
  std::optional<RowIds> ids;         ///< when ReadOptions::id was given
  /// Where columns of text were read: [d], the texts that column j has, in ascending order of their bytes, of which the
  /// view holds the numbers, from 0; none for a column of numbers.
  std::vector<std::vector<std::string>> categories;
  std::vector<std::int64_t> shape;  ///< as stored: {60000, 28, 28} for images; view has {60000, 784}
  FileFormat format = FileFormat::npy;
  std::int64_t stored_values = -1;      ///< of a sparse file that became dense: the values it holds; else -1
  std::shared_ptr<const void> storage;  ///< what the view borrows from
  /// What was guessed and may be wrong, a sentence each with the file's name: a header of numbers, an index column left
  /// out, a column without a name.
  std::vector<std::string> notes;
};

/// Reads a table. npy, uncompressed npz, fvecs, bvecs and the binary file of k-means are used as the file has them,
/// mapped where the context says so (CpuOptions::map_files); integers and bools widen exactly (bool and uint8 are
/// uint8, other integers become float64, and one beyond 2^53 that would not is an error). [n] becomes [n, 1],
/// [n, a, b] becomes [n, a * b]. CSV is float64, numbers correctly rounded; blank lines and '#' lines at the top are
/// skipped; a quote may only enclose a whole field. As pandas and R write tables: a first line of 0, 1, .., d - 1 names
/// the columns (of two columns only where some number below has a fraction; not where the lines count on), and so does
/// one that begins with an empty field; a first line with one field less than the others leaves out the name of their
/// first column; a first column without a name (or `Unnamed: 0`) that counts the rows from 0 or 1 is an index and no
/// part of the table; True and False, Yes and No are 1 and 0. Between semicolons numbers may have a
/// decimal comma, as R's write.csv2 and Excel write them: where they have, and none among the first rows has a point.
/// NaN and infinity in text are refused here, in arrays by whoever computes with the table. So are missing values: an
/// empty field, NA, N/A, n/a, na, null, NULL, None and ?; with ReadOptions::missing they are NaN, and so is nan; in a
/// column of text the code is NaN. libsvm becomes dense, O(n
/// d) memory; indices count from 1, or from 0 where an index 0 occurs. Text whose fields are parted by blanks and whose
/// first column counts from 0 or 1, to the last line, is kmeans-text, and that column no part of the table, unless an
/// option only CSV has is given. fvecs and ivecs look the same: the name's suffix tells them apart, or `format`; where
/// neither does that is `invalid_argument`. hdf5 without libhdf5 is `invalid_argument`, too. Throws `io` when the file
/// cannot be read, `bad_data` naming file, line or row, and column, `invalid_argument` for an option that does not fit
/// the file, `over_memory` before more than the memory limit is taken.
/// JSON lines: the first line says which columns there are; keys that another line lacks are missing values, as null
/// is, and others are refused; values are as a CSV's fields. Where no file `path` is there, `FILE:MEMBER` is the array
/// MEMBER of an npz or HDF5 file, or a file within a zip archive; an archive of a single file needs no name.
VICINAL_API Table read_table(const Context& ctx, const std::filesystem::path& path, const ReadOptions& options = {});

/// Reads delimited text from memory as `read_table` reads a CSV; `name` stands for the file, and `first_line` is the
/// number of the text's first line, in sentences. The table borrows nothing of `text`.
VICINAL_API Table parse_table(const Context& ctx, std::string_view text, const std::string& name,
                              const ReadOptions& options = {}, std::int64_t first_line = 1);

/// Reads labels: a 1-d npy (integers, whole numbers or fixed-width text), an npz array (`column` names it), an idx1
/// file, or a text file with one label per line (a CSV column when `column` names one). Whole numbers become integer
/// labels, anything else text. In a text file a first line that is no whole number, where all others are, is a header.
/// Errors as `read_table`.
VICINAL_API Labels read_labels(const Context& ctx, const std::filesystem::path& path, const std::string& column = {});

/// What a file holds. Of npy and idx, and of mapped files, no more is read than needed: headers, and for text the line
/// ends.
struct FileInfo {
  FileFormat format = FileFormat::npy;
  Compression compression = Compression::none;
  struct Array {
    std::string name;   ///< npz member or HDF5 dataset, else empty
    std::string dtype;  ///< NumPy's type string; "text" for CSV, whose shape counts every column
    std::vector<std::int64_t> shape;
  };
  std::vector<Array> arrays;
  std::vector<std::string> columns;
  bool has_index = false;           ///< csv: the first column counts the rows and is no part of the table
  std::int64_t stored_values = -1;  ///< of a sparse file: the values it holds; else -1
  std::uint64_t bytes = 0;          ///< of the file as it is stored
  std::uint64_t unpacked = 0;       ///< bytes of text that are in memory while it is read, beside `bytes`
};
/// Errors as `read_table`; a `format` that is given is believed. A pipe is read, and kept in memory until it is read
/// the next time.
VICINAL_API FileInfo describe_file(const Context& ctx, const std::filesystem::path& path,
                                   std::optional<FileFormat> format = {});
/// What `read_table` finds in a file that it reads with these options: format, header, delimiter, decimal, comment,
/// keep_index and member are followed, and of the others only that they make text CSV. Columns that they name need not
/// be there.
VICINAL_API FileInfo describe_file(const Context& ctx, const std::filesystem::path& path, const ReadOptions& options);

/// The bytes of a file, unpacked where it is gzip, bzip2 or xz.
struct FileBytes {
  std::span<const unsigned char> bytes;
  std::shared_ptr<const void> storage;  ///< what `bytes` borrows from
};
/// For formats that `read_table` does not know; at most the first `at_most` bytes of what is unpacked. Throws `io` when
/// the file cannot be read, `bad_data` when what is packed is damaged or cut, `over_memory` at the memory limit.
VICINAL_API FileBytes read_bytes(const Context& ctx, const std::filesystem::path& path,
                                 std::uint64_t at_most = UINT64_MAX);

/// An array to write: borrowed, row-major.
struct ArrayView {
  const void* data = nullptr;
  std::string
      dtype;  ///< NumPy's: "<i8", "<f8", "<f4", "|u1", "<i4", "<u8", "<f2", "<V2": bfloat16, "|S3": 3 characters,
              ///< "<U5": up to 5 characters of 4 bytes each
  std::vector<std::int64_t> shape;
};
/// Throws `invalid_argument` for another dtype or an impossible shape, `io` naming the file when it cannot be written.
VICINAL_API void write_npy(const std::filesystem::path& path, const ArrayView& array);
struct NamedArray {
  std::string name;
  ArrayView array;
};
/// Not compressed, every array at a multiple of 64 bytes, so that it can be mapped; the same arrays give the same
/// bytes.
VICINAL_API void write_npz(const std::filesystem::path& path, std::span<const NamedArray> arrays);
/// Text, whole or not at all, packed where the path ends in .gz, .bz2 or .xz. `-` is standard output, here and wherever
/// a file is written.
VICINAL_API void write_text(const std::filesystem::path& path, std::string_view text);

/// How a table is written; what is unset follows from the path, or from the table.
struct WriteOptions {
  std::optional<FileFormat> format = {};        ///< unset: by the path's suffix, .gz, .bz2 or .xz taken off
  std::optional<Compression> compression = {};  ///< unset: by the path's last suffix
  std::optional<DType> dtype = {};  ///< of elements; unset: the table's, or the next wider one that the format has
  bool lossy = false;        ///< round numbers to nearest even, and write codes for text, where that would be refused
  bool drop_labels = false;  ///< leave out labels rather than refuse them where the format has no place
  char delimiter = 0;        ///< csv; 0: a tab for .tsv, else a comma
};
/// The format that a path's suffix stands for, .gz, .bz2 and .xz taken off: .npy .npz .csv .tsv .idx .fvecs .bvecs
/// .ivecs .libsvm .svm .h5 .hdf5 .kmeans-text .kmeans-binary .jsonl .ndjson. Nothing for any other.
VICINAL_API std::optional<FileFormat> format_of_suffix(const std::filesystem::path& path);

/// Writes a table so that `read_table` reads the same numbers and, where the format has the type, the same bits.
/// Numbers in text are the shortest that read back as the same float64. Labels go to csv and jsonl (last column, under
/// its own name or as `label`), libsvm (0 where there are none), npz and hdf5 (array `labels`, whole numbers only);
/// ids of rows to csv and jsonl (first column, under its own name or as `id`), and npz (array `row_ids`: whole numbers
/// or texts); names of columns to csv and jsonl. npy, npz, idx and hdf5 keep the table's shape, others have rows and
/// columns only. Scratch: some MiB, for hdf5 three times the file, for texts in npz 4 bytes a row and character of the
/// longest. Throws `invalid_argument` for a path without a known suffix, a dtype that the format lacks, labels and ids
/// that it has no place for, `bad_data` naming row and column of a number that the file cannot hold exactly,
/// `over_memory`, `io`.
VICINAL_API void write_table(const Context& ctx, const std::filesystem::path& path, const Table& table,
                             const WriteOptions& options = {});

/// `ids`, `distances` (and `offsets` for CSR) as .npz; or, for a path ending in .csv (or .csv.gz and the like), lines
/// `row,rank,id,distance`. `rows` are the numbers of the graph's rows where they are not 0, 1, ..; the .npz has them as
/// `rows`. Throws `invalid_argument` where they are not as many as the rows, `io`.
VICINAL_API void write_graph(const std::filesystem::path& path, const NeighborGraph& graph,
                             std::span<const std::int64_t> rows = {});

/// How the arrays of a graph's .npz are called, and what they are.
enum class GraphLayout : std::uint8_t {
  lists,  ///< `ids`, `distances` and, for CSR, `offsets`
  scipy,  ///< a sparse matrix of distances that scipy.sparse.load_npz reads; row i has its neighbors in their order
};
struct GraphWriteOptions {
  GraphLayout layout = GraphLayout::lists;
  DType distances = DType::float64;         ///< or float32, rounded to nearest even
  std::span<const std::int64_t> rows = {};  ///< numbers of the graph's rows where they are not 0, 1, ..; of `lists`
  const RowIds* row_ids = nullptr;          ///< borrowed: what the graph's rows are called, by their numbers
  const RowIds* table_ids = nullptr;        ///< borrowed: what the rows are called that the graph's ids number
};
/// Writes a graph for other programs (docs/graphs.md); with default options as `write_graph` above. In .csv ids stand
/// in place of numbers; an .npz keeps the numbers and has the arrays `row_ids`, of the graph's rows, and `table_ids`,
/// whole numbers or texts. The matrix has the
/// arrays `data`, `indices`, `indptr`, `shape` [rows, table_rows] and `format`; distances of 0 are stored. Indices are
/// int32 where all fit, else int64. Scratch: 4 bytes a neighbor for float32, and as many for the matrix; of ids in .npz
/// 8 bytes a row, of texts 4 a row and character of the longest. Throws `invalid_argument` for a path that does not end
/// in .npz (or .csv, for lists of float64), arrays that do not fit together, and ids fewer than the numbers, `bad_data`
/// naming the row of a distance beyond float32, `over_memory`, `cancelled`, `io`.
VICINAL_API void write_graph(const Context& ctx, const std::filesystem::path& path, const NeighborGraph& graph,
                             const GraphWriteOptions& options);

}  // namespace vicinal

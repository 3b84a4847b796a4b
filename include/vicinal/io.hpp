// Files: tables, labels and results. The content determines the format, also within gzip, bzip2, xz and zip; the name
// only decides between formats that look the same. Output is written to a temporary file next to the target, which is
// then renamed: a target is complete or untouched.
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

/// npy and npz (NumPy), csv (delimited text), idx (MNIST), fvecs, bvecs and ivecs (each row int32 d, then d float32,
/// bytes or int32), libsvm (lines `label index:value ..`), HDF5 (if libhdf5 is installed), and the two files of the
/// classical parallel k-means tools (lines `id x1 .. xD`; int32 N, int32 D, N * D float32). JSON lines: each line is an
/// object or an array of numbers and texts. All binary formats are little-endian except idx.
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

/// The compression of a file. zip: a file of another format within a zip archive, which can only be read.
enum class Compression : std::uint8_t { none, gzip, xz, bzip2, zip };
VICINAL_API std::string_view name_of(Compression compression) noexcept;

/// How a table file is read.
struct ReadOptions {
  std::optional<FileFormat> format = {};  ///< unset: found by content
  std::string label;  ///< csv: name or 0-based position of the column that holds labels; empty: none
  std::string id;     ///< csv: name or position of the column with the rows' ids (Table::ids); empty: none
  std::optional<bool> header = {};  ///< csv: whether line 1 names the columns; unset: detected
  char delimiter = 0;               ///< csv: 0: detected among , ; tab space |
  char decimal = 0;                 ///< csv: '.' or ','; 0: detected if the delimiter is ;
  char comment = 0;    ///< csv: lines that begin with it are skipped; its quotes must come in pairs. 0: '#', at the top
  std::string member;  ///< npz, hdf5: array to read; empty: the only 2-d one, or the only one
  std::vector<std::string> drop;  ///< csv: columns (names or positions) to ignore
  std::vector<std::string> only;  ///< csv: columns (names or positions) of the table, in this order; all others except
                                  ///< labels and ids are ignored. Empty: all
  std::vector<std::string> text;  ///< csv: columns (names or positions) of text, read as codes (Table::categories)
  bool find_text = false;   ///< csv: every other column with text in the first 32 rows, too; `bad_data` if one has more
                            ///< than 32 texts, and more than half as many as rows
  bool keep_index = false;  ///< csv: keep a column that only counts the rows (see `read_table`)
  bool bfloat16 = false;    ///< npy, npz: elements of type '<V2', as ml_dtypes stores them, are bfloat16
  bool missing = false;     ///< csv: missing values are NaN (see `read_table`), not errors
  std::int64_t columns = 0;  ///< libsvm: number of columns; 0: by the largest index
};

/// The ids of a table's rows: texts as the file has them, none of them empty. Rows may have equal ids.
class RowIds {
 public:
  std::string name;  ///< name of the column of ids; empty if it has none

  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(ends_.size()); }
  [[nodiscard]] std::string_view operator[](std::int64_t row) const noexcept {
    const auto at = static_cast<std::size_t>(row);
    const std::size_t begin = at == 0 ? 0 : ends_[at - 1];
    return {texts_.data() + begin, ends_[at] - begin};
  }
  /// Whether all ids are whole numbers in plain form: 7 and -12, but not 07 or 7.0.
  [[nodiscard]] bool are_whole_numbers() const noexcept { return whole_; }
  /// Bytes of memory that the ids take.
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

/// A table from a file. Later changes of the file do not affect it, unless the file was mapped.
struct Table {
  TableView view;
  std::vector<std::string> columns;  ///< names of the view's columns, empty when the file has none
  std::optional<Labels> labels;      ///< if ReadOptions::label is set; libsvm: if labels are not all 0
  std::string label_name;            ///< name of the column of labels; empty if it has none
  std::optional<RowIds> ids;         ///< if ReadOptions::id is set
  /// [d] if columns of text were read: the texts of column j in ascending order of their bytes; the view has their
  /// positions in this order, from 0. Empty for a column of numbers.
  std::vector<std::vector<std::string>> categories;
  std::vector<std::int64_t> shape;  ///< as stored: {60000, 28, 28} for images; view has {60000, 784}
  FileFormat format = FileFormat::npy;
  std::int64_t stored_values = -1;      ///< number of stored values of a sparse file that was made dense; else -1
  std::shared_ptr<const void> storage;  ///< what the view borrows from
  /// Decisions that may be wrong, each in a sentence with the file's name: a header of numbers, an ignored index
  /// column, a column without a name.
  std::vector<std::string> notes;
};

/// Reads a table. If there is no file `path`, a path FILE:MEMBER names the array MEMBER of an npz or HDF5 file, or a
/// file in a zip archive; an archive with a single file needs no MEMBER.
///
/// Arrays: npy, uncompressed npz, fvecs, bvecs and the binary file of k-means are used without conversion, and
/// mapped if the context maps files (CpuOptions::map_files). bool and uint8 are uint8; other integers become float64,
/// and an integer beyond 2^53 that float64 cannot hold is an error. [n] becomes [n, 1], [n, a, b] becomes [n, a * b].
/// fvecs and ivecs have the same layout: the suffix or `format` decides, else `invalid_argument`. hdf5 without libhdf5
/// is `invalid_argument`.
///
/// CSV is read as float64, with numbers correctly rounded. Blank lines, and '#' lines at the top, are skipped; a
/// quote may only enclose a whole field. These forms of pandas and R are recognized: a first line 0, 1, .., d - 1 names
/// the columns, unless the next line continues the count (with two columns, only if some number below has a fraction);
/// so does a first line that begins with an empty field. A first line with one field less than the others lacks the
/// name of the first column. A first column without a name (or `Unnamed: 0`) that counts the rows from 0 or 1 is an
/// index and not a part of the table. True and Yes are 1, False and No are 0. With the delimiter ; numbers are read
/// with a decimal comma, as R's write.csv2 and Excel write them, if some of the first rows have one and none has a
/// point.
///
/// NaN and infinity in text are refused here; in arrays they are refused by the functions that compute with the
/// table. Missing values are refused, too: an empty field, NA, N/A, n/a, na, null, NULL, None and ?. With
/// ReadOptions::missing they are NaN, and so is nan; in a column of text their code is NaN.
///
/// libsvm becomes dense, O(n d) memory; indices count from 1, or from 0 if an index 0 occurs. Text with blanks as
/// delimiters, whose first column counts from 0 or 1 to the last line, is kmeans-text, and this column is not a part of
/// the table, unless an option is set that only CSV has. JSON lines: the first line determines the columns; a key that
/// another line lacks is a missing value, as null is, and a new key is refused; values are read like the fields of a
/// CSV.
///
/// Throws `io` if the file cannot be read, `bad_data` naming file, line or row, and column, `invalid_argument` for
/// an option that does not fit the file, `over_memory` before more memory than the limit is taken, `cancelled`.
/// O(bytes) time.
VICINAL_API Table read_table(const Context& ctx, const std::filesystem::path& path, const ReadOptions& options = {});

/// Reads delimited text from memory as `read_table` reads a CSV. Errors name the text as `name` and count lines from
/// `first_line`. The table borrows nothing of `text`. Throws as `read_table`. O(bytes) time and memory.
VICINAL_API Table parse_table(const Context& ctx, std::string_view text, const std::string& name,
                              const ReadOptions& options = {}, std::int64_t first_line = 1);

/// Reads labels: a 1-d npy (integers, whole numbers or fixed-width text), an npz array (`column` names it), an idx1
/// file, or a text file with one label per line (a CSV column when `column` names one). If all labels are whole numbers
/// they are read as integers, else as text. In a text file a first line that is not a whole number, if all others are,
/// is a header. Throws as `read_table`. O(bytes) time and memory.
VICINAL_API Labels read_labels(const Context& ctx, const std::filesystem::path& path, const std::string& column = {});

/// The contents of a file. Of npy, idx and mapped files only the necessary parts are read: headers, and the line ends
/// of text.
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
  bool has_index = false;           ///< csv: the first column counts the rows and is not a part of the table
  std::int64_t stored_values = -1;  ///< number of stored values of a sparse file; else -1
  std::uint64_t bytes = 0;          ///< size of the stored file
  /// Bytes of decompressed text that are in memory while it is read, in addition to `bytes`.
  std::uint64_t unpacked = 0;
};
/// Describes a file; `format`, if given, is not checked against the content. A pipe is read and kept in memory until it
/// is read the next time. Throws as `read_table`. At most O(bytes) time.
VICINAL_API FileInfo describe_file(const Context& ctx, const std::filesystem::path& path,
                                   std::optional<FileFormat> format = {});
/// Describes a file as `read_table` would read it with these options. It uses format, header, delimiter, decimal,
/// comment, keep_index and member. Of the other options it only uses that they make a text CSV; columns that they name
/// need not exist. Throws as `read_table`.
VICINAL_API FileInfo describe_file(const Context& ctx, const std::filesystem::path& path, const ReadOptions& options);

/// The bytes of a file; gzip, bzip2 and xz are decompressed.
struct FileBytes {
  std::span<const unsigned char> bytes;
  std::shared_ptr<const void> storage;  ///< what `bytes` borrows from
};
/// Reads at most the first `at_most` decompressed bytes of a file, for formats that `read_table` does not know. Throws
/// `io` if the file cannot be read, `bad_data` if compressed data are damaged or truncated, `over_memory` at the memory
/// limit.
VICINAL_API FileBytes read_bytes(const Context& ctx, const std::filesystem::path& path,
                                 std::uint64_t at_most = UINT64_MAX);

/// An array to write: borrowed, row-major.
struct ArrayView {
  const void* data = nullptr;
  /// NumPy's type: "<i8", "<f8", "<f4", "|u1", "<i4", "<u8", "<f2", "<V2" (bfloat16), "|S3" (3 characters), "<U5" (up
  /// to 5 characters of 4 bytes each).
  std::string dtype;
  std::vector<std::int64_t> shape;
};
/// Writes an array as .npy. Throws `invalid_argument` for another dtype or an impossible shape, `io` naming the file if
/// it cannot be written.
VICINAL_API void write_npy(const std::filesystem::path& path, const ArrayView& array);
struct NamedArray {
  std::string name;
  ArrayView array;
};
/// Writes arrays as .npz, without compression, each at a multiple of 64 bytes so that it can be mapped. The same arrays
/// give the same bytes. Throws as `write_npy`.
VICINAL_API void write_npz(const std::filesystem::path& path, std::span<const NamedArray> arrays);
/// Writes a text, completely or not at all, compressed if the path ends in .gz, .bz2 or .xz. `-` is standard output,
/// here and in all functions that write a file. Throws `io` naming the file if it cannot be written.
VICINAL_API void write_text(const std::filesystem::path& path, std::string_view text);

/// How a table is written; unset options follow from the path or from the table.
struct WriteOptions {
  std::optional<FileFormat> format = {};        ///< unset: by the path's suffix without .gz, .bz2 or .xz
  std::optional<Compression> compression = {};  ///< unset: by the path's last suffix
  std::optional<DType> dtype = {};  ///< element type; unset: the table's, or the next wider one that the format has
  bool lossy = false;               ///< round numbers to nearest even, and write codes for text, instead of refusing
  bool drop_labels = false;         ///< drop labels that the format cannot hold, instead of refusing
  char delimiter = 0;               ///< csv; 0: a tab for .tsv, else a comma
};
/// The format of a path's suffix, after .gz, .bz2 or .xz is removed: .npy .npz .csv .tsv .idx .fvecs .bvecs .ivecs
/// .libsvm .svm .h5 .hdf5 .kmeans-text .kmeans-binary .jsonl .ndjson. std::nullopt for any other.
VICINAL_API std::optional<FileFormat> format_of_suffix(const std::filesystem::path& path);

/// Writes a table such that `read_table` reads the same numbers and, if the format has the type, the same bits. Numbers
/// in text are the shortest that read back as the same float64. Labels are written to csv and jsonl (last column, under
/// its own name or as `label`), libsvm (0 without labels), npz and hdf5 (array `labels`, whole numbers only). Ids of
/// rows are written to csv and jsonl (first column, under its own name or as `id`) and npz (array `row_ids`: whole
/// numbers or texts). Names of columns are written to csv and jsonl. npy, npz, idx and hdf5 keep the table's shape;
/// other formats have rows and columns only. Workspace: a few MiB; for hdf5 three times the file; for text ids in npz 4
/// bytes per row for each character of the longest.
///
/// Throws `invalid_argument` for a path without a known suffix, a dtype that the format lacks, and labels or ids that
/// it cannot hold, `bad_data` naming row and column of a number that the file cannot hold exactly, `over_memory`,
/// `cancelled`, `io`. O(n d) time.
VICINAL_API void write_table(const Context& ctx, const std::filesystem::path& path, const Table& table,
                             const WriteOptions& options = {});

/// Writes a graph: the arrays `ids`, `distances` (and `offsets` for CSR) as .npz; or, for a path that ends in .csv (or
/// .csv.gz, .csv.bz2, .csv.xz), lines `row,rank,id,distance`. `rows` are the numbers of the graph's rows if these are
/// not 0, 1, ..; the .npz has them as `rows`. Throws `invalid_argument` if they are not as many as the rows, `io`.
VICINAL_API void write_graph(const std::filesystem::path& path, const NeighborGraph& graph,
                             std::span<const std::int64_t> rows = {});

/// The arrays of a graph's .npz.
enum class GraphLayout : std::uint8_t {
  lists,  ///< `ids`, `distances` and, for CSR, `offsets`
  scipy,  ///< a sparse matrix of distances that scipy.sparse.load_npz reads; row i has its neighbors in their order
};
struct GraphWriteOptions {
  GraphLayout layout = GraphLayout::lists;
  DType distances = DType::float64;         ///< or float32, rounded to nearest even
  std::span<const std::int64_t> rows = {};  ///< `lists` only: numbers of the graph's rows if these are not 0, 1, ..
  const RowIds* row_ids = nullptr;          ///< borrowed: ids of the graph's rows, by their numbers
  const RowIds* table_ids = nullptr;        ///< borrowed: ids of the table's rows, which the graph's lists refer to
};
/// Writes a graph for other programs (docs/graphs.md); with default options as `write_graph` above. A .csv has ids
/// instead of row numbers. An .npz keeps row numbers and has the arrays `row_ids` (ids of the graph's rows) and
/// `table_ids`, whole numbers or texts. The matrix has the arrays `data`, `indices`, `indptr`, `shape` [rows,
/// table_rows] and `format`; distances of 0 are stored. Indices are int32 if all fit, else int64. Workspace: 4 bytes
/// per neighbor for float32, and 4 for the matrix; for ids in .npz 8 bytes per row, or for text ids 4 bytes per row for
/// each character of the longest.
///
/// Throws `invalid_argument` for a path that does not end in .npz (or .csv, for lists of float64), arrays that do
/// not fit together, and fewer ids than row numbers, `bad_data` naming the row of a distance beyond float32,
/// `over_memory`, `cancelled`, `io`. O(neighbors) time.
VICINAL_API void write_graph(const Context& ctx, const std::filesystem::path& path, const NeighborGraph& graph,
                             const GraphWriteOptions& options);

}  // namespace vicinal

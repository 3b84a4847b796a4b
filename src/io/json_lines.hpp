// JSON lines: a row a line, as an object of names and values or as an array of values. The lines become delimited text,
// of which the CSV reader makes the table: missing values, texts, labels and line numbers are then as they are there.
#pragma once

#include <string>
#include <vector>

#include "io/csv_layout.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io {

/// Text per chunk, written anew by one thread. Tests make it tiny.
inline constexpr std::int64_t kJsonChunk = std::int64_t{1} << 20;

/// Whether text is JSON, of lines or of one value; the reader tells these apart.
bool is_json(const Context& ctx, const Bytes& bytes);

/// What the CSV reader is given.
struct DelimitedJson {
  Bytes text;           ///< a line a row, blank lines kept; above them the names, where rows are objects
  ReadOptions options;  ///< the caller's, with what is known of the text
  LineCount lines;      ///< of the file
};

/// The first line says which columns there are: a later one may lack keys of an object, which are missing values then,
/// but has no others, and an array has as many values. Throws `bad_data` naming the line (and the column) of what is
/// no JSON, a key twice, a value that is an object or an array, and a file that is one JSON value of several rows;
/// `over_memory` where the text does not fit beside the file. Of the file only the first `at_most` lines that are not
/// blank. O(bytes), in parallel.
DelimitedJson delimited_json(const Context& ctx, const Bytes& bytes, const std::string& file,
                             const ReadOptions& options, std::int64_t at_most = INT64_MAX,
                             std::int64_t chunk = kJsonChunk);

/// Lines that are not blank.
std::int64_t count_json_rows(const Context& ctx, const Bytes& bytes);

}  // namespace vicinal::io

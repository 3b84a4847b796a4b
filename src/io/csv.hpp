// Delimited text to a float64 table, in parallel.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/csv_layout.hpp"

namespace vicinal::io {

/// Text per chunk: some milliseconds of work. Tests make it tiny.
inline constexpr std::int64_t kCsvChunk = std::int64_t{1} << 20;

struct CsvContent {
  std::int64_t rows = 0;
  std::shared_ptr<const double> values;  ///< [rows, layout.numbers]
  std::vector<std::string_view> labels;  ///< [rows] when a column has that role; borrows the text or `escaped`
  std::vector<std::string_view> ids;     ///< [rows], likewise
  std::vector<std::vector<std::string_view>> texts;                ///< [layout.texts, rows], borrowed likewise
  std::vector<std::vector<std::string>> categories;                ///< as Table::categories
  std::vector<std::vector<std::unique_ptr<std::string>>> escaped;  ///< texts with doubled quotes, per chunk
  bool counts = true;  ///< a column of role index does count the rows, as far as was read
};

/// Reads every row. Throws `bad_data` for the first fault in file order, whatever the number of threads or the chunk.
CsvContent parse_csv(const Context& ctx, const CsvLayout& layout, const Bytes& bytes, std::int64_t chunk = kCsvChunk);

/// Rows of the body; nothing is checked.
std::int64_t count_csv_rows(const Context& ctx, const CsvLayout& layout, std::int64_t chunk = kCsvChunk);

/// A whole table, labels included.
Table read_csv(const Context& ctx, const Bytes& bytes, const std::string& file, const ReadOptions& options,
               std::int64_t chunk = kCsvChunk, LineCount lines = {});

}  // namespace vicinal::io

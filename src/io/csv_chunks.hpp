// Cuts delimited text into chunks that begin at rows, so that each can be parsed on its own.
#pragma once

#include <cstdint>
#include <vector>

#include "io/csv_layout.hpp"

namespace vicinal::io {

struct CsvChunk {
  const char* begin = nullptr;
  const char* end = nullptr;
  std::int64_t rows = 0;
  std::int64_t first_row = 0;
  std::int64_t first_line = 0;  ///< number of the line at `begin`
};

/// Chunks in file order that cover the body; rows and lines counted. Two passes over the text, both parallel.
std::vector<CsvChunk> cut_csv(const Context& ctx, const CsvLayout& layout, std::int64_t chunk);

}  // namespace vicinal::io

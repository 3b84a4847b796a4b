// A table on its way into a file: rows are encoded in parallel, block by block, and written in order, so that the bytes
// are the same for any number of threads. Scratch: some blocks of text or elements.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "io/narrow.hpp"
#include "io/packed_file.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io {

/// What a writer is given, its defaults filled in.
struct TableOutput {
  const Context& ctx;
  const std::filesystem::path& path;  ///< for sentences
  const Table& table;
  FileFormat format = FileFormat::npy;
  Stored type = Stored::float64;  ///< of the elements
  bool lossy = false;
  char delimiter = ',';
};

/// Appends the bytes of rows [begin, end) to `out`. Called on several threads at once.
using RowEncoder = std::function<void(std::int64_t begin, std::int64_t end, std::string& out)>;

void write_rows(const TableOutput& output, PackedFile& file, const RowEncoder& encode);

/// Rows [begin, end) as `output.type` at `to`, contiguous. Throws `bad_data` naming row and column of a number that the
/// type does not hold, or without `lossy` not exactly.
void encode_elements(const TableOutput& output, std::int64_t begin, std::int64_t end, unsigned char* to);

/// csv, jsonl, libsvm and kmeans-text.
void write_text_table(const TableOutput& output, PackedFile& file);
/// idx, fvecs, bvecs, ivecs and kmeans-binary.
void write_binary_table(const TableOutput& output, PackedFile& file);

}  // namespace vicinal::io

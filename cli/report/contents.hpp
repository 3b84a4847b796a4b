// The report of `vicinal info`: one page with what a table holds, column by column, how its values lie, and some of its
// rows where they are images.
#pragma once

#include <cstdint>
#include <string>

#include "report/picture.hpp"
#include "vicinal/context.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli::report {

/// Everything is borrowed.
struct ContentsReport {
  std::string file;
  const FileInfo* info = nullptr;
  const Table* table = nullptr;
  ImageShape image;
  double seconds = 0;
};

/// Reads the table once: O(n d) time, O(d) memory and a sample of the values. Throws `bad_data` for an empty table.
std::string render(const Context& ctx, const ContentsReport& report);

}  // namespace vicinal::cli::report

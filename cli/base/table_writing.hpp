// Memory of writing a table (vicinal::write_table), for the plan of a command.
#pragma once

#include <cstdint>
#include <string>

#include "vicinal/io.hpp"

namespace vicinal::cli {

/// Bytes that writing takes: blocks of rows by every thread, the packer, and all of the table where a format is written
/// in one piece.
std::uint64_t table_write_bytes(const Context& ctx, const TableView& table, const std::string& path,
                                const WriteOptions& writing);

}  // namespace vicinal::cli

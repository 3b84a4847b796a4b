// Byte rows as the matrix unit multiplies them: moved by 128 to int8, in steps of 32 columns, each table tile with the
// starts of its rows before it (formulas/nearest/byte_screen.hpp). (pack_bytes.cu)
#pragma once

#include "cuda/nearest/screen/pack.hpp"

namespace vicinal::cuda {

Quantization make_byte_frame(const Rows& table, Metric metric);
/// Fills the memory that `pack_table` and `pack_queries` have made for such a frame.
void pack_byte_table(const Engine& engine, const Rows& table, const Quantization& frame, const TablePack& pack);
void pack_byte_queries(const Engine& engine, const Rows& queries, const PackedQueries& pack);

}  // namespace vicinal::cuda

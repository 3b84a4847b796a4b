// bzip2 files: any number of streams, as `bzip2`, `pbzip2` and `cat` of their files make them.
#pragma once

#include "io/bytes.hpp"

namespace vicinal::io {

/// Whether the bytes begin as a bzip2 file does.
bool is_bzip2(const Bytes& bytes) noexcept;

/// The content; checksums are verified, truncation and anything after the last stream are `bad_data`. What comes out
/// and the decoder's 4 MB stay within the memory limit (`over_memory`). With `at_most`, the first so many bytes (fewer
/// when there are no more); nothing behind them is looked at.
Bytes decode_bzip2(const Context& ctx, const Bytes& bytes, const std::string& file, std::uint64_t at_most);

}  // namespace vicinal::io

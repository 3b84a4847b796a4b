// xz files: any number of streams, as `xz` and `cat` of its files make them.
#pragma once

#include "io/bytes.hpp"

namespace vicinal::io {

/// Whether the bytes begin as an xz file does.
bool is_xz(const Bytes& bytes) noexcept;

/// The content; checksums are verified, truncation and anything after the last stream are `bad_data`. What comes out
/// and the decoder's dictionary, whose size a file may claim as it likes, stay within the memory limit together
/// (`over_memory`). With `at_most`, the first so many bytes (fewer when there are no more); nothing behind them is
/// looked at.
Bytes decode_xz(const Context& ctx, const Bytes& bytes, const std::string& file, std::uint64_t at_most);

}  // namespace vicinal::io

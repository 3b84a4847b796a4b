// What a file is packed in, found by its first bytes, and its content unpacked.
#pragma once

#include "io/bytes.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io {

/// What the bytes begin as.
Compression compression_of(const Bytes& bytes) noexcept;

/// The content; bytes that are not packed as they are. With `at_most`, of packed bytes the first so many (fewer when
/// there are no more). Errors as `inflate_gzip` and `decode_xz`.
Bytes unpack(const Context& ctx, const Bytes& bytes, const std::string& file, std::uint64_t at_most = UINT64_MAX);

}  // namespace vicinal::io
